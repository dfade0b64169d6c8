"""Whether the row cache, which is for the table of metadata alone, was used: its hit rate, as the server counts it."""

from collections.abc import Mapping

from sensorbench.claims import Evidence
from sensorbench.results import RunResult
from sensorbench.results.insight import insight
from sensorbench.studies.study import Column, Section

CACHE = "row cache"


def row_cache_section(parts: Mapping[str, Evidence]) -> Section:
    """Look-ups and hits of each variant in each part; a server without the cache has none."""
    rows: list[list[object]] = []
    for part, evidence in parts.items():
        for variant in evidence.result.manifest.variants:
            runs = evidence.result.usable_runs(variant.id)
            counted = [of_run for run in runs if (of_run := _counted(run, variant.database)) is not None]
            requests, hits = (sum(of_run[place] for of_run in counted) for place in (0, 1))
            if requests:
                rows.append([variant.id, part, requests, hits / requests])
    return Section(
        "The row cache",
        "Tables of readings do not use it, so that reads of them reach the files. The table of metadata of its own does: look-ups in it while a layout "
        "was measured, and the share that it answered, as the server counts both.",
        [Column("layout", "variant"), Column("part"), Column("look-ups", "count"), Column("hit rate", "share")],
        rows,
    )


def _counted(run: RunResult, database: str) -> tuple[float, float] | None:
    """How many look-ups and hits a run added."""
    series = insight(run, database).caches.get(CACHE)
    if series is None or len(series.requests) < 2:
        return None
    return float(series.requests[-1] - series.requests[0]), float(series.hits[-1] - series.hits[0])
