"""Makes a trace of entries of logs: templates, sessions, transactions."""

import json
from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from sensorbench.errors import UsageError
from sensorbench.paths import remove_if_empty
from sensorbench.traffic.entries import Entry, LogFormat, Skipped, Value
from sensorbench.traffic.lexer import (
    Dialect,
    Lifted,
    has_placeholders,
    kind_of,
    lift_literals,
    split_statements,
    tables_of,
    without_comments,
)
from sensorbench.traffic.trace import BATCH_ROWS, STATEMENTS, TRACE_FILE, StatementWriter, Template, TemplateKind, Trace

# Statements that came before are looked up by their text, which is quicker than to read them again; those with literals are mostly new, and long
# ones would fill the memory.
_REMEMBERED, _LONGEST_REMEMBERED = 4096, 4096
# This much of parameters is kept before rows are written (characters), however few rows that are.
_MAX_KEPT = 16 << 20
_MIXED = "mixed"
_to_json = json.JSONEncoder(ensure_ascii=False).encode


@dataclass(slots=True)
class _Session:
    number: int
    statements: int = 0
    transactions: int = 0
    is_in_transaction: bool = False
    last_us: int = 0

    def transaction_of(self, kind: TemplateKind) -> int | None:
        """The number of the transaction that a statement of a kind is in; the statements that begin and end it are in it, too."""
        if kind == "begin" and not self.is_in_transaction:
            self.is_in_transaction = True
            self.transactions += 1
        number = self.transactions - 1 if self.is_in_transaction else None
        if kind in {"commit", "rollback"}:
            self.is_in_transaction = False
        return number


@dataclass
class _Draft:
    """A template as far as it is known."""

    number: int
    kind: TemplateKind
    types: list[str]
    tables: list[str]


class _Key(NamedTuple):
    """What makes a template: the same text at another consistency level is another one."""

    statement: str
    keyspace: str | None
    consistency: str | None


@dataclass
class _Rows:
    """Rows that are not written yet, a list for each column."""

    columns: dict[str, list[object]] = field(default_factory=lambda: {name: [] for name in STATEMENTS.names})

    def batch(self) -> pa.RecordBatch:
        """All of them."""
        arrays = [pa.array(self.columns[column.name], column.type) for column in STATEMENTS]
        return pa.RecordBatch.from_arrays(arrays, schema=STATEMENTS)


