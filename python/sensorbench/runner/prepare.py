"""Filling is prepared before it is loaded: each fill query is run once, sorted, encoded and kept as Arrow, so that no query
of ours competes with the database while it loads.
"""

import hashlib
import json
import logging
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

import duckdb
import pyarrow as pa

from sensorbench._engine import batch_rows
from sensorbench.dataset import ARTICLES, Dataset
from sensorbench.errors import UsageError
from sensorbench.paths import cache_folder
from sensorbench.progress import ProgressReporter, Task
from sensorbench.results.files import write_text
from sensorbench.runner.generators.load_part import Shift
from sensorbench.schemas import Schema
from sensorbench.schemas.arrow_types import arrow_schema
from sensorbench.schemas.schema import LoadQuery
from sensorbench.schemas.types import ValueType, canonical_columns

FORMAT = 3
ROWS_A_BATCH = 65_536
SECONDS_BETWEEN_LOOKS = 0.5
_log = logging.getLogger(__name__)
# Articles are as long as thousands of readings.
ARTICLES_A_BATCH = 256
# What files of prepared tables are called; the number is that of the process that did not finish one.
_PREPARED = re.compile(r".+-[0-9a-f]{16}\.(arrows|json(\.\d+\.unfinished)?|\d+\.unfinished)")


@dataclass(frozen=True)
class PreparedTable:
    """A table's rows, ready to be loaded."""

    table: str
    file: Path
    rows: int
    bytes: int
    prepare_s: float
    # What is added to a column when they are read.
    shift: Shift | None = None
    # How many rows have no value in a column, where some have none.
    missing: dict[str, int] = field(default_factory=dict)

    def open(self) -> pa.RecordBatchReader:
        """The rows, from disk."""
        rows = pa.ipc.open_stream(pa.OSFile(str(self.file)))
        return rows if self.shift is None else self.shift.applied_to(rows)

    def shifted(self, column: str, by: int) -> "PreparedTable":
        """The same rows with other keys: so much is added to the whole numbers of a column."""
        return replace(self, shift=Shift(column=column, by=by))


def prepare_tables(
    dataset: Dataset,
    schema: Schema,
    columns: dict[str, dict[str, ValueType]],
    workbench: duckdb.DuckDBPyConnection,
    reporter: ProgressReporter,
) -> list[PreparedTable]:
    """Every table of a schema; those that were prepared before are used again."""
    rows_a_batch = ARTICLES_A_BATCH if ARTICLES in dataset.describe().relations else ROWS_A_BATCH
    tables = []
    for load_query in schema.load_queries():
        file = cache_folder("prepared") / f"{_fingerprint(dataset, load_query)}.arrows"
        facts = file.with_suffix(".json")
        if not facts.exists():
            with reporter.task(f"preparing {schema.database}/{schema.name} {load_query.name}", total=100.0) as task:
                _log.info("%s: %s", load_query.name, " ".join(load_query.query.split()))
                start_s = time.monotonic()
                rows, missing = _write(file, load_query, workbench, schema, rows_a_batch, task)
                prepare_s = time.monotonic() - start_s
                task.end(f"{rows:,} rows in {prepare_s:.1f} s")
            write_text(facts, json.dumps({"rows": rows, "prepare_s": prepare_s, "missing": missing}))
        known = json.loads(facts.read_text(encoding="utf-8"))
        size = file.stat().st_size
        tables.append(PreparedTable(load_query.table, file, known["rows"], size, known["prepare_s"], missing=known["missing"]))
    return tables


def cached_tables() -> dict[Path, int]:
    """The files of prepared tables in the cache, with their bytes; also those that somebody left unfinished."""
    files = sorted(cache_folder("prepared").iterdir())
    return {file: file.stat().st_size for file in files if file.is_file() and _PREPARED.fullmatch(file.name)}


def _fingerprint(dataset: Dataset, load_query: LoadQuery) -> str:
    what = json.dumps([FORMAT, dataset.fingerprint, load_query.query, load_query.order, load_query.batching], sort_keys=True)
    return f"{dataset.name}-{hashlib.sha256(what.encode()).hexdigest()[:16]}"


def _write(
    file: Path, load_query: LoadQuery, workbench: duckdb.DuckDBPyConnection, schema: Schema, rows_a_batch: int, task: Task
) -> tuple[int, dict[str, int]]:
    """Writes the rows of a load query. Returns how many there are, and how many have no value in a column."""
    unfinished = file.with_suffix(f".{os.getpid()}.unfinished")
    missing: Counter[str] = Counter()
    connection = workbench.cursor()
    try:
        with _Watch(connection, task) as watch:
            reader = _rows(load_query, connection, rows_a_batch)
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            with pa.OSFile(str(unfinished), "wb") as sink, pa.ipc.new_stream(sink, reader.schema, options=options) as writer:
                for batch in reader:
                    watch.rows += batch.num_rows
                    columns = zip(batch.schema.names, batch.columns, strict=True)
                    missing.update({name: column.null_count for name, column in columns})
                    writer.write_batch(batch)
        unfinished.rename(file)
    except (duckdb.Error, pa.ArrowException) as error:
        raise schema.error(load_query.key, f"the rows cannot be prepared: {error}") from None
    finally:
        unfinished.unlink(missing_ok=True)
    if watch.rows == 0 and not load_query.may_be_empty:
        raise UsageError(f"{schema.path}: the load query of {load_query.name} gives no rows for this dataset")
    return watch.rows, dict(+missing)


class _Watch:
    """Shows how far a query is, and how many of its rows have come, while another thread executes it."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, task: Task) -> None:
        # DuckDB knows how far it is only if it is to show that; we show it.
        connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
        self.rows = 0
        self._connection, self._task = connection, task
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._show, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _show(self) -> None:
        while not self._is_over.wait(SECONDS_BETWEEN_LOOKS):
            # It is below 0 while nothing is known.
            percent = max(0.0, self._connection.query_progress())
            self._task.advance_to(percent, f"{self.rows:,} rows" if self.rows else "")


def _rows(load_query: LoadQuery, connection: duckdb.DuckDBPyConnection, rows_a_batch: int) -> pa.RecordBatchReader:
    """The rows of a fill, sorted and encoded."""
    relation = connection.sql(load_query.query)
    columns = canonical_columns(relation)
    if load_query.order:
        relation = relation.order(", ".join(f'"{name}"' for name in load_query.order))
    schema = arrow_schema(columns)
    rows = pa.RecordBatchReader.from_batches(schema, _cast(relation.to_arrow_reader(rows_a_batch), schema))
    return batch_rows(rows, json.dumps(load_query.batching)) if load_query.batching else rows


def _cast(batches: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from pa.Table.from_batches([batch]).cast(schema).to_batches()
