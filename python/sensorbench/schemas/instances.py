"""Instances: one operation that is asked at several places, such as seven ranges, each measured as an operation of its own."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from sensorbench.errors import UsageError
from sensorbench.schemas.operations import Operation, OperationInstance, Operations, ParameterSource, instance_name
from sensorbench.schemas.types import canonical_columns

if TYPE_CHECKING:
    import duckdb

# Columns of a parameter source of instances that are not parameters: the instance's name, and which share of the rows it is about.
NAME, SHARE = "instance", "share"


def with_instances(
    operations: Operations, names: Collection[str], workbench: "duckdb.DuckDBPyConnection", where: str
) -> Operations:
    """The operations, of those with these names each that has instances replaced by them. `where` says in errors which file asks
    for them.
    """
    found: dict[str, Operation] = {}
    sources = dict(operations.parameter_source)
    for name, operation in operations.operation.items():
        if operation.instances is None or name not in names:
            found[name] = operation
            continue
        place = f"{where}, parameter_source.{operation.instances}"
        all_rows, types = _rows(operations.parameter_source[operation.instances], workbench, place)
        for rows in _by_instance(all_rows):
            instance = OperationInstance(of=name, name=rows[0].name, share=rows[0].share)
            source = f"{operation.instances}.{instance.name}"
            sources[source] = ParameterSource(query=_query_of(rows, types))
            own_sources = [
                source if parameter_source == operation.instances else parameter_source
                for parameter_source in operation.parameter_sources
            ]
            found[instance_name(instance)] = _instance(operation, instance, own_sources)
    return operations.model_copy(update={"parameter_source": sources, "operation": found})


def mix_of_instances(mix: Mapping[str, float], operations: Operations) -> dict[str, float]:
    """A mix in which each instance has the weight of its operation."""
    whole: dict[str, float] = {}
    for name, weight in mix.items():
        instances = [
            key for key, operation in operations.operation.items() if operation.instance and operation.instance.of == name
        ]
        whole |= dict.fromkeys(instances or [name], weight)
    return whole


@dataclass(frozen=True)
class _Row:
    """A row of a parameter source of instances: whose it is, which share of the rows that is about, and the parameters."""

    name: str
    share: float | None
    parameters: dict[str, object]


def _rows(source: ParameterSource, workbench: "duckdb.DuckDBPyConnection", where: str) -> tuple[list[_Row], dict[str, str]]:
    """The rows of a parameter source of instances, and the types of DuckDB of its parameters."""
    import duckdb

    try:
        relation = workbench.sql(source.query or "")
        if "bytes" in canonical_columns(relation).values():
            raise ValueError("parameters of instances cannot be bytes")
        types = {name: str(found) for name, found in zip(relation.columns, relation.types, strict=True)}
        rows = [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]
    except (duckdb.Error, ValueError) as error:
        raise UsageError(f"{where}: {error}") from None
    if not rows or NAME not in rows[0]:
        raise UsageError(f"{where}: expected rows with a column {NAME!r}, which names each; found {relation.columns}")
    parameters = {name: found for name, found in types.items() if name not in {NAME, SHARE}}
    return [_Row(str(row.pop(NAME)), row.pop(SHARE, None), row) for row in rows], parameters


def _by_instance(rows: list[_Row]) -> list[list[_Row]]:
    """The rows of each instance, in the order in which their first ones come."""
    of_each: dict[str, list[_Row]] = {}
    for row in rows:
        of_each.setdefault(row.name, []).append(row)
    return list(of_each.values())


def _query_of(rows: list[_Row], types: Mapping[str, str]) -> str:
    """The parameters of some rows as a query that needs no dataset. They are one text of JSON: DuckDB plans thousands of rows as constants, or as
    SELECTs, for minutes.
    """
    values = json.dumps([{name: _json(value) for name, value in row.parameters.items()} for row in rows])
    return f"SELECT unnest(row) FROM (SELECT unnest(from_json({_literal(values)}, {_literal(json.dumps([types]))})) AS row)"


def _instance(operation: Operation, instance: OperationInstance, sources: list[str]) -> Operation:
    share = "" if instance.share is None else f" ({_percent(instance.share)})"
    changes = {
        "title": f"{operation.title}, {instance.name}{share}",
        "parameter_sources": sources,
        "instances": None,
        "instance": instance,
    }
    return operation.model_copy(update=changes)


def _percent(share: float) -> str:
    return f"{share * 100:.3g}%"


def _json(value: object) -> object:
    """A value as JSON has it; a double as the shortest text that no bit of it is lost in, which may be that of infinity."""
    if isinstance(value, float):
        return repr(value)
    return value.isoformat() if isinstance(value, date) else value


def _literal(text: str) -> str:
    escaped = text.replace("'", "''")
    return f"'{escaped}'"
