"""Rows are prepared before they are loaded: each load query is run once, and its rows are sorted, encoded and kept as Arrow, so that no query of
ours competes with the database while it loads.
"""

import hashlib
import json
import logging
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
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
from sensorbench.wording import counted

FORMAT = 3
ROWS_A_BATCH = 65_536
SECONDS_BETWEEN_LOOKS = 0.5
# More tables than this are reported together: a line for each would hide what else is printed.
MAX_REPORTED_ALONE = 10
_log = logging.getLogger(__name__)
# Takes the share of the rows that is there, and what to say of it.
Advance = Callable[[float, str], None]
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
        """The same rows with other keys: this much is added to the whole numbers of a column."""
        return replace(self, shift=Shift(column=column, by=by))


def prepare_tables(
    dataset: Dataset,
    schema: Schema,
    columns: dict[str, dict[str, ValueType]],
    workbench: duckdb.DuckDBPyConnection,
    reporter: ProgressReporter,
) -> list[PreparedTable]:
    """Every table of a schema; those that were prepared before are used again."""
    name, start_s = f"preparing {schema.database}/{schema.name}", time.monotonic()
    rows_a_batch = ARTICLES_A_BATCH if ARTICLES in dataset.describe().relations else ROWS_A_BATCH
    files = [
        (load_query, cache_folder("prepared") / f"{_fingerprint(dataset, load_query)}.arrows")
        for load_query in schema.load_queries()
    ]
    # Of load queries that give the same rows one is enough.
    new = {file: load_query for load_query, file in files if not _facts_file(file).exists()}

    def prepare(file: Path, advance: Advance) -> PreparedTable:
        return _prepare(file, new[file], workbench, schema, rows_a_batch, advance)

    if len(new) > MAX_REPORTED_ALONE:
        with reporter.task(name, total=float(len(new))) as task:
            for place, (file, load_query) in enumerate(new.items()):
                prepare(file, _part_of(task, place, load_query.name))
            task.end(f"{counted(len(new), 'table')} in {time.monotonic() - start_s:.1f} s")
    else:
        for file, load_query in new.items():
            with reporter.task(f"{name} {load_query.name}", total=1.0) as task:
                table = prepare(file, task.advance_to)
                task.end(f"{counted(table.rows, 'row')} in {table.prepare_s:.1f} s")
    return [_prepared(load_query.table, file) for load_query, file in files]


def _part_of(task: Task, place: int, name: str) -> Advance:
    """What names one of several tables in a task, by its place among them."""
    return lambda share, _: task.advance_to(place + share, name)


def _prepare(
    file: Path,
    load_query: LoadQuery,
    workbench: duckdb.DuckDBPyConnection,
    schema: Schema,
    rows_a_batch: int,
    advance: Advance,
) -> PreparedTable:
    """Writes the rows of a load query, and next to them how many they are."""
    _log.info("%s: %s", load_query.name, " ".join(load_query.query.split()))
    start_s = time.monotonic()
    rows, missing = _write(file, load_query, workbench, schema, rows_a_batch, advance)
    facts = {"rows": rows, "prepare_s": time.monotonic() - start_s, "missing": missing}
    write_text(_facts_file(file), json.dumps(facts))
    return _prepared(load_query.table, file)


def _prepared(table: str, file: Path) -> PreparedTable:
    """Rows that were prepared, as the file next to them describes them."""
    known = json.loads(_facts_file(file).read_text(encoding="utf-8"))
    return PreparedTable(table, file, known["rows"], file.stat().st_size, known["prepare_s"], missing=known["missing"])


def _facts_file(file: Path) -> Path:
    return file.with_suffix(".json")


def cached_tables() -> dict[Path, int]:
    """The files of prepared tables in the cache, with their bytes; also those that somebody left unfinished."""
    files = sorted(cache_folder("prepared").iterdir())
    return {file: file.stat().st_size for file in files if file.is_file() and _PREPARED.fullmatch(file.name)}


def _fingerprint(dataset: Dataset, load_query: LoadQuery) -> str:
    what = json.dumps([FORMAT, dataset.fingerprint, load_query.query, load_query.order, load_query.batching], sort_keys=True)
    return f"{dataset.name}-{hashlib.sha256(what.encode()).hexdigest()[:16]}"


def _write(
    file: Path, load_query: LoadQuery, workbench: duckdb.DuckDBPyConnection, schema: Schema, rows_a_batch: int, advance: Advance
) -> tuple[int, dict[str, int]]:
    """Writes the rows of a load query. Returns how many there are, and how many have no value in a column."""
    unfinished = file.with_suffix(f".{os.getpid()}.unfinished")
    missing: Counter[str] = Counter()
    connection = workbench.cursor()
    try:
        with _Watch(connection, advance) as watch:
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

    def __init__(self, connection: duckdb.DuckDBPyConnection, advance: Advance) -> None:
        # DuckDB knows how far it is only if it is to show that; we show it.
        connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
        self.rows = 0
        self._connection, self._advance = connection, advance
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
            share = max(0.0, self._connection.query_progress()) / 100.0
            self._advance(share, f"{self.rows:,} rows" if self.rows else "")


def _rows(load_query: LoadQuery, connection: duckdb.DuckDBPyConnection, rows_a_batch: int) -> pa.RecordBatchReader:
    """The rows of a load query, sorted and encoded."""
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
