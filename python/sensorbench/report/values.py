"""The values that charts and tables show, taken from results."""

import math
from typing import Any

import numpy as np
import pyarrow.compute as pc

from sensorbench.analysis.sample import Floats
from sensorbench.analysis.smoothing import exponentially_smoothed
from sensorbench.report.charts import (
    IntervalRow,
    InverseRow,
    LoadRow,
    QuantileRow,
    RateRow,
    RequestRow,
    SizeRow,
    UseRow,
)
from sensorbench.results import ComparisonResult
from sensorbench.results.latencies import is_held_whole, logged_latencies, of_kind, weighted_latencies
from sensorbench.results.manifest import MEASURE
from sensorbench.results.server_use import server_use

FIRST_REQUESTS = (25, 75)
_SHARES = np.concatenate([np.linspace(0.0, 0.98, 99), np.linspace(0.981, 1.0, 20)])
_PERCENTILES = np.linspace(1, 99, 99)
# More points than pixels help nobody: of one variant, and of a chart, which a page carries whole.
MAX_POINTS, MAX_POINTS_OF_ALL = 2000, 20_000


def distribution(result: ComparisonResult, variants: list[str], operation: str) -> list[QuantileRow]:
    """Quantiles of all runs together."""
    rows = []
    for variant in variants:
        for share, latency_s in zip(_SHARES, _quantiles(result, variant, operation, _SHARES), strict=False):
            rows.append(QuantileRow(variant, float(latency_s), float(share)))
    return rows


def throughput(result: ComparisonResult, variants: list[str], operation: str) -> list[InverseRow]:
    """The inverse of the latency at each percentile."""
    rows = []
    for variant in variants:
        for percentile, latency_s in zip(_PERCENTILES, _quantiles(result, variant, operation, _PERCENTILES / 100), strict=False):
            rows.append(InverseRow(variant, float(percentile), 1.0 / float(latency_s)))
    return rows


def _quantiles(result: ComparisonResult, variant: str, operation: str, shares: Floats) -> Floats:
    """Quantiles of the latencies of all runs; none if there are no latencies."""
    weighted = [weighted_latencies(run, operation) for run in result.usable_runs(variant)]
    values = np.concatenate([np.empty(0), *(values for values, _ in weighted)])
    weights = np.concatenate([np.empty(0), *(weights for _, weights in weighted)])
    if len(values) == 0:
        return np.empty(0)
    order = np.argsort(values)
    cumulated = np.cumsum(weights[order])
    places = np.searchsorted(cumulated, shares * cumulated[-1] * (1 - 1e-12))
    found: Floats = values[order][np.minimum(places, len(values) - 1)]
    return found


def over_run(result: ComparisonResult, variants: list[str], operation: str) -> list[RequestRow]:
    """Each request of the first run, with a smoothed line through them. Nothing where not every request was logged, or there are too many."""
    rows = []
    per_variant = min(MAX_POINTS, MAX_POINTS_OF_ALL // max(1, len(variants)))
    for variant in variants:
        for run in result.usable_runs(variant)[:1]:
            if not is_held_whole(run):
                continue
            numbers, latencies = logged_latencies(run, operation)
            smoothed = np.exp(exponentially_smoothed(np.log(latencies)))
            step = math.ceil(len(numbers) / max(1, per_variant)) or 1
            rows += [
                RequestRow(variant, float(number), float(latency), float(line))
                for number, latency, line in zip(numbers[::step], latencies[::step], smoothed[::step], strict=True)
            ]
    return rows


def over_time(result: ComparisonResult, variants: list[str], operation: str) -> list[IntervalRow]:
    """Median and 99th percentile of each interval of the first run: where requests are not shown one by one, and where a server's use
    of processor and memory is shown on the same axis.
    """
    rows = []
    for variant in variants:
        for run in result.usable_runs(variant)[:1]:
            table = run.table("intervals")
            has_server = bool(server_use(result, run, variant))
            if (is_held_whole(run) and not has_server) or table is None or MEASURE not in run.manifest.phases:
                continue
            # A schema may be able to answer a part of the operations.
            if operation not in run.manifest.operations:
                continue
            phase, number = run.manifest.phases.index(MEASURE), run.manifest.operations.index(operation)
            intervals = of_kind(table, phase, number).sort_by("start_ns")
            # In an interval in which all operations failed, there is no latency.
            for row in intervals.filter(pc.is_valid(intervals["response_p50_ns"])).to_pylist():
                for quantile in ("p50", "p99"):
                    latency_s = row[f"response_{quantile}_ns"] / 1e9
                    rows.append(IntervalRow(variant, row["start_ns"] / 1e9, quantile, latency_s))
    return rows


def longest_first_run_s(result: ComparisonResult, variants: list[str]) -> float:
    """When the longest of the first runs ended; at least a second."""
    all_totals = [run.manifest.totals for variant in variants for run in result.usable_runs(variant)[:1] if run.manifest.totals]
    return max([1.0, *(totals.duration_ns / 1e9 for totals in all_totals)])


def resources(result: ComparisonResult, variants: list[str]) -> list[UseRow]:
    """What the servers used over the first run of each variant."""
    return [
        UseRow(variant, use.time_s, use.processors, use.megabytes)
        for variant in variants
        for run in result.usable_runs(variant)[:1]
        for use in server_use(result, run, variant)
    ]


def views(result: ComparisonResult, variant: str, operation: str) -> dict[str, float | None] | None:
    """Mean latency (s) of all requests, of the first ones, and without them, over all runs, as the paper shows them;
    None if not every request was logged, or there are too many.
    """
    runs = result.usable_runs(variant)
    if not runs or not all(is_held_whole(run) for run in runs):
        return None
    logged = [logged_latencies(run, operation) for run in runs]
    numbers, latencies = np.concatenate([array for array, _ in logged]), np.concatenate([array for _, array in logged])

    def mean(chosen: Any) -> float | None:
        return float(latencies[chosen].mean()) if chosen.any() else None

    found = {"all": mean(np.ones(len(numbers), dtype=bool))}
    for first in FIRST_REQUESTS:
        found[f"first_{first}"] = mean(numbers < first)
        found[f"without_first_{first}"] = mean(numbers >= first)
    return found


def load(result: ComparisonResult, variants: list[str]) -> list[LoadRow]:
    """Seconds of loading and settling."""
    loads = {variant: result.loads[variant] for variant in variants if variant in result.loads}
    return [
        LoadRow(variant, step, seconds)
        for variant, load in loads.items()
        for step, seconds in (("load", load.load_s), ("settle", load.settle_s))
    ]


def size(result: ComparisonResult, variants: list[str]) -> list[SizeRow]:
    """Megabytes on disk."""
    return [SizeRow(variant, size / 1e6) for variant in variants if (size := result.size_bytes(variant)) is not None]


def rate(result: ComparisonResult, variants: list[str]) -> list[RateRow]:
    """Operations per second in each interval of the first run, without the last, which was cut short."""
    rows = []
    for variant in variants:
        for run in result.usable_runs(variant)[:1]:
            table = run.table("intervals")
            if table is None:
                continue
            by_start = table.group_by("start_ns").aggregate([("ok", "sum"), ("length_ns", "max")]).sort_by("start_ns")
            rows += [
                RateRow(variant, row["start_ns"] / 1e9, row["ok_sum"] / (row["length_ns_max"] / 1e9))
                for row in by_start.to_pylist()[:-1]
            ]
    return rows
