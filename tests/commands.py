"""All commands of the command line, with their options."""

from collections.abc import Iterator
from typing import Any

from sensorbench.cli.lazy import LazyGroup


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Each command, as it is written, with the words that call it."""
    yield path, command
    for name, listed in getattr(command, "commands", {}).items():
        yield from commands(command.load(name) if isinstance(command, LazyGroup) else listed, (*path, name))
