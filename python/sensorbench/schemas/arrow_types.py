"""The six canonical types in Arrow."""

import duckdb
import pyarrow as pa

from sensorbench.schemas.types import ValueType, canonical_columns

ARROW_TYPES: dict[ValueType, pa.DataType] = {
    "boolean": pa.bool_(),
    "integer": pa.int64(),
    "double": pa.float64(),
    "timestamp": pa.timestamp("us"),
    "text": pa.string(),
    "bytes": pa.binary(),
}


def arrow_schema(columns: dict[str, ValueType]) -> pa.Schema:
    """The Arrow schema of canonical columns."""
    return pa.schema([pa.field(name, ARROW_TYPES[value_type]) for name, value_type in columns.items()])


def canonical_table(relation: duckdb.DuckDBPyRelation) -> pa.Table:
    """The rows of a query in canonical Arrow types."""
    return relation.to_arrow_table().cast(arrow_schema(canonical_columns(relation)))
