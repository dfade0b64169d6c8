"""What a bundle keeps of each run in the place of its log: block sums, and a sample of the operations.

Block sums are the latencies of each kind of operation by block, without their order inside a block. Figures and their intervals follow from
them exactly as from the log, at a fraction of its size. The sample says of some operations when they were due, started and ended.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sensorbench.results.stored import read_parquet

Floats = NDArray[np.float64]
# Of each block of consecutive operations the latencies in seconds, and how many of each there were.
Blocks = Sequence[tuple[Floats, Floats]]

BLOCK_SUMS_FILE = "block_sums.parquet"
SAMPLED_FILE = "sampled_operations.parquet"
# Latencies are whole nanoseconds, or middles of bins, which are multiples of this.
_GRID = 2048.0
_COLUMNS = ("operation", "block", "value_ns", "count")


def write_block_sums(path: Path, sums: Mapping[str, Blocks]) -> None:
    """Writes the block sums of a run.

    Args:
        path: the file.
        sums: by kind of operation.

    """
    tables = [_table(operation, blocks) for operation, blocks in sorted(sums.items()) if blocks]
    if not tables:
        return
    table = pa.concat_tables(tables)
    place, values = table.schema.get_field_index("value_ns"), table["value_ns"].to_numpy()
    encoding = "BYTE_STREAM_SPLIT"
    if (values == np.trunc(values)).all():
        # Those of a log are whole, and rise inside each block: what lies between two takes half as many bits as they do.
        table = table.set_column(place, "value_ns", pa.array(values.astype(np.int64)))
        encoding = "DELTA_BINARY_PACKED"
    pq.write_table(
        table,
        path,
        compression="zstd",
        use_dictionary=["operation", "count"],
        column_encoding={"value_ns": encoding, "block": "DELTA_BINARY_PACKED"},
    )


def read_block_sums(path: Path) -> dict[str, Blocks]:
    """The block sums of a run, by kind of operation. Raises DamagedResultsError."""
    table = read_parquet(path, _COLUMNS)
    return {name: _blocks(table.filter(pc.equal(table["operation"], name))) for name in table["operation"].unique().to_pylist()}


def _table(operation: str, blocks: Blocks) -> pa.Table:
    ordered = [np.argsort(values, kind="stable") for values, _ in blocks]
    values = np.concatenate([values[order] for (values, _), order in zip(blocks, ordered, strict=True)])
    counts = np.concatenate([counts[order] for (_, counts), order in zip(blocks, ordered, strict=True)])
    numbers = np.repeat(np.arange(len(blocks)), [len(values) for values, _ in blocks])
    return pa.table(
        {
            "operation": pa.array([operation] * len(values), pa.string()),
            "block": pa.array(numbers, pa.int32()),
            "value_ns": pa.array(np.round(values * 1e9 * _GRID) / _GRID, pa.float64()),
            "count": pa.array(counts, pa.float64()),
        }
    )


def _blocks(table: pa.Table) -> Blocks:
    numbers = table["block"].to_numpy()
    ends = np.flatnonzero(np.diff(numbers)) + 1
    values, counts = table["value_ns"].to_numpy() / 1e9, table["count"].to_numpy()
    return list(zip(np.split(values, ends), np.split(counts, ends), strict=True))
