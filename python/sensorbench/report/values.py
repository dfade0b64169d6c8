"""The values that charts and tables show, taken from results."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow.compute as pc

from sensorbench.analysis.sample import Floats
from sensorbench.analysis.smoothing import exponentially_smoothed
from sensorbench.results import ComparisonResult, RunResult

MEASURE = "measure"
FIRST_REQUESTS = (25, 75)
_SHARES = np.concatenate([np.linspace(0.0, 0.98, 99), np.linspace(0.981, 1.0, 20)])
_PERCENTILES = np.linspace(1, 99, 99)
# More points than pixels help nobody.
MOST_POINTS = 2000


def requests(run: RunResult, operation: str) -> tuple[Floats, Floats]:
    """Numbers and latencies (s) of the logged requests of one kind, in order."""
    table = run.table("operations")
    if table is None or operation not in run.manifest.operations or MEASURE not in run.manifest.phases:
        return np.empty(0), np.empty(0)
    phase, number = run.manifest.phases.index(MEASURE), run.manifest.operations.index(operation)
    wanted = table.filter(
        pc.and_(pc.and_(pc.equal(table["phase"], phase), pc.equal(table["operation"], number)), pc.equal(table["outcome"], "ok"))
    ).sort_by("k")
    latency_ns = pc.subtract(wanted["end_ns"].cast("int64"), wanted["scheduled_ns"].cast("int64")).to_numpy()
    return wanted["k"].to_numpy().astype(np.float64), np.maximum(latency_ns, 1) / 1e9


def distribution(result: ComparisonResult, settings: list[str], operation: str) -> list[dict[str, Any]]:
    """Quantiles of all runs together."""
    return _of_all_runs(result, settings, operation, lambda latencies: [
        {"latency_s": float(np.quantile(latencies, share)), "share": float(share)} for share in _SHARES
    ])  # fmt: skip


def throughput(result: ComparisonResult, settings: list[str], operation: str) -> list[dict[str, Any]]:
    """The inverse of the latency at each percentile."""
    return _of_all_runs(result, settings, operation, lambda latencies: [
        {"percentile": float(percentile), "per_s": 1.0 / float(np.percentile(latencies, percentile))} for percentile in _PERCENTILES
    ])  # fmt: skip


def _of_all_runs(
    result: ComparisonResult, settings: list[str], operation: str, rows_of: Callable[[Floats], list[dict[str, Any]]]
) -> list[dict[str, Any]]:
    rows = []
    for setting in settings:
        latencies = np.concatenate([np.empty(0), *(requests(run, operation)[1] for run in result.usable_runs(setting))])
        if len(latencies):
            rows += [{"setting": setting, **row} for row in rows_of(latencies)]
    return rows


def over_run(result: ComparisonResult, settings: list[str], operation: str) -> list[dict[str, Any]]:
    """Each request of the first run, with a smoothed line through them."""
    rows = []
    for setting in settings:
        for run in result.usable_runs(setting)[:1]:
            numbers, latencies = requests(run, operation)
            smoothed = np.exp(exponentially_smoothed(np.log(latencies)))
            step = max(1, len(numbers) // MOST_POINTS)
            rows += [
                {"setting": setting, "request": float(number), "latency_s": float(latency), "smoothed_s": float(line)}
                for number, latency, line in zip(numbers[::step], latencies[::step], smoothed[::step], strict=True)
            ]
    return rows


def views(result: ComparisonResult, setting: str, operation: str) -> dict[str, float | None]:
    """Mean latency (s) of all requests, of the first ones, and without them, over all runs, as the source study shows them."""
    runs = [requests(run, operation) for run in result.usable_runs(setting)]
    numbers = np.concatenate([np.empty(0), *(run[0] for run in runs)])
    latencies = np.concatenate([np.empty(0), *(run[1] for run in runs)])

    def mean(chosen: Any) -> float | None:
        return float(latencies[chosen].mean()) if chosen.any() else None

    found = {"all": mean(np.ones(len(numbers), dtype=bool))}
    for first in FIRST_REQUESTS:
        found[f"first_{first}"] = mean(numbers < first)
        found[f"without_first_{first}"] = mean(numbers >= first)
    return found


def load(result: ComparisonResult, settings: list[str]) -> list[dict[str, Any]]:
    """Seconds of loading and settling."""
    loads = {setting: result.loads[setting] for setting in settings if setting in result.loads}
    return [
        {"setting": setting, "step": step, "seconds": load[f"{step}_s"]}
        for setting, load in loads.items()
        for step in ("load", "settle")
    ]


def size(result: ComparisonResult, settings: list[str]) -> list[dict[str, Any]]:
    """Megabytes on disk."""
    return [
        {"setting": setting, "megabytes": result.loads[setting]["size"]["total_bytes"] / 1e6}
        for setting in settings
        if setting in result.loads
    ]


def rate(result: ComparisonResult, settings: list[str]) -> list[dict[str, Any]]:
    """Operations a second in each interval of the first run."""
    rows = []
    for setting in settings:
        for run in result.usable_runs(setting)[:1]:
            table = run.table("intervals")
            if table is None:
                continue
            by_start = table.group_by("start_ns").aggregate([("ok", "sum"), ("length_ns", "max")]).sort_by("start_ns")
            rows += [
                {"setting": setting, "time_s": row["start_ns"] / 1e9, "per_s": row["ok_sum"] / (row["length_ns_max"] / 1e9)}
                for row in by_start.to_pylist()
            ]
    return rows
