"""One question asked for each row of a table, by the same engine as everything that is measured, and never beside a measurement."""

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from sensorbench import _engine
from sensorbench.results.engine_plan import EnginePlan, ParameterOrigin
from sensorbench.results.manifest import RunTotals
from sensorbench.runner import Parameters, planned_operation, run_to_end
from sensorbench.schemas import Operation, Schema

_TABLE = "rows"
_RECORDED: tuple[Literal["operations"], Literal["answers"]] = ("operations", "answers")


@dataclass(frozen=True)
class Answered:
    """Questions that were asked: the run that did it, which is over, and as a whole, its plan and parameters, and what was recorded."""

    run: _engine.Run
    totals: RunTotals
    plan: EnginePlan
    parameters: Parameters
    operations: pa.Table
    answers: pa.Table


def ask_each(
    target: _engine.Target,
    name: str,
    operation: Operation,
    schema: Schema,
    rows: pa.Table,
    *,
    concurrency: int = 1,
    timeout_s: float = 600.0,
    is_logged: bool = False,
) -> Answered:
    """Asks an operation with the parameters of each row, in their order, once if it has none. `k` counts the rows from 0."""
    columns: list[ParameterOrigin] = [
        {"source": 0, "column": rows.column_names.index(parameter)} for parameter in operation.parameters
    ]
    plan: EnginePlan = {
        "seed": 0,
        "operations": [planned_operation(name, operation, schema, columns)],
        "parameter_sources": [{"rows": {"table": 0, "choice": "sequential"}}] if columns else [],
        "phases": [{"name": "queries", "operations": rows.num_rows if columns else 1}],
        "concurrency": concurrency,
        "timeout_s": timeout_s,
        "log_every": 1 if is_logged else None,
        "answers_every": 1,
    }
    parameters = Parameters([_TABLE], {_TABLE: rows} if columns else {})
    segments: list[_engine.Segment] = []
    run, totals = run_to_end(target, plan, parameters.readers(), lambda _, segment: segments.append(segment))
    operations, answers = ([segment[table] for segment in segments] for table in _RECORDED)
    return Answered(run, totals, plan, parameters, pa.Table.from_batches(operations), pa.Table.from_batches(answers))
