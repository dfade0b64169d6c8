"""The six canonical types, in SQL and Arrow."""

from typing import Literal

import duckdb
import pyarrow as pa

ValueType = Literal["boolean", "integer", "double", "timestamp", "text", "bytes"]

ARROW_TYPES: dict[ValueType, pa.DataType] = {
    "boolean": pa.bool_(),
    "integer": pa.int64(),
    "double": pa.float64(),
    "timestamp": pa.timestamp("us"),
    "text": pa.string(),
    "bytes": pa.binary(),
}

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


def canonical_columns(relation: duckdb.DuckDBPyRelation) -> dict[str, ValueType]:
    """The columns of a query with their canonical types. Raises ValueError for a column that has none."""
    columns = {}
    for name, found in zip(relation.columns, relation.types, strict=True):
        value_type = _DUCKDB_TYPES.get(str(found))
        if value_type is None:
            raise ValueError(f"column {name} is a {found}; cast it to one of {', '.join(_DUCKDB_TYPES)}")
        columns[name] = value_type
    return columns


def arrow_schema(columns: dict[str, ValueType]) -> pa.Schema:
    """The Arrow schema of canonical columns."""
    return pa.schema([pa.field(name, ARROW_TYPES[value_type]) for name, value_type in columns.items()])


def canonical_table(relation: duckdb.DuckDBPyRelation) -> pa.Table:
    """The rows of a query in canonical Arrow types."""
    return relation.to_arrow_table().cast(arrow_schema(canonical_columns(relation)))
