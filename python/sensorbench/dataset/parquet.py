"""How relations lie in Parquet files."""

from typing import Any

import pyarrow as pa

SUFFIX = ".parquet"
# Rows that DuckDB's threads take at a time.
ROWS_A_GROUP = 122_880


def parquet_options(schema: pa.Schema) -> dict[str, Any]:
    """Regular times shrink to nothing as differences; readings have few different values, which a dictionary holds. No two texts of
    articles are alike.
    """
    times = [field.name for field in schema if pa.types.is_timestamp(field.type)]
    texts = [field.name for field in schema if pa.types.is_large_string(field.type)]
    return {
        "compression": "zstd",
        "compression_level": 9,
        "use_dictionary": [field.name for field in schema if field.name not in (*times, *texts)],
        "column_encoding": dict.fromkeys(times, "DELTA_BINARY_PACKED"),
        "dictionary_pagesize_limit": 8 << 20,
    }
