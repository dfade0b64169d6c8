"""Writing tables of results as Parquet files, so that whatever ends the process leaves whole ones."""

from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sensorbench.results.files import whole_file


def write_table(path: Path, table: pa.Table) -> None:
    """Writes a Parquet file of results, all of it or nothing, and its checksum."""
    write_tables(path, [table])


def write_tables(path: Path, tables: Iterable[pa.Table]) -> None:
    """Writes tables with equal columns as one Parquet file, one after the other, so that no more than one is in memory."""
    with whole_file(path, is_result=True) as unfinished:
        remaining = iter(tables)
        first = next(remaining)
        with pq.ParquetWriter(unfinished, first.schema, compression="zstd") as writer:
            for table in chain([first], remaining):
                writer.write_table(table)
