"""Adds to the statements of a general log what the slow log says of them: how long they took, and how many rows they returned.

The general log has a statement when it arrives, the slow log when it has ended. Of a session, the nth statement of some text in the one is the nth
of that text in the other. Both may be longer than the memory: DuckDB joins them on disk.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import duckdb
import pyarrow as pa

from sensorbench.traffic.entries import Entry
from sensorbench.traffic.trace import BATCH_ROWS
from sensorbench.traffic.workbench import workbench_on_disk

_STATEMENTS = pa.schema([("id", pa.int64()), ("at", pa.int64()), ("session", pa.string()), ("statement", pa.string())])
_ENDED = pa.schema(
    [("id", pa.int64()), ("session", pa.string()), ("statement", pa.string()), ("us", pa.int64()), ("sent", pa.int64())]
)
_NUMBERED = "SELECT *, row_number() OVER (PARTITION BY session, md5(statement) ORDER BY id) AS number FROM {}"
_JOINED = (
    f"SELECT a.at, a.session, a.statement, e.us, e.sent FROM ({_NUMBERED.format('arrived')}) a LEFT JOIN ({_NUMBERED.format('ended')}) e "
    "ON a.session = e.session AND md5(a.statement) = md5(e.statement) AND a.number = e.number ORDER BY a.id"
)


@dataclass(frozen=True)
class Ended:
    """A statement that has ended: its session and text, how long it took (µs), and the rows that it returned."""

    session: str
    statement: str
    took_us: int
    rows: int


def with_durations(arrived: Iterator[Entry], ended: Iterator[Ended]) -> Iterator[Entry]:
    """The statements of a general log in their order, with what a slow log says of them where it has them."""
    with workbench_on_disk(file="logs.duckdb") as workbench:
        rows_of_arrived = ((number, entry.at_us, str(entry.session), entry.statement) for number, entry in enumerate(arrived))
        rows_of_ended = ((number, end.session, end.statement, end.took_us, end.rows) for number, end in enumerate(ended))
        _store(workbench, "arrived", _STATEMENTS, rows_of_arrived)
        _store(workbench, "ended", _ENDED, rows_of_ended)
        for batch in workbench.sql(_JOINED).to_arrow_reader(BATCH_ROWS):
            for at_us, session, statement, took_us, rows in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                yield Entry(at_us, session, statement, duration_s=None if took_us is None else took_us / 1e6, rows=rows)


def _store(workbench: duckdb.DuckDBPyConnection, table: str, schema: pa.Schema, rows: Iterator[tuple[object, ...]]) -> None:
    workbench.from_arrow(schema.empty_table()).create(table)
    while part := list(islice(rows, BATCH_ROWS)):
        columns = [pa.array(values, column.type) for column, values in zip(schema, zip(*part, strict=True), strict=True)]
        workbench.from_arrow(pa.Table.from_arrays(columns, schema=schema)).insert_into(table)
