"""The reference of TOML files, made of the models that read them."""

import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from inspect import cleandoc
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from docsite.markdown import code, table
from sensorbench.benchmarks.factors.file import FactorsFile
from sensorbench.benchmarks.tune.space import Space
from sensorbench.claims.claim import ClaimsFile
from sensorbench.dataset.mapping import Mapping
from sensorbench.hosts.hosts_file import HostsFile
from sensorbench.runner.experiment_file import ExperimentFile
from sensorbench.schemas.operations import Operations
from sensorbench.schemas.schema_file import SchemaFile
from sensorbench.studies.study import StudyFile


@dataclass(frozen=True)
class FileKind:
    """A kind of file that people write: its model, and where the documentation introduces it."""

    title: str
    model: type[BaseModel]
    page: str
    # A part that another kind of file describes already.
    described_there: tuple[type[BaseModel], ...] = ()


FILE_KINDS = (
    FileKind("Experiment file", ExperimentFile, "../how-to/experiments.md"),
    FileKind("Dataset mapping", Mapping, "../how-to/own-data.md"),
    FileKind("Operation set", Operations, "../how-to/write-a-schema.md"),
    FileKind("Schema file", SchemaFile, "../how-to/write-a-schema.md"),
    FileKind("Hosts", HostsFile, "../how-to/hosts.md"),
    FileKind("Search space", Space, "../how-to/tune.md"),
    FileKind("Study", StudyFile, "../contributing.md", (ExperimentFile,)),
    FileKind("Study of factors", FactorsFile, "../studies/cassandra-tuning.md"),
    FileKind("Claims", ClaimsFile, "../explanation/claims.md"),
)


@dataclass(frozen=True)
class Key:
    """A key of a file, by its path from the top."""

    path: str
    type: str
    default: str
    about: str


def reference() -> str:
    """The keys of every kind of file."""
    return "\n".join(_described(kind) for kind in FILE_KINDS)


def keys_of(model: type[BaseModel]) -> list[Key]:
    """All keys of a file, those within its parts too."""
    return list(_keys(model, "", ()))


def _described(kind: FileKind) -> str:
    skipped = {part for other in kind.described_there for part in parts_of(other)}
    rows = [(code(key.path), key.type, key.default, key.about) for key in _keys(kind.model, "", (), skipped)]
    about = f"{_first_paragraph(kind.model)} An introduction is in [{kind.title.lower()}]({kind.page})."
    return f"## {kind.title}\n\n{about}\n\n{table(('key', 'type', 'default', 'meaning'), rows)}"


def _first_paragraph(model: type[BaseModel]) -> str:
    return " ".join(cleandoc(model.__doc__ or "").split("\n\n")[0].split())


def parts_of(model: type[BaseModel]) -> list[type[BaseModel]]:
    """The models of a file's parts, of their parts, and so on."""
    found: list[type[BaseModel]] = []
    for field in model.model_fields.values():
        for part in _models_in(field.annotation):
            if part not in found:
                found += [part, *(below for below in parts_of(part) if below not in found and below is not part)]
    return found


def _keys(
    model: type[BaseModel],
    prefix: str,
    around: tuple[type[BaseModel], ...],
    skipped: set[type[BaseModel]] = frozenset(),  # type: ignore[assignment]
) -> Iterator[Key]:
    for name, field in model.model_fields.items():
        path = f"{prefix}{field.alias or name}"
        below = [part for part in _models_in(field.annotation) if part not in around]
        yield Key(path, _type_name(field.annotation), _default(field), _about(field, below))
        for part in below:
            if part in skipped:
                continue
            suffix = _suffix(field.annotation)
            kind = f"{suffix}{_discriminator(part)}."
            yield from _keys(part, f"{path}{kind}", (*around, model), skipped)


def _discriminator(part: type[BaseModel]) -> str:
    """Of a part that is one of several kinds, which one."""
    kind = part.model_fields.get("kind")
    return f"(kind={get_args(kind.annotation)[0]})" if kind and get_origin(kind.annotation) is Literal else ""


def _suffix(annotation: Any) -> str:
    """How members of a table or list stand in the path of a key."""
    annotation = _without_none(annotation)
    origin = get_origin(annotation)
    if origin is dict:
        return f".NAME{_suffix(get_args(annotation)[1])}"
    return "[]" if origin in (list, tuple) else ""


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _models_in(argument)]


def _without_none(annotation: Any) -> Any:
    if get_origin(annotation) is Annotated:
        return _without_none(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        others = [argument for argument in get_args(annotation) if argument is not type(None)]
        return _without_none(others[0]) if len(others) == 1 else annotation
    return annotation


_PLAIN_NAMES = {str: "text", int: "whole number", float: "number", bool: "true or false"}


def _type_name(annotation: Any) -> str:
    """What a value is, as people who write files call it."""
    annotation = _without_none(annotation)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type_name(arguments[0])
    if origin is Literal:
        return "one of " + ", ".join(code(argument) for argument in arguments)
    if origin in (Union, types.UnionType):
        names = dict.fromkeys(_type_name(argument) for argument in arguments if argument is not type(None))
        return " or ".join(names)
    if origin is dict:
        return f"table of {_plural(_type_name(arguments[1]))} by name"
    if origin in (list, tuple):
        return f"list of {_plural(_type_name(arguments[0]))}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "table"
    if isinstance(annotation, typing.TypeAliasType if hasattr(typing, "TypeAliasType") else ()):
        return _type_name(annotation.__value__)
    return _PLAIN_NAMES.get(annotation, "any value")


def _plural(name: str) -> str:
    return {"text": "texts", "table": "tables", "number": "numbers", "whole number": "whole numbers"}.get(name, name)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "must be given"
    default = field.get_default(call_default_factory=True)
    if default in (None, "", [], {}, ()):
        return ""
    if isinstance(default, BaseModel):
        given = default.model_dump(exclude_defaults=True, by_alias=True)
        shown = ", ".join(f"{key} = {_toml(value)}" for key, value in given.items())
        return code(f"{{ {shown} }}") if shown else ""
    return code(_toml(default))


def _toml(value: Any) -> str:
    """A plain value as it stands in a file."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return f'"{value}"' if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)


def _about(field: FieldInfo, below: list[type[BaseModel]]) -> str:
    """What is said of a key: its description, else that of the table it is."""
    if field.description:
        return field.description
    return _first_paragraph(below[0]) if len(below) == 1 else ""
