"""Writes read back one by one: whether an acknowledged one was lost, and whether one with an unknown outcome took place."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sensorbench import _engine
from sensorbench.schemas import Operations, Schema
from sensorbench.verification.ask_each import ask_each

IN_FLIGHT = 16


def reader_of(write: str, operations: Operations, schema: Schema) -> str | None:
    """The question that asks for what a write wrote, if the schema knows one."""
    return next((name for name in schema.file.operation if _reads_only(operations, name, write)), None)


def _reads_only(operations: Operations, name: str, write: str) -> bool:
    draws = [operations.draw[draw].written for draw in operations.operation[name].draws]
    return bool(draws) and all(written is not None and written.operation == write for written in draws)


def readings_a_write(write: str, operations: Operations, schema: Schema) -> int:
    """How many rows one write is."""
    return int(schema.work(write, operations.operation[write]).get("readings", 1))


def one_of_each(rows: pa.Table, readings: int) -> pa.Table:
    """Of the rows of each write, so many one after the other, one: of one write the first, of the next the second, and so on."""
    writes = np.arange(rows.num_rows // readings)
    return rows.take(pa.array(writes * readings + writes % readings)) if readings > 1 else rows


def are_there(target: _engine.Target, operations: Operations, schema: Schema, reader: str, rows: pa.Table) -> NDArray[np.bool_]:
    """For each written row, whether the question finds it."""
    if rows.num_rows == 0:
        return np.zeros(0, dtype=np.bool_)
    operation = operations.operation[reader]
    keys = _keys(operations, reader, rows)
    answers = ask_each(target, reader, operation, schema, keys, in_flight=IN_FLIGHT).answers
    # An operation that failed has no answer: its row was not found.
    found = np.zeros(keys.num_rows, dtype=np.bool_)
    found[answers.filter(pc.greater(answers["rows"], 0))["k"].to_numpy()] = True
    return found


def _keys(operations: Operations, reader: str, rows: pa.Table) -> pa.Table:
    """The parameters with which the question asks for each row: where it asks for a stretch of time, a millisecond from the row's
    time on, because no shorter one can be told to every database.
    """
    operation = operations.operation[reader]
    for draw in operation.draws:
        written = operations.draw[draw].written
        if written and written.span:
            time = rows[written.span.time]
            rows = rows.append_column("from", time).append_column("to", pc.add(time, pa.scalar(1000, pa.duration("us"))))
    return rows.select(list(operation.parameters))
