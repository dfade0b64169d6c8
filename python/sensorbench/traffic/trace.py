"""The canonical form of recorded traffic: a folder with `trace.json` and `statements.parquet`.

The statements are a row each, in the order of their arrival; what stands in many of them, the template, is in `trace.json` once. Both
are read and written some rows at a time, so that a trace of any length takes the same memory.
"""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Literal

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sensorbench.errors import UsageError, problem_text

FORMAT = 1
TRACE_FILE, STATEMENTS_FILE = "trace.json", "statements.parquet"
_UNSORTED_FILE = "statements.parquet.unfinished"
TemplateKind = Literal["read", "write", "begin", "commit", "rollback", "other"]
ParameterType = Literal["number", "text", "boolean", "null", "mixed"]
# Rows that are decoded, or kept before they are handed on, at a time.
BATCH_ROWS = 16_384
# Rows that are compressed together: whoever reads or writes a file has a description of each such group in memory.
_GROUP_ROWS, _GROUP_BYTES = 131_072, 64 << 20
_SORT_MEMORY = "512MB"

# The columns of `statements.parquet`:
# at: when the statement arrived at the server; rows are sorted by it.
# session, sequence: its session, and its place in that, from 0.
# transaction: the number of its transaction within the session, from 0; null outside of explicit transactions.
# template, parameters: its template, and the literals of this execution in their order, a JSON array.
# duration (s), rows, error: what the server said of it, where it did.
STATEMENTS = pa.schema(
    [
        ("at", pa.timestamp("us", tz="UTC")),
        ("session", pa.int32()),
        ("sequence", pa.int64()),
        ("transaction", pa.int64()),
        ("template", pa.int32()),
        ("parameters", pa.large_string()),
        ("duration", pa.float64()),
        ("rows", pa.int64()),
        ("error", pa.string()),
    ]
)


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Template(_Part):
    """A statement with its literals taken out."""

    number: int
    statement: str = Field(description="With $1, $2, … in the places of literals.")
    kind: TemplateKind
    parameters: list[str] = Field(
        default=[], description="Types of the literals, in order: number, text, boolean, null, or mixed."
    )
    tables: list[str] = Field(default=[], description="The tables that it names, as it writes them.")
    keyspace: str | None = Field(default=None, description="The keyspace that its sessions used, where the log says it.")
    consistency: str | None = Field(default=None, description="The consistency level that was requested, where the log says it.")


class Trace(_Part):
    """`trace.json`: what the numbers in the statements mean, and where they come from."""

    format: int = FORMAT
    database: str
    version: str = ""
    origin: list[str] = Field(default=[], description="The files that it was read from.")
    started: datetime | None = Field(default=None, description="When the first statement arrived.")
    statements: int | None = None
    sessions: int | None = None
    skipped: int = Field(default=0, description="Log entries that are not statements.")
    anonymised: bool = False
    templates: list[Template]


def statements_file(folder: Path) -> Path:
    """The statements of a trace, in the order of their arrival."""
    return folder / STATEMENTS_FILE


def read_trace(folder: Path) -> Trace:
    """The trace in a folder. Raises UsageError if there is none, or it cannot be read."""
    file = folder / TRACE_FILE
    missing = next((path for path in (file, statements_file(folder)) if not path.is_file()), None)
    if missing is not None:
        raise UsageError(f"{folder}: no trace is there ({missing.name} is missing)")
    try:
        trace = Trace.model_validate_json(file.read_bytes())
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        raise UsageError(f"{file}: {'.'.join(map(str, problem['loc']))}: {problem_text(problem)}") from None
    if trace.format > FORMAT:
        raise UsageError(f"{file}: format: {trace.format} is of a later version of sensorbench; expected at most {FORMAT}")
    return trace


def read_statements(folder: Path) -> Iterator[pa.RecordBatch]:
    """The rows of a trace with the columns of `STATEMENTS`, some at a time. Raises UsageError if they cannot be read."""
    path = statements_file(folder)
    try:
        with pq.ParquetFile(path) as file:
            missing = [name for name in STATEMENTS.names if name not in file.schema_arrow.names]
            if missing:
                raise UsageError(f"{path}: column {missing[0]} is missing; expected the columns of a trace")
            # A batch over several groups could be larger than memory allows where rows are long.
            for group in range(file.num_row_groups):
                for batch in file.iter_batches(BATCH_ROWS, row_groups=[group], columns=STATEMENTS.names):
                    yield batch.cast(STATEMENTS)
    except (OSError, pa.ArrowException) as error:
        raise UsageError(f"{path}: {error}") from None


class _GroupWriter:
    """Writes rows to a file in groups: as many as are worth it, and no more than the memory may take where they are long."""

    def __init__(self, path: Path) -> None:
        self._writer = pq.ParquetWriter(path, STATEMENTS, compression="zstd")
        self._waiting: list[pa.RecordBatch] = []

    def write(self, batch: pa.RecordBatch) -> None:
        """Adds rows."""
        self._waiting.append(batch)
        rows, size = sum(each.num_rows for each in self._waiting), sum(each.nbytes for each in self._waiting)
        if rows >= _GROUP_ROWS or size >= _GROUP_BYTES:
            self._write_group()

    def finish(self) -> None:
        """Writes what is not written yet, and ends the file."""
        self._write_group()
        self.close()

    def close(self) -> None:
        """Ends the file as it is."""
        self._writer.close()

    def _write_group(self) -> None:
        if self._waiting:
            self._writer.write_table(pa.Table.from_batches(self._waiting, STATEMENTS), _GROUP_ROWS)
            self._waiting = []


class StatementWriter:
    """Writes the statements of a trace as they come. They may come in another order than that of their times: logs have them in the
    order of their ends. At the end of the context they are sorted, on disk.
    """

    def __init__(self, folder: Path) -> None:
        self._path, self._unsorted = statements_file(folder), folder / _UNSORTED_FILE
        self._writer = _GroupWriter(self._unsorted)
        self._last_us: int | None = None
        self._is_sorted = True
        self.rows = 0

    def __enter__(self) -> "StatementWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if error is not None:
            self._writer.close()
            self._unsorted.unlink(missing_ok=True)
            return
        self._writer.finish()
        if self._is_sorted:
            self._unsorted.replace(self._path)
        else:
            self._sort()

    def write(self, batch: pa.RecordBatch) -> None:
        """Writes rows with the columns of `STATEMENTS`."""
        if not batch.num_rows:
            return
        times = batch.column("at").cast(pa.int64()).to_numpy(zero_copy_only=False)
        before = times[0] if self._last_us is None else self._last_us
        self._is_sorted &= bool(times[0] >= before and (times[1:] >= times[:-1]).all())
        self._last_us = int(times[-1])
        self.rows += batch.num_rows
        self._writer.write(batch)

    def _sort(self) -> None:
        """DuckDB sorts on disk what does not fit into its memory."""
        spill = self._path.parent / f"{STATEMENTS_FILE}.sorting.unfinished"
        with duckdb.connect(config={"memory_limit": _SORT_MEMORY, "threads": 1, "temp_directory": str(spill)}) as workbench:
            workbench.execute("SET TimeZone = 'UTC'")
            columns = ", ".join(f'"{name}"' for name in STATEMENTS.names)
            in_order = workbench.sql(
                f'SELECT {columns} FROM read_parquet(?) ORDER BY "at", session, sequence', params=[str(self._unsorted)]
            )
            writer = _GroupWriter(self._path)
            for batch in in_order.to_arrow_reader(BATCH_ROWS):
                writer.write(batch.cast(STATEMENTS))
            writer.finish()
        self._unsorted.unlink()
