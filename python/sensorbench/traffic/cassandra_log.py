"""Cassandra's full query log. Its own library reads the files; a line of JSON of each record comes here."""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from sensorbench import lab
from sensorbench.errors import UsageError, problem_text
from sensorbench.traffic.cassandra_types import Columns, MarkerTypes, decoded
from sensorbench.traffic.entries import Entry, Skipped
from sensorbench.traffic.lexer import CQL, number_markers, split_statements, tokens_of

_DATABASE = "cassandra"
# The log does not say which connection a query came by, and drivers send many by each at the same time: queries are dealt to this many in turn.
SESSIONS = 64
# A batch that was sent as a text.
_BATCH = re.compile(r"\s*(BEGIN\s+(?:UNLOGGED\s+|COUNTER\s+)?BATCH(?:\s+USING\s+TIMESTAMP\s+(?:\d+|\?))?)\b", re.IGNORECASE)
_BEGINS = {"LOGGED": "BEGIN BATCH", "UNLOGGED": "BEGIN UNLOGGED BATCH", "COUNTER": "BEGIN COUNTER BATCH"}
_APPLY = "APPLY BATCH"
_REMEMBERED = 4096


class QueryRecord(BaseModel):
    """A record of the log: a query, or those of a batch, each with the bytes that were bound to it."""

    model_config = ConfigDict(extra="forbid")

    at_ms: int
    consistency: str
    keyspace: str | None
    batch: str | None
    statements: list[tuple[str, list[str | None]]]


def is_query_log(path: Path) -> bool:
    """Whether a folder has the files of a full query log."""
    return path.is_dir() and next(path.glob("*.cq4"), None) is not None


def read_query_log(path: Path, skipped: Skipped) -> Iterator[Entry]:
    """The statements of a full query log, a folder. Those of a batch stand between its beginning and its end, and came at the same time. Raises
    UsageError for what is not a log, FailedError where the library cannot read it.
    """
    del skipped
    if not is_query_log(path):
        raise UsageError(f"{path}: expected the folder of a full query log, with files *.cq4")
    return entries_of(path, lab.read_query_log(_DATABASE, path))


def entries_of(path: Path, lines: Iterator[bytes], columns: Columns | None = None) -> Iterator[Entry]:
    """The statements of records, each a line of JSON. Raises UsageError for a record that is none.

    Args:
        path: where they come from, for messages.
        lines: the records.
        columns: of the tables, which say of which types values are; without them these are bytes.

    """
    types = MarkerTypes(columns or {})
    for number, line in enumerate(lines):
        try:
            record = QueryRecord.model_validate_json(line)
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]
            raise UsageError(
                f"{path}: record {number + 1}: {problem_text(problem)}; expected a record of a full query log"
            ) from None
        entry = partial(
            Entry,
            record.at_ms * 1000,
            number % SESSIONS,
            keyspace=record.keyspace or None,
            consistency=record.consistency,
        )
        if record.batch is not None:
            yield entry(_BEGINS.get(record.batch, "BEGIN BATCH"))
            for text, values in record.statements:
                yield from _statements(entry, text, values, types, record.keyspace)
            yield entry(_APPLY)
        else:
            ((text, values),) = record.statements
            yield from _statements(entry, text, values, types, record.keyspace)


def _statements(
    entry: Callable[..., Entry], text: str, values: list[str | None], types: MarkerTypes, keyspace: str | None
) -> Iterator[Entry]:
    """A query as the server was sent it: one statement, or a batch as a text."""
    rest = iter(values)
    for part, markers in _parts(text, has_values=bool(values)):
        its_types = types.of(part, keyspace) if markers else ()
        yield entry(part, tuple(decoded(next(rest, None), its_type) for its_type in its_types))


@lru_cache(_REMEMBERED)
def _parts(text: str, *, has_values: bool) -> tuple[tuple[str, int], ...]:
    """The statements of a text, each with $1, $2, … in the places of its markers, and how many these are."""
    batch = _BATCH.match(text)
    parts = [batch[1], *split_statements(text[batch.end() :], CQL)] if batch else [text]
    return tuple((number_markers(part), _markers(part)) if has_values else (part, 0) for part in parts)


def _markers(text: str) -> int:
    return sum(token.kind == "placeholder" for token in tokens_of(number_markers(text), CQL))
