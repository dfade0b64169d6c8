"""The tables of a history's file."""

FORMAT = 2
# The ownership marker: a file without this table is somebody else's.
MARKER = "sensorbench_history"

# By table, its columns with their types. A result is a comparison; times are UTC.
COLUMNS: dict[str, dict[str, str]] = {
    "results": {
        "id": "VARCHAR PRIMARY KEY",
        "folder": "VARCHAR",
        "kind": "VARCHAR",
        "title": "VARCHAR",
        "experiment": "VARCHAR",
        "name": "VARCHAR",
        "measured": "TIMESTAMP",
        "added": "TIMESTAMP",
        "label": "VARCHAR",
        "machine": "VARCHAR",
        "machine_words": "VARCHAR",
        "sensorbench": "VARCHAR",
        "kernel": "VARCHAR",
        "timer_lag_s": "DOUBLE",
        "null_ops_per_s": "DOUBLE",
        "aa_variation": "DOUBLE",
    },
    "variants": {
        "result": "VARCHAR",
        "id": "VARCHAR",
        "series": "VARCHAR",
        "target": "VARCHAR",
        "database": "VARCHAR",
        "database_version": "VARCHAR",
        "schema_name": "VARCHAR",
        "schema_digest": "VARCHAR",
        "parameters": "VARCHAR",
        "server_settings": "VARCHAR",
        "no_op_per_s": "DOUBLE",
    },
    "figures": {
        "result": "VARCHAR",
        "variant": "VARCHAR",
        "operation": "VARCHAR",
        "metric": "VARCHAR",
        "unit": "VARCHAR",
        "higher_is_better": "BOOLEAN",
        "value": "DOUBLE",
        "low": "DOUBLE",
        "high": "DOUBLE",
        "confidence": "DOUBLE",
        "runs": "INTEGER",
        "is_main": "BOOLEAN",
    },
    "histograms": {
        "result": "VARCHAR",
        "variant": "VARCHAR",
        "operation": "VARCHAR",
        "repetition": "INTEGER",
        "values_ns": "BIGINT[]",
        "counts": "BIGINT[]",
    },
    # Under which name a schema's content was first seen.
    "schemas": {"database": "VARCHAR", "digest": "VARCHAR", "series_schema": "VARCHAR", "number": "INTEGER"},
    MARKER: {"format": "INTEGER", "id": "VARCHAR", "created": "TIMESTAMP"},
}

TABLES = tuple(
    f"CREATE TABLE {table} ({', '.join(f'{name} {kind}' for name, kind in columns.items())})"
    for table, columns in COLUMNS.items()
)

# Columns that a format has and the one before it had not, by table. They are the last ones of their tables.
ADDED: dict[int, dict[str, tuple[str, ...]]] = {2: {"results": ("timer_lag_s", "null_ops_per_s", "aa_variation")}}


def columns_since(stored: int) -> list[tuple[str, str]]:
    """The columns, with their tables, that a file of an earlier format lacks."""
    return [
        (table, name) for number in sorted(ADDED) if number > stored for table, names in ADDED[number].items() for name in names
    ]
