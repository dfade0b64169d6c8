"""Writes read back one by one: whether an acknowledged one was lost, and whether one with an unknown outcome took place."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sensorbench import _engine
from sensorbench.experiment.plan import as_json
from sensorbench.schemas import Operations, Schema

IN_FLIGHT = 16


def reader_of(write: str, operations: Operations, schema: Schema) -> str | None:
    """The question that asks for what a write wrote, if the schema knows one."""
    return next((name for name in schema.file.operation if _reads_only(operations, name, write)), None)


def _reads_only(operations: Operations, name: str, write: str) -> bool:
    draws = [operations.draw[draw].written for draw in operations.operation[name].draws]
    return bool(draws) and all(written is not None and written.operation == write for written in draws)


def are_there(target: _engine.Target, operations: Operations, schema: Schema, reader: str, rows: pa.Table) -> NDArray[np.bool_]:
    """For each written row, whether the question finds it."""
    if rows.num_rows == 0:
        return np.zeros(0, dtype=np.bool_)
    operation = operations.operation[reader]
    keys = rows.select(list(operation.parameters))
    plan = {
        "seed": 0,
        "operations": [
            {
                "weight": 1.0,
                "operation": {**operation.driver_operation(reader), "statement": schema.statement(reader)},
                "parameters": [{"draw": 0, "column": number} for number in range(keys.num_columns)],
                "work": schema.work(reader, operation),
            }
        ],
        "draws": [{"rows": {"table": 0, "choice": "sequential"}}],
        "phases": [{"name": "read_back", "operations": keys.num_rows}],
        "in_flight": IN_FLIGHT,
        "timeout_s": 600.0,
        "answers_every": 1,
    }
    run = target.run(as_json(plan), [keys.to_reader()])
    answers = []
    while not run.wait(0.25):
        answers += run.take()["answers"].to_pylist()
    answers += run.end()[0]["answers"].to_pylist()
    # An operation that failed has no answer: its row was not found.
    found = np.zeros(keys.num_rows, dtype=np.bool_)
    found[[answer["k"] for answer in answers if answer["rows"] > 0]] = True
    return found
