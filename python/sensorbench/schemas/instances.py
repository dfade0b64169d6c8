"""Instances: one operation that is asked at several places, such as seven ranges, each measured as an operation of its own."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from sensorbench.errors import UsageError
from sensorbench.schemas.operations import Operation, OperationInstance, Operations, ParameterSource, instance_name
from sensorbench.schemas.types import canonical_columns

if TYPE_CHECKING:
    import duckdb

# Columns of a parameter source of instances that are no parameters: the instance's name, and which share of the rows it is about.
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
        for rows in _by_instance(
            _rows(operations.parameter_source[operation.instances], workbench, f"{where}, parameter_source.{operation.instances}")
        ):
            instance = OperationInstance(of=name, name=rows[0].name, share=rows[0].share)
            source = f"{operation.instances}.{instance.name}"
            sources[source] = ParameterSource(query=" UNION ALL ".join(_selected(row) for row in rows))
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


def _rows(source: ParameterSource, workbench: "duckdb.DuckDBPyConnection", where: str) -> list[_Row]:
    import duckdb

    try:
        relation = workbench.sql(source.query or "")
        canonical_columns(relation)
        rows = [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]
    except (duckdb.Error, ValueError) as error:
        raise UsageError(f"{where}: {error}") from None
    if not rows or NAME not in rows[0]:
        raise UsageError(f"{where}: expected rows with a column {NAME!r}, which names each; found {relation.columns}")
    return [_Row(str(row.pop(NAME)), row.pop(SHARE, None), row) for row in rows]


def _by_instance(rows: list[_Row]) -> list[list[_Row]]:
    """The rows of each instance, in the order in which their first ones come."""
    of_each: dict[str, list[_Row]] = {}
    for row in rows:
        of_each.setdefault(row.name, []).append(row)
    return list(of_each.values())


def _selected(row: _Row) -> str:
    """A row of parameters as a query."""
    return f"SELECT {', '.join(_column(name, value) for name, value in row.parameters.items())}"


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
    return f"{share * 100:.3g} %"


def _column(name: str, value: object) -> str:
    """A value as a column of a query: no doubt about its type, and no bit of a double lost."""
    if isinstance(value, float):
        return f"CAST('{value!r}' AS DOUBLE) AS \"{name}\""
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat()}' AS \"{name}\""
    if isinstance(value, str):
        escaped = value.replace("'", "''")
        return f"'{escaped}' AS \"{name}\""
    return f'{value} AS "{name}"'
