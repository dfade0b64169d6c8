"""What the servers of the lab used while a run went on."""

from itertools import pairwise
from typing import Any

from sensorbench.results.reader import ComparisonResult, RunResult


def server_use(result: ComparisonResult, run: RunResult, variant: str) -> list[dict[str, Any]]:
    """Processors and memory that the servers of a variant used over a run, all their nodes together; none where the lab knows
    no process of them. Rows: time_s, processors (busy on average since the row before), megabytes.
    """
    manifest = next(variant_manifest for variant_manifest in result.manifest.variants if variant_manifest.id == variant)
    server = result.manifest.environment.get("servers", {}).get(manifest.url.partition("?")[0])
    table = run.table("resources")
    if server is None or table is None:
        return []
    by_time: dict[int, tuple[float, float]] = {}
    for row in table.to_pylist():
        if row["process"].partition(":")[0] == server["instance"]:
            cpu_s, memory = by_time.get(row["time_ns"], (0.0, 0.0))
            by_time[row["time_ns"]] = (cpu_s + row["cpu_s"], memory + row["memory_bytes"])
    times = sorted(by_time)
    return [
        {
            "time_s": now / 1e9,
            "processors": (by_time[now][0] - by_time[before][0]) / ((now - before) / 1e9),
            "megabytes": by_time[now][1] / 1e6,
        }
        for before, now in pairwise(times)
    ]
