"""What the servers of the lab used while a run went on."""

from itertools import pairwise
from typing import NamedTuple

from sensorbench.results.reader import ComparisonResult, RunResult


class ServerUse(NamedTuple):
    """What servers used at a time of a run: CPUs that were busy on average since the time before, and memory."""

    time_s: float
    processors: float
    megabytes: float


def server_use(result: ComparisonResult, run: RunResult, variant: str) -> list[ServerUse]:
    """Processors and memory that the servers of a variant used over a run, all their nodes together; none where the lab knows
    no process of them.
    """
    manifest = next(variant_manifest for variant_manifest in result.manifest.variants if variant_manifest.id == variant)
    server = result.server(manifest)
    table = run.table("resources")
    if server is None or table is None:
        return []
    # Who was measured alone had a server of its own.
    names = {block.instance for block in result.blocks if block.variant == variant} or {server["instance"]}
    by_time: dict[int, tuple[float, float]] = {}
    for row in table.to_pylist():
        if row["process"].partition(":")[0] in names:
            cpu_s, memory = by_time.get(row["time_ns"], (0.0, 0.0))
            by_time[row["time_ns"]] = (cpu_s + row["cpu_s"], memory + row["memory_bytes"])
    times = sorted(by_time)
    return [
        ServerUse(now / 1e9, (by_time[now][0] - by_time[before][0]) / ((now - before) / 1e9), by_time[now][1] / 1e6)
        for before, now in pairwise(times)
    ]