class TraceMaker:
    """Makes a trace of statements as they come: those of each session in its order. In memory are the templates, a few numbers for each
    session, and some rows.
    """

    def __init__(self, folder: Path, log_format: LogFormat) -> None:
        self._folder, self._format = folder, log_format
        self._writer = StatementWriter(folder)
        self._sessions: dict[Hashable, _Session] = {}
        self._templates: dict[_Key, _Draft] = {}
        self._remembered: dict[str, list[Lifted]] = {}
        self._rows, self._kept = _Rows(), 0
        self._first_us: int | None = None

    def add(self, entry: Entry) -> None:
        """Adds what one entry has; several statements that were sent together become a row each, of which the last has the duration."""
        lifted = self._lifted(entry)
        for number, statement in enumerate(lifted, start=1):
            self._add(entry, statement, is_last=number == len(lifted))

    def finish(self, *, version: str, origin: Sequence[Path], skipped: int) -> Trace:
        """Writes what is not written yet, sorts, and describes it. Raises UsageError if there was no statement at all."""
        if self._first_us is None:
            raise UsageError(
                f"{', '.join(map(str, origin))}: no statement is there ({skipped} other entries); expected a log of statements: "
                "docs/how-to/traffic.md says which settings write one"
            )
        with self._writer:
            self._writer.write(self._rows.batch())
        trace = Trace(
            database=self._format.database,
            version=version,
            origin=[path.name for path in origin],
            started=datetime.fromtimestamp(self._first_us / 1e6, UTC),
            statements=self._writer.rows,
            sessions=len(self._sessions),
            skipped=skipped,
            templates=[
                Template(
                    number=draft.number,
                    statement=key.statement,
                    kind=draft.kind,
                    parameters=draft.types,
                    tables=draft.tables,
                    keyspace=key.keyspace,
                    consistency=key.consistency,
                )
                for key, draft in self._templates.items()
            ],
        )
        (self._folder / TRACE_FILE).write_text(trace.model_dump_json(indent=1) + "\n", encoding="utf-8")
        return trace

    def _tables(self, entry: Entry, key: _Key) -> list[str]:
        dialect = self._format.dialect
        if entry.form is not None or dialect is None:
            return list(entry.form.tables) if entry.form else []
        return tables_of(key.statement, dialect)

    def drop(self) -> None:
        """Removes what was written so far."""
        with suppress(_DroppedError), self._writer:
            raise _DroppedError

    def _lifted(self, entry: Entry) -> list[Lifted]:
        dialect, text = self._format.dialect, entry.statement
        if entry.form is not None or dialect is None:
            return [Lifted(text, (), (), entry.form.kind if entry.form else "other")]
        found = self._remembered.get(text)
        if found is None:
            found = _parsed(text, dialect)
            if len(text) > _LONGEST_REMEMBERED:
                return found
            if len(self._remembered) >= _REMEMBERED:
                self._remembered.clear()
            self._remembered[text] = found
        return found

    def _add(self, entry: Entry, lifted: Lifted, *, is_last: bool) -> None:
        values: tuple[Value, ...] = (*lifted.literals, *entry.values) if not lifted.literals else lifted.literals
        types = lifted.types or tuple("null" if value is None else _type_of(value) for value in values)
        session = self._sessions.get(entry.session)
        if session is None:
            session = self._sessions[entry.session] = _Session(len(self._sessions))
        draft = self._draft(entry, lifted, types)
        # A session sends one statement after the other: a log's times are of milliseconds, and its durations of microseconds.
        at_us = session.last_us = max(entry.at_us, session.last_us)
        self._first_us = at_us if self._first_us is None else min(self._first_us, at_us)
        columns = self._rows.columns
        columns["at"].append(at_us)
        columns["session"].append(session.number)
        columns["sequence"].append(session.statements)
        columns["transaction"].append(session.transaction_of(lifted.kind))
        columns["template"].append(draft.number)
        parameters = _to_json(values)
        self._kept += len(parameters)
        columns["parameters"].append(parameters)
        columns["duration"].append(entry.duration_s if is_last else None)
        columns["rows"].append(entry.rows if is_last else None)
        columns["error"].append(entry.error if is_last else None)
        session.statements += 1
        if len(columns["at"]) >= BATCH_ROWS or self._kept >= _MAX_KEPT:
            self._writer.write(self._rows.batch())
            self._rows, self._kept = _Rows(), 0

    def _draft(self, entry: Entry, lifted: Lifted, types: tuple[str, ...]) -> _Draft:
        key = _Key(lifted.statement, entry.keyspace, entry.consistency)
        draft = self._templates.get(key)
        if draft is None:
            draft = self._templates[key] = _Draft(len(self._templates), lifted.kind, list(types), self._tables(entry, key))
        elif draft.types != list(types):
            known = draft.types + ["null"] * (len(types) - len(draft.types))
            draft.types = [
                now if before in {now, "null"} else before if now == "null" else _MIXED
                for before, now in zip(known, [*types, *["null"] * (len(known) - len(types))], strict=True)
            ]
        return draft


def _parsed(text: str, dialect: Dialect) -> list[Lifted]:
    if has_placeholders(text, dialect):
        # What was prepared has its values elsewhere; literals that stand in its text belong to it.
        return [Lifted(without_comments(text, dialect), (), (), kind_of(text, dialect))]
    return [lift_literals(part, dialect) for part in split_statements(text, dialect)]


class _DroppedError(Exception):
    """What was written is not wanted."""


def _type_of(value: Value) -> str:
    if isinstance(value, bool):
        return "boolean"
    return "text" if isinstance(value, str) else "integer" if isinstance(value, int) else "numeric"


def make_trace(
    entries: Iterator[Entry], folder: Path, log_format: LogFormat, origin: Sequence[Path], skipped: Skipped, version: str = ""
) -> Trace:
    """Makes a trace of the entries of logs.

    Args:
        entries: those of each session in its order.
        folder: where the trace is to be; it is made.
        log_format: what the entries were read from.
        origin: the files that they come from.
        skipped: what their reader counts.
        version: of the server, where it is known.

    Returns:
        The trace. Where reading fails, nothing is left of it.

    Raises:
        UsageError: for a log that cannot be read, or that has no statement.

    """
    folder.mkdir(parents=True, exist_ok=True)
    maker = TraceMaker(folder, log_format)
    try:
        for entry in entries:
            maker.add(entry)
        return maker.finish(version=version, origin=origin, skipped=skipped.entries)
    except BaseException:
        maker.drop()
        remove_if_empty(folder)
        raise
