"""Help as the sources have it: square brackets stay, and what is broken into lines in a docstring is one line in a list."""

import inspect
from collections.abc import Iterator
from typing import Any


def with_plain_help(command: Any) -> Any:
    """The same command, whose help texts and those of all below it are printed as they are written, once and for all.

    Typer takes help for rich's markup, in which `[spark]` is a style, and keeps the line breaks of docstrings.
    """
    from rich.markup import escape

    for below in _with_all_below(command):
        for described in (below, *below.params):
            text = getattr(described, "help", None)
            if text:
                described.help = escape(unbroken(text))
    return command


def _with_all_below(command: Any) -> Iterator[Any]:
    """A command and those commands below it that are imported already."""
    yield command
    for item in getattr(command, "commands", {}).values():
        yield from _with_all_below(item)


def unbroken(text: str) -> str:
    """A text whose paragraphs are a line each."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in inspect.cleandoc(text).split("\n\n"))
