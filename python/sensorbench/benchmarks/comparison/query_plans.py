"""How a database goes about each operation, as it says itself: whether it uses an index or looks at every row."""

import json
from typing import Any

import pyarrow as pa

from sensorbench import _engine
from sensorbench.errors import EngineError
from sensorbench.runner.plan import Parameters
from sensorbench.runner.settings import Setting
from sensorbench.schemas import Operation, Operations
from sensorbench.schemas.explains import Explain, explain_of


def query_plans(
    target: _engine.Target, setting: Setting, operations: Operations, names: list[str], parameters: Parameters
) -> dict[str, dict[str, Any]]:
    """For each operation that reads by one statement, and not what was just written: the plan's text, and the access path in a few
    words; for one that cannot be explained why not. Nothing for databases that have no plans.
    """
    explain = explain_of(setting.target.database.dialect)
    if explain is None:
        return {}
    plans: dict[str, dict[str, Any]] = {}
    for name in names:
        operation = operations.operation[name]
        work = setting.schema.work(name, operation)
        has_candidates = all(draw in parameters.tables for draw in operation.draws)
        if operation.writes is not None or not has_candidates or work["derive"] or work.get("for_each") or work.get("tables"):
            continue
        try:
            rows = _explained(target, explain, name, operation, setting.schema.statement(name), parameters)
        except EngineError as error:
            plans[name] = {"access": None, "text": f"could not be had: {error}"}
            continue
        text = "\n".join(str(row[-1]) for row in rows)
        plans[name] = {"access": explain.access(text), "text": text}
    return plans


def _explained(
    target: _engine.Target, explain: Explain, name: str, operation: Operation, statement: dict[str, Any], parameters: Parameters
) -> list[list[Any]]:
    columns = [{"name": column.name, "type": column.type, "computed": False} for column in explain.columns]
    asked = {
        **operation.driver_operation(name),
        "columns": columns,
        "order": [],
        "statement": {**statement, "statement": f"{explain.words}{statement['statement'].strip()}"},
    }
    rows: list[list[Any]] = json.loads(target.ask(json.dumps(asked), _first_values(operation, parameters)))
    return rows


def _first_values(operation: Operation, parameters: Parameters) -> pa.RecordBatchReader:
    """The first candidate for each parameter."""
    drawn = [parameters.tables[draw] for draw in operation.draws if draw in parameters.tables]
    columns = {name: next(table[name] for table in drawn if name in table.column_names) for name in operation.parameters}
    if not columns:
        return pa.table({}).to_reader()
    return pa.table({name: column.slice(0, 1) for name, column in columns.items()}).to_reader()
