"""How a database goes about each operation, as it says itself: whether it uses an index or looks at every row."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sensorbench import _engine
from sensorbench.errors import EngineError
from sensorbench.experiment.plan import Parameters
from sensorbench.experiment.settings import Setting
from sensorbench.schemas import Operation, Operations

SCAN = "scan"


@dataclass(frozen=True)
class Explain:
    """How a database is asked for a plan: the words before the statement, which columns come back, and how they are read.

    `text` makes one text of the rows; `access` finds in it the index that is used, or that all rows are looked at.
    """

    words: str
    columns: tuple[tuple[str, str], ...]
    text: Callable[[list[list[Any]]], str]
    access: Callable[[str], str | None]


def _lines(rows: list[list[Any]]) -> str:
    return "\n".join(str(row[-1]) for row in rows)


def _access_of_postgresql(text: str) -> str | None:
    index = re.search(r"(?:Index Scan|Index Only Scan|Bitmap Index Scan)(?: Backward)? (?:using|on) (\S+)", text)
    return f"index {index[1]}" if index else SCAN if "Seq Scan" in text else None


def _access_of_mysql(text: str) -> str | None:
    """`access_type` ALL is every row of the table; `index` is every entry of an index."""
    kind, key = re.search(r'"access_type": "(\w+)"', text), re.search(r'"key": "(\w+)"', text)
    if kind is None:
        return None
    if kind[1] == "ALL" or key is None:
        return SCAN
    return f"scan of index {key[1]}" if kind[1] == "index" else f"index {key[1]}"


def _access_of_sqlite(text: str) -> str | None:
    index = re.search(r"SEARCH \w+ USING (?:COVERING )?(?:INDEX (\S+)|(PRIMARY KEY|INTEGER PRIMARY KEY))", text)
    if index:
        return f"index {index[1] or index[2]}"
    covering = re.search(r"SCAN \w+ USING COVERING INDEX (\S+)", text)
    return f"scan of index {covering[1]}" if covering else SCAN if "SCAN" in text else None


_NODE = (("id", "integer"), ("parent", "integer"), ("notused", "integer"), ("detail", "text"))
# By dialect. Cassandra and Redis have no plans: a statement names the one way in which it is executed.
EXPLAINS = {
    "mysql": Explain("EXPLAIN FORMAT=JSON ", (("plan", "text"),), _lines, _access_of_mysql),
    "postgresql": Explain("EXPLAIN ", (("plan", "text"),), _lines, _access_of_postgresql),
    "sqlite": Explain("EXPLAIN QUERY PLAN ", _NODE, _lines, _access_of_sqlite),
}


def query_plans(
    target: _engine.Target, setting: Setting, operations: Operations, names: list[str], parameters: Parameters
) -> dict[str, dict[str, Any]]:
    """For each operation that reads by one statement, and not what was just written: the plan's text, and the access path in a few
    words; for one that cannot be explained why not. Nothing for databases that have no plans.
    """
    explain = EXPLAINS.get(setting.target.database.dialect)
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
        text = explain.text(rows)
        plans[name] = {"access": explain.access(text), "text": text}
    return plans


def _explained(
    target: _engine.Target, explain: Explain, name: str, operation: Operation, statement: dict[str, Any], parameters: Parameters
) -> list[list[Any]]:
    columns = [{"name": column, "type": value_type, "computed": False} for column, value_type in explain.columns]
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
