"""Pictures of charts, which take most of a report's time: in the tests' own process each kind of chart is checked and drawn once.

Two charts are of one kind when their specifications differ in data, words and numbers alone. What is drawn is checked and drawn as for users,
so that a chart that is wrong or cannot be drawn fails in whichever test meets it first; the next one of its kind gets the same picture.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from altair.utils import schemapi

from sensorbench.report import build

Picture = tuple[str, bytes]
# What a chart is made of: its values make a kind of their own when it is drawn.
_STRUCTURE = {"mark", "type", "field", "aggregate", "bin", "timeUnit", "filter", "calculate", "as", "param", "condition"}
_DATA = {"data", "datasets"}
# What is said of data. All other words make a kind of their own when a specification is checked.
_SAID = {"title", "text", "domain", "range", "sort", "values"}


def kind_of(specification: Any, key: str = "") -> Any:
    """What charts of one kind have in common, as a key."""
    if isinstance(specification, dict):
        return tuple((name, kind_of(value, name)) for name, value in sorted(specification.items()) if name not in _DATA)
    if isinstance(specification, list):
        parts = (kind_of(value, key) for value in specification)
        return tuple(parts if any(isinstance(value, dict) for value in specification) or key in _STRUCTURE else ())
    return specification if key in _STRUCTURE else type(specification).__name__


def words_of(specification: Any) -> Any:
    """What charts have in common that differ in data, in what is said of them, and in numbers alone, as a key."""
    if isinstance(specification, dict):
        known = {name: value for name, value in sorted(specification.items()) if name not in _DATA}
        return tuple((name, _shape_of(value) if name in _SAID else words_of(value)) for name, value in known.items())
    if isinstance(specification, list):
        return tuple(map(words_of, specification))
    return specification if isinstance(specification, str) else type(specification).__name__


def _shape_of(said: Any) -> Any:
    """A text or a list of such by their types; whatever else by its words."""
    if isinstance(said, list) and not any(isinstance(item, dict) for item in said):
        return (list.__name__, *sorted({type(item).__name__ for item in said}))
    return words_of(said) if isinstance(said, (dict, list)) else type(said).__name__


def once_for_each_kind(draw: Callable[[dict[str, Any]], Picture]) -> Callable[[dict[str, Any]], Picture]:
    """The same, but charts of a kind that was drawn before get that picture."""
    drawn: dict[Any, Picture] = {}

    def draw_or_repeat(specification: dict[str, Any]) -> Picture:
        kind = kind_of(specification)
        if kind not in drawn:
            drawn[kind] = draw(specification)
        return drawn[kind]

    return draw_or_repeat


def check_once_for_each_kind(check: Callable[..., Any]) -> Callable[..., Any]:
    """The same check of a specification by a schema, but what is of a kind that was found right before is right."""
    right: set[Any] = set()

    def check_or_trust(specification: dict[str, Any], schema: dict[str, Any], *rest: Any, **words: Any) -> Any:
        kind = (words_of(specification), kind_of_schema(schema))
        if kind in right:
            return None
        problem = check(specification, schema, *rest, **words)
        if problem is None:
            right.add(kind)
        return problem

    return check_or_trust


def kind_of_schema(schema: dict[str, Any]) -> str:
    """A schema as a key: altair's are references to parts of one that is the same for all."""
    return json.dumps(schema, sort_keys=True) if len(schema) == 1 else str(id(schema))


@contextmanager
def drawn_once() -> Iterator[None]:
    """Reports of this process check and draw each kind of chart once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "picture", once_for_each_kind(build.picture))
        patch.setattr(schemapi, "validate_jsonschema", check_once_for_each_kind(schemapi.validate_jsonschema))
        yield
