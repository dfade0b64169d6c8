"""Reference queries, before anything runs: DuckDB takes each of them, and it gives the columns that the operation says."""

from datetime import UTC, datetime

import duckdb

from sensorbench.errors import UsageError
from sensorbench.schemas import Operation, Operations
from sensorbench.schemas.types import ValueType, canonical_type

# A value of each type, with which a query is described and not executed.
_EXAMPLES: dict[ValueType, bool | int | float | datetime | str | bytes] = {
    "boolean": False,
    "integer": 0,
    "double": 0.0,
    "timestamp": datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None),
    "text": "",
    "bytes": b"",
}


def check_references(operations: Operations, names: list[str], workbench: duckdb.DuckDBPyConnection, where: str) -> None:
    """Raises UsageError for a reference query of these operations that DuckDB refuses, or that gives other columns. `where` says in
    errors which file has it.
    """
    for name in names:
        operation = operations.operation[name]
        if operation.reference is None:
            continue
        try:
            found = _columns(operation.reference, operation, workbench)
        except (duckdb.Error, ValueError) as error:
            raise UsageError(f"{where}, operation.{name}.reference: {error}") from None
        expected = [(column.name, column.type) for column in operation.columns]
        if [value_type for _, value_type in found] != [value_type for _, value_type in expected]:
            raise UsageError(
                f"{where}, operation.{name}.reference: it gives {_listed(found)}; expected the columns of the operation: {_listed(expected)}"
            )


def _columns(reference: str, operation: Operation, workbench: duckdb.DuckDBPyConnection) -> list[tuple[str, ValueType]]:
    """The columns that a query gives, with their types. Raises ValueError for one that has none of ours."""
    used = workbench.extract_statements(reference)[0].named_parameters
    unknown = sorted(used - operation.parameters.keys())
    if unknown:
        raise ValueError(f"${unknown[0]} is not a parameter of the operation; expected one of {', '.join(operation.parameters)}")
    given = {name: _EXAMPLES[operation.parameters[name]] for name in used}
    workbench.execute(f"DESCRIBE {reference}", given or None)
    return [(name, canonical_type(name, str(found))) for name, found, *_ in workbench.fetchall()]


def _listed(columns: list[tuple[str, ValueType]]) -> str:
    return ", ".join(f"{name} ({value_type})" for name, value_type in columns)
