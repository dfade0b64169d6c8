"""DuckDB: loading by the appender against its own ways in its Python package, in files of the same folder."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
from benches.clients.loading import LoadComparison, as_csv, our_rate
from benches.clients.measuring import in_turn
from benches.clients.sql import TABLES

COLUMNS = "floor BIGINT NOT NULL, zone BIGINT NOT NULL, sensor VARCHAR NOT NULL, time TIMESTAMP NOT NULL, value DOUBLE NOT NULL"
INSERT = "INSERT INTO readings SELECT * FROM rows"


def loads(rows: pa.Table) -> list[LoadComparison]:
    """Into a table without a key, and into one with; from Arrow, and from a file."""
    with tempfile.TemporaryDirectory() as folder, as_csv(rows) as file:
        ways = {"INSERT … SELECT from Arrow": INSERT, "COPY from CSV": f"COPY readings FROM '{file}'"}
        return [_compared(Path(folder), kind, tool, way, rows) for kind in TABLES for tool, way in ways.items()]


def _compared(folder: Path, kind: str, tool: str, way: str, rows: pa.Table) -> LoadComparison:
    create = f"CREATE TABLE readings ({COLUMNS}{TABLES[kind]})"
    ours, theirs = in_turn(_ours(folder, create, rows), lambda: _their_rate(folder, create, way, rows))
    return LoadComparison(f"DuckDB {kind}", tool, ours, theirs)


def _ours(folder: Path, create: str, rows: pa.Table) -> Callable[[], float]:
    return lambda: our_rate(f"duckdb:{folder / 'ours.db'}", {"statements": [create]}, "readings", rows)


def _their_rate(folder: Path, create: str, way: str, rows: pa.Table) -> float:
    """Rows per second, until they are committed."""
    path = folder / "theirs.db"
    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as connection:
        connection.execute(create)
        connection.register("rows", rows)
        start_s = time.perf_counter()
        connection.execute(way)
        return float(rows.num_rows / (time.perf_counter() - start_s))
