"""Loading a variant by a database's own tool instead of by the driver. Its files are made first, which is timed apart."""

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sensorbench import lab
from sensorbench._engine import Target
from sensorbench.errors import FailedError
from sensorbench.paths import cache_folder
from sensorbench.progress import Task
from sensorbench.results.described import LoadedTable, LoaderReport
from sensorbench.runner.memory import MemoryGuard
from sensorbench.runner.prepare import PreparedTable
from sensorbench.runner.variants import Variant
from sensorbench.runner.waiting import wait_for_file

FILES_FOLDER = "load-files"


@dataclass(frozen=True)
class ToolLoad:
    """How a tool loaded: each table, and what results say of the tool."""

    tables: list[LoadedTable]
    loader: LoaderReport


def load_by_tool(variant: Variant, target: Target, tables: list[PreparedTable], task: Task, guard: MemoryGuard) -> ToolLoad:
    """Loads prepared tables one after the other.

    Args:
        variant: whose target names the tool.
        target: its tables are there, and empty.
        tables: their rows.
        task: reports progress.
        guard: ends it where the memory would be full.

    Raises:
        FailedError: if a tool does not take all rows and the variant may not lose any, or the server is none of the lab's.

    """
    tool = lab.require_tool(variant.target.database.name, variant.target.loader)
    version = tool.source().version
    instance = lab.instance_at(target.url)
    if instance is None:
        raise FailedError(f"{variant.id}: load={tool.name} is for servers of the lab, and {target.url} is not one; leave it out")
    # Before anything is timed.
    tool.source().get()
    with tempfile.TemporaryDirectory(prefix="load-", dir=cache_folder(FILES_FOLDER)) as folder:
        loading = _Loading(variant, target, tool, instance, Path(folder), task, guard)
        loaded = [loading.load(table) for table in tables]
    loader: LoaderReport = {
        "name": tool.name,
        "program": tool.program,
        "version": version,
        "files_s": loading.files_s,
        "file_bytes": loading.file_bytes,
        "problems": loading.problems,
    }
    return ToolLoad(loaded, loader)


def settle_tool(variant: Variant, target: Target, on_wait: Callable[[], None]) -> None:
    """Waits until the server has taken what the variant's tool has handed over, where it has one."""
    instance = lab.instance_at(target.url) if variant.target.loader else None
    if instance is not None:
        lab.load_tools(variant.target.database.name)[variant.target.loader].settle(instance, on_wait)


@dataclass
class _Loading:
    """A load in progress, table by table."""

    variant: Variant
    target: Target
    tool: lab.LoadTool
    instance: lab.Instance
    folder: Path
    task: Task
    guard: MemoryGuard
    rows: int = 0
    files_s: float = 0.0
    file_bytes: int = 0

    def __post_init__(self) -> None:
        self.problems: list[str] = []

    def load(self, table: PreparedTable) -> LoadedTable:
        """Makes the file of a table, loads it, and removes it."""
        # Only the caller can read it: the tool may find its password there.
        own = Path(tempfile.mkdtemp(prefix="table-", dir=self.folder))
        file = self._written(table, own / "rows")
        start_s = time.monotonic()
        problem = lab.run_load_tool(
            self.tool, self.instance, own, file, self.variant.target.url_options, lambda progress: self._watch(table, progress)
        )
        duration_s = time.monotonic() - start_s
        file.path.unlink()
        if problem and not self.variant.may_lose_rows:
            raise FailedError(f"{self.variant.id}, table {table.table}: {problem}")
        self.problems += [f"{table.table}: {problem}"] if problem else []
        self.rows += table.rows
        return {
            "table": table.table,
            "prepare_s": table.prepare_s,
            "prepared_bytes": table.bytes,
            "rows": table.rows,
            "duration_s": duration_s,
            # What a tool sends at a time, and how long that takes, it does not say.
            "batches": 0,
            "batch_s": {},
        }

    def _written(self, table: PreparedTable, path: Path) -> lab.LoadFile:
        rows = table.open()
        file = lab.LoadFile(self.variant.namespace_at_url, table.table, tuple(rows.schema.names), path)
        start_s = time.monotonic()
        writing = self.target.write_load_file(table.table, rows, str(path))
        wait_for_file(writing, self.rows, self.task)
        writing.result()
        self.files_s += time.monotonic() - start_s
        self.file_bytes += path.stat().st_size
        return file

    def _watch(self, table: PreparedTable, progress: lab.ToolProgress) -> None:
        done = progress.rows if progress.rows is not None else round(table.rows * (progress.share or 0.0))
        self.guard.check(self.rows + done)
        self.task.advance_to(self.rows + done, f"{self.tool.program}: {self.rows + done:,} rows")
