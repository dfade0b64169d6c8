"""Retention on disk: each action of a run, and the size of the database over its time."""

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from sensorbench.results.stored import is_stored, read_parquet
from sensorbench.results.writer import write_table

RETENTION_FILE = "retention.parquet"
# What a row is about.
SIZE, ROLLUP, EXPIRE, CLOCK = "size", "rollup", "expire", "clock"
# Times are on the clock of the run; those of readings are in µs since 1970.
RETENTION_SCHEMA = pa.schema(
    {
        "kind": pa.string(),
        "start_ns": pa.int64(),
        "end_ns": pa.int64(),
        "time_us": pa.int64(),
        "from_us": pa.int64(),
        "to_us": pa.int64(),
        "before_us": pa.int64(),
        "is_last": pa.bool_(),
        "removed": pa.int64(),
        "bytes": pa.int64(),
        "error": pa.string(),
    }
)


@dataclass(frozen=True)
class RetentionEvent:
    """One thing that was done beside a run, or seen there.

    Attributes:
        kind: `size`, `rollup`, `expire`; or `clock`, a moment at which the wall clock was read.
        start_ns, end_ns: on the clock of the run.
        time_us: the time of the readings at which it was to be done; of `clock`, what the wall clock said; None of a size.
        from_us, to_us: what was rolled up.
        before_us: what is older expired.
        is_last: whether it came after the run, when everything had arrived.
        removed: rows that it removed, where the database says so.
        bytes: size on disk.
        error: why it failed.

    """

    kind: str
    start_ns: int
    end_ns: int
    time_us: int | None = None
    from_us: int | None = None
    to_us: int | None = None
    before_us: int | None = None
    is_last: bool = False
    removed: int | None = None
    bytes: int | None = None
    error: str | None = None


def write_retention(folder: Path, events: list[RetentionEvent]) -> None:
    """Writes what was done beside a run into its folder."""
    columns = {name: [getattr(event, name) for event in events] for name in RETENTION_SCHEMA.names}
    write_table(folder / RETENTION_FILE, pa.table(columns, schema=RETENTION_SCHEMA))


def read_retention(folder: Path) -> list[RetentionEvent] | None:
    """What was done beside a run; None if its workload has no retention. Raises DamagedResultsError."""
    path = folder / RETENTION_FILE
    if not is_stored(path):
        return None
    return [RetentionEvent(**row) for row in read_parquet(path, tuple(RETENTION_SCHEMA.names)).to_pylist()]
