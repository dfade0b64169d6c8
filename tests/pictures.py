"""Pictures of charts, which take most of a report's time: in the tests' own process each kind of chart is drawn once.

Two charts are of one kind when their specifications differ in data, words and numbers alone. What is drawn is drawn as for users,
so that a chart that cannot be drawn fails in whichever test meets it first; the next one of its kind gets the same picture.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from sensorbench.report import build

Picture = tuple[str, bytes]
# What a chart is made of: its values make a kind of their own.
_STRUCTURE = {"mark", "type", "field", "aggregate", "bin", "timeUnit", "filter", "calculate", "as", "param", "condition"}
_DATA = {"data", "datasets"}


def kind_of(specification: Any, key: str = "") -> Any:
    """What charts of one kind have in common, as a key."""
    if isinstance(specification, dict):
        return tuple((name, kind_of(value, name)) for name, value in sorted(specification.items()) if name not in _DATA)
    if isinstance(specification, list):
        parts = (kind_of(value, key) for value in specification)
        return tuple(parts if any(isinstance(value, dict) for value in specification) or key in _STRUCTURE else ())
    return specification if key in _STRUCTURE else type(specification).__name__


def once_for_each_kind(draw: Callable[[dict[str, Any]], Picture]) -> Callable[[dict[str, Any]], Picture]:
    """The same, but charts of a kind that was drawn before get that picture."""
    drawn: dict[Any, Picture] = {}

    def draw_or_repeat(specification: dict[str, Any]) -> Picture:
        kind = kind_of(specification)
        if kind not in drawn:
            drawn[kind] = draw(specification)
        return drawn[kind]

    return draw_or_repeat


@contextmanager
def drawn_once() -> Iterator[None]:
    """Reports of this process draw each kind of chart once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "picture", once_for_each_kind(build.picture))
        yield
