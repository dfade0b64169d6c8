"""What readers of logs make of them: entries, each a statement with what the log says of it."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sensorbench.traffic.lexer import Dialect
from sensorbench.traffic.trace import TemplateKind

# A value that was bound to a statement: as the log writes it.
Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Form:
    """What a reader says of the template of a statement that is not SQL: what it does, and the tables that it names."""

    kind: TemplateKind
    tables: tuple[str, ...] = ()


@dataclass(slots=True)
class Entry:
    """A statement of a log.

    Args:
        at_us: when it arrived (µs since 1970, UTC).
        session: what the log calls its session.
        statement: its text.
        values: what was bound to $1, $2, …; empty if its literals stand in its text.
        duration_s: how long the server took.
        rows: how many rows it returned.
        error: what the server said when it failed.
        form: where the statement is a template already, with $1, $2, … in the places of its values; None if it is SQL to be read.
        keyspace: the keyspace that the session used, where the log says it.
        consistency: the consistency level that was requested, where the log says it.

    """

    at_us: int
    session: Hashable
    statement: str
    values: tuple[Value, ...] = ()
    duration_s: float | None = None
    rows: int | None = None
    error: str | None = None
    form: Form | None = None
    keyspace: str | None = None
    consistency: str | None = None


@dataclass
class Skipped:
    """How many entries of a log were not statements, counted by its reader."""

    entries: int = 0


class LogReader(Protocol):
    """Reads the entries of one log, a file that may be longer than the memory. Raises UsageError that names file and line."""

    def __call__(self, path: Path, skipped: Skipped) -> Iterator[Entry]:
        """The statements of a log, those of each session in the order in which it sent them."""


@dataclass(frozen=True)
class LogFormat:
    """A form of a log: what it is called, whose it is, and how it is read. Its dialect is None if its reader makes the templates."""

    name: str
    database: str
    dialect: Dialect | None
    read: LogReader
