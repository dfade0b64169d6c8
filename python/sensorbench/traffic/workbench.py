"""DuckDB for what is computed over traces and logs: however long they are, it takes the same memory, and what does not fit lies on disk meanwhile."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

# Each thread has rows of its own in memory: more of them than this would need more than the limit.
_MAX_THREADS = 4


@contextmanager
def workbench_on_disk(
    memory: str = "512MB", *, ordered: bool = True, file: str | None = None
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection, and a folder for what it puts on disk, both of which end with the context.

    Args:
        memory: how much it may take, in DuckDB's words.
        ordered: whether rows without ORDER BY come in the order in which they lie, which takes more memory.
        file: the name of a database in that folder, for tables that are longer than the memory; tables are in memory if None.

    """
    with tempfile.TemporaryDirectory(prefix="sensorbench-traffic-") as place:
        config: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": memory,
            "temp_directory": place,
            "preserve_insertion_order": ordered,
            "threads": min(_MAX_THREADS, os.cpu_count() or 1),
        }
        with duckdb.connect(Path(place) / file if file else ":memory:", config=config) as workbench:
            yield workbench
