"""Flags of a command, made of the model of its options."""

import types
from collections.abc import Callable, Iterable
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin

import typer
from pydantic import BeforeValidator, ValidationError
from pydantic.fields import FieldInfo

from sensorbench.errors import UsageError, problem_text
from sensorbench.options import OptionModel

# What is read from a flag as it is; all else is parsed from its text.
_PLAIN = {bool, int, float, str, Path}


def takes(model: type[OptionModel]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command the flags of a model's fields in the place of its parameter `options`, which is the validated model."""

    def with_flags(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(**given: Any) -> None:
            said = {name: given.pop(name) for name in model.model_fields}
            command(options=_validated(model, said), **given)

        flags = [_parameter(name, field) for name, field in model.model_fields.items()]
        parameters: list[Parameter] = []
        for parameter in signature(command, eval_str=True).parameters.values():
            parameters += flags if parameter.name == "options" else [parameter.replace(kind=Parameter.KEYWORD_ONLY)]
        run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return with_flags


def _validated(model: type[OptionModel], said: dict[str, Any]) -> OptionModel:
    """The model of what was said. Raises UsageError that names the flag."""
    try:
        return model(**{name: value for name, value in said.items() if value is not None})
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        name = str(problem["loc"][0])
        flag = flags_of(name, model.model_fields[name])[0]
        if problem["type"] == "value_error":
            raise UsageError(f"{flag} {problem_text(problem)}") from None
        expected = problem.get("ctx", {}).get("expected", "").replace("'", "") or problem_text(problem)
        raise UsageError(f"{flag} {problem['input']}: expected {expected}") from None


def _parameter(name: str, field: FieldInfo) -> Parameter:
    """The flag of a field."""
    flag = typer.Option(
        *flags_of(name, field),
        help=field.description,
        min=_limit(field, "ge"),
        max=_limit(field, "le"),
        show_default=not field.is_required() and field.default is not None,
    )
    written = _written(field)
    default = Parameter.empty if field.is_required() else None if field.default in ((), []) else field.default
    annotation = written | None if default is None else written
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[annotation, flag])


def _limit(field: FieldInfo, kind: str) -> float | None:
    return next((getattr(item, kind) for item in field.metadata if hasattr(item, kind)), None)


def flags_of(name: str, field: FieldInfo) -> list[str]:
    """The flags by which a field is said."""
    extra: Any = field.json_schema_extra
    return extra["flags"] or [f"--{name.replace('_', '-')}"]


def _written(field: FieldInfo) -> Any:
    """The type of what a user writes."""
    extra: Any = field.json_schema_extra
    if extra["several"]:
        return list[str]
    return str if _is_parsed(field.metadata) else _plain(field.annotation)


def _is_parsed(metadata: Iterable[Any]) -> bool:
    return any(isinstance(item, BeforeValidator) for item in metadata)


def _plain(annotation: Any) -> Any:
    if get_origin(annotation) in (Union, types.UnionType):
        annotation = next(get_arg for get_arg in get_args(annotation) if get_arg is not type(None))
    if get_origin(annotation) is Annotated:
        annotation, *more = get_args(annotation)
        return str if _is_parsed(more) else _plain(annotation)
    if get_origin(annotation) is tuple:
        return list[_plain(get_args(annotation)[0])]  # type: ignore[misc]
    return annotation if annotation in _PLAIN else str
