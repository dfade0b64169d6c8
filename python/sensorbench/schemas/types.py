"""The six canonical types, and which of them the types of DuckDB are."""

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import duckdb

ValueType = Literal["boolean", "integer", "double", "timestamp", "text", "bytes"]

_DUCKDB_TYPES: dict[str, ValueType] = {
    "BOOLEAN": "boolean",
    "TINYINT": "integer",
    "SMALLINT": "integer",
    "INTEGER": "integer",
    "BIGINT": "integer",
    "UTINYINT": "integer",
    "USMALLINT": "integer",
    "UINTEGER": "integer",
    "FLOAT": "double",
    "DOUBLE": "double",
    "DATE": "timestamp",
    "TIMESTAMP": "timestamp",
    "VARCHAR": "text",
    "BLOB": "bytes",
}


def canonical_type(column: str, found: str) -> ValueType:
    """The canonical type of a column that is of a type of DuckDB. Raises ValueError for one that has none."""
    value_type = _DUCKDB_TYPES.get(found)
    if value_type is None:
        raise ValueError(f"column {column} is a {found}; cast it to one of {', '.join(_DUCKDB_TYPES)}")
    return value_type


def canonical_columns(relation: "duckdb.DuckDBPyRelation") -> dict[str, ValueType]:
    """The columns of a query with their canonical types. Raises ValueError for a column that has none."""
    return {name: canonical_type(name, str(found)) for name, found in zip(relation.columns, relation.types, strict=True)}
