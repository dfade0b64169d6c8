"""Generated rows and their files, which are the same byte for byte whoever writes them: this process, or many machines.

A generator makes rows in parts, each a function of the seed and the part's number. A file holds a fixed number of parts that follow one
another, and no group of rows goes from one part into the next. So the files follow from the dataset alone, and from nothing
that is different where it is generated: threads, partitions, or how often somebody had to begin again.
"""

import hashlib
import os
import threading
import uuid
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sensorbench.dataset.parquet import ROWS_A_GROUP, SUFFIX, parquet_options
from sensorbench.interrupts import SLICE_S
from sensorbench.progress import ProgressReporter, Task

# Parts are some ten thousand readings or some megabytes of articles, so a file is some tens of megabytes.
PARTS_A_FILE = 16


class RowsInParts(Protocol):
    """Rows in parts, each a function of its number alone: a generator of the engine, or one that changes its rows."""

    @property
    def parts(self) -> int:
        """How many parts there are."""

    def rows(self, threads: int, first: int = 0, end: int | None = None) -> Iterable[pa.RecordBatch]:
        """The rows of the parts from `first` until before `end`, of all if not given, a batch a part."""


@dataclass(frozen=True)
class Generated:
    """What it takes to have a relation's rows anywhere: what makes the generator, the columns, and which of them is the time."""

    relation: str
    generator: Callable[[], RowsInParts]
    schema: pa.Schema
    time: str | None


@dataclass(frozen=True)
class PartsFile:
    """A file, by its place in the dataset's folder, of the parts from `first` until before `end`."""

    place: str
    first: int
    end: int


@dataclass(frozen=True)
class WrittenFile:
    """What is known of a file that was written: its rows, its span where there are times, and the SHA-256 of its bytes."""

    rows: int
    first_time: datetime | None
    last_time: datetime | None
    sha256: bytes


# Writes the files of generated rows into a folder, by whatever means.
WriteFiles = Callable[[Generated, Path, Sequence[PartsFile]], list[WrittenFile]]


def files_of(relation: str, parts: int) -> list[PartsFile]:
    """The files of a relation with this many parts: one that is called like it, or several in a folder that is."""
    if parts <= PARTS_A_FILE:
        return [PartsFile(f"{relation}{SUFFIX}", 0, parts)]
    return [
        PartsFile(f"{relation}/{first // PARTS_A_FILE:08}{SUFFIX}", first, min(first + PARTS_A_FILE, parts))
        for first in range(0, parts, PARTS_A_FILE)
    ]


def in_this_process(reporter: ProgressReporter, threads: int | None = None) -> WriteFiles:
    """Writes files in this many threads, as many as there are processors if not given: compressing a file takes longer than making its rows."""
    total = threads or os.cpu_count() or 1

    def write(generated: Generated, folder: Path, files: Sequence[PartsFile]) -> list[WrittenFile]:
        at_once = min(total, len(files))
        with reporter.task(f"generating {generated.relation}", total=files[-1].end) as task:
            progress = _FilesProgress(task)

            def write_some(first: int, end: int) -> list[WrittenFile]:
                return write_files(generated, folder, files[first:end], total // at_once, progress.report_of)

            # Each thread has files that follow one another, for which its generator goes from one part to the next.
            ends = [len(files) * number // at_once for number in range(at_once + 1)]
            with ThreadPoolExecutor(at_once) as pool:
                writing = [pool.submit(write_some, first, end) for first, end in pairwise(ends)]
                try:
                    left = set(writing)
                    while left:
                        ended, left = wait(left, SLICE_S, return_when=FIRST_EXCEPTION)
                        for files_of_thread in ended:
                            files_of_thread.result()
                finally:
                    # After an error, or Ctrl-C, nobody waits for files that are not needed any more.
                    progress.stopped.set()
            written = [file for files_of_thread in writing for file in files_of_thread.result()]
            task.end(f"{sum(file.rows for file in written):,} rows")
        return written

    return write


class _StoppedError(Exception):
    """Another file could not be written, or the user interrupted."""


class _FilesProgress:
    """Parts and rows of files that are written at the same time."""

    def __init__(self, task: Task) -> None:
        self.stopped = threading.Event()
        self._task = task
        self._lock = threading.Lock()
        self._of_file: dict[PartsFile, tuple[int, int]] = {}
        self._parts = self._rows = 0

    def report_of(self, file: PartsFile) -> Callable[[int, int], None]:
        """Receives parts and rows of one file so far. Raises _StoppedError when the file is not needed any more."""
        return partial(self._report, file)

    def _report(self, file: PartsFile, parts: int, rows: int) -> None:
        if self.stopped.is_set():
            raise _StoppedError
        with self._lock:
            parts_before, rows_before = self._of_file.get(file, (0, 0))
            self._of_file[file] = (parts, rows)
            self._parts += parts - parts_before
            self._rows += rows - rows_before
            self._task.advance_to(self._parts, f"{self._rows:,} rows")


def write_files(
    generated: Generated,
    folder: Path,
    files: Iterable[PartsFile],
    threads: int,
    report_of: Callable[[PartsFile], Callable[[int, int], None]] = lambda file: lambda parts, rows: None,
) -> list[WrittenFile]:
    """Writes files that follow one another, by one generator: many generators go to a part through all those before it, and on from there.

    Args:
        generated: what is written.
        folder: of the dataset; the folders of the files' places must be there.
        files: in the order of their parts.
        threads: how many make the rows.
        report_of: for each file, a function that receives its parts and rows so far.

    Raises:
        OSError: a file could not be written.

    """
    rows = generated.generator()
    return [_write_file(generated, rows, folder, file, threads, report_of(file)) for file in files]


def _write_file(
    generated: Generated,
    generator: RowsInParts,
    folder: Path,
    file: PartsFile,
    threads: int,
    report: Callable[[int, int], None],
) -> WrittenFile:
    """Writes a file beside its place and then puts it there, so that half of it is never taken for whole; who writes it again leaves the same."""
    place = folder / file.place
    unfinished = place.with_name(f".{place.stem}.{uuid.uuid4().hex}.unfinished")
    rows, times = 0, []
    try:
        with pq.ParquetWriter(unfinished, generated.schema, **parquet_options(generated.schema)) as parquet:
            for parts, batch in enumerate(generator.rows(threads, file.first, file.end), start=1):
                parquet.write_batch(batch, row_group_size=ROWS_A_GROUP)
                rows += batch.num_rows
                if generated.time is not None and batch.num_rows:
                    times += pc.min_max(batch[generated.time]).values()
                report(parts, rows)
        with unfinished.open("rb") as done:
            sha256 = hashlib.file_digest(done, "sha256").digest()
        unfinished.replace(place)
    finally:
        unfinished.unlink(missing_ok=True)
    ends = [time.as_py() for time in times]
    return WrittenFile(rows, min(ends, default=None), max(ends, default=None), sha256)
