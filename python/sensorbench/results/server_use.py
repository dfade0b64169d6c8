"""What the servers of the lab used during a run."""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sensorbench.results.reader import ComparisonResult, RunResult

_DISK = ("read_bytes", "written_bytes")


class ServerUse(NamedTuple):
    """What servers used at a time of a run: CPUs that were busy on average since the time before, memory, and the bytes that they read
    from and wrote to their disks per second since then (None if the system does not say).
    """

    time_s: float
    processors: float
    megabytes: float
    disk_bytes_per_s: float | None = None


def server_use(result: ComparisonResult, run: RunResult, variant: str) -> list[ServerUse]:
    """CPUs, memory and disk that the servers of a variant used over a run, all their nodes together; none where the lab knows
    no process of them.
    """
    manifest = next(variant_manifest for variant_manifest in result.manifest.variants if variant_manifest.id == variant)
    server = result.server(manifest)
    table = run.table("resources")
    if server is None or table is None:
        return []
    # Who was measured alone had a server of its own.
    of_blocks = {block.instance for block in result.blocks if block.variant == variant and block.instance}
    sums = _by_time(table, of_blocks or {server["instance"]})
    times_s = sums["time_ns"].to_numpy().astype(np.float64) / 1e9
    lengths_s = np.diff(times_s)
    processors = np.diff(sums["cpu_s_sum"].to_numpy()) / lengths_s
    megabytes = sums["memory_bytes_sum"].to_numpy()[1:] / 1e6
    disk = np.diff(_disk_bytes(sums)) / lengths_s
    return [
        ServerUse(time_s, busy, memory, None if np.isnan(moved) else moved)
        for time_s, busy, memory, moved in zip(
            times_s[1:].tolist(), processors.tolist(), megabytes.tolist(), disk.tolist(), strict=True
        )
    ]


def _by_time(table: pa.Table, instances: Collection[str]) -> pa.Table:
    """The sums over the processes of instances at each moment. A process is named instance:node."""
    names = pc.list_element(pc.split_pattern(table["process"], ":", max_splits=1), 0)
    is_of_instance = pc.is_in(names, pa.array(instances))
    columns = ["cpu_s", "memory_bytes", *(name for name in _DISK if name in table.column_names)]
    return table.filter(is_of_instance).group_by("time_ns").aggregate([(name, "sum") for name in columns]).sort_by("time_ns")


def _disk_bytes(sums: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Bytes read and written until each moment; NaN where that is not known."""
    known = [sums[f"{name}_sum"] for name in _DISK if f"{name}_sum" in sums.column_names]
    if len(known) < len(_DISK):
        return np.full(sums.num_rows, np.nan)
    return sum((column.cast(pa.float64()).to_numpy(zero_copy_only=False) for column in known), np.zeros(sums.num_rows))
