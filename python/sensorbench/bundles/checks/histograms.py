"""Whether latencies are the same wherever they stand: in histograms, in block sums, in the engine's totals and in sampled operations."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sensorbench.bundles.checks.problem import Problem, run_name
from sensorbench.results import ComparisonResult, RunResult
from sensorbench.results.engine_report import LatencyReport
from sensorbench.results.latencies import is_logged_whole, of_kind, tagged_histograms, weighted_latencies
from sensorbench.results.latency_blocks import SERVED
from sensorbench.results.manifest import MEASURE

LATENCIES = "latencies"
# Histograms have three significant digits; block sums of long runs, bins of 0.1%.
_DIGITS = 0.003
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999, "max": 1.0}

Floats = NDArray[np.float64]


def check_latencies(result: ComparisonResult) -> Iterator[Problem]:
    """Compares the latencies of each kind of operation in each complete run."""
    for runs in result.runs.values():
        for run in runs:
            histograms = run.histograms()
            if run.manifest.status == "complete" and run.manifest.measured:
                for name in run.manifest.operations:
                    yield from _of_operation(run, name, histograms)


def _of_operation(run: RunResult, name: str, histograms: pa.Table | None) -> Iterator[Problem]:
    where = f"{run_name(run)}, {name}"
    report = run.manifest.measured[0].operations[name]
    counts = report["counts"]
    served = counts["ok"] + counts["timeout"]
    intervals = tagged_histograms(histograms, MEASURE, name, "response") if histograms is not None else []
    if not intervals:
        if served:
            yield Problem(LATENCIES, where, f"{served:,} operations were served, but there is no histogram of them")
        return
    values, weights = _ordered(*(np.concatenate(columns) for columns in zip(*intervals, strict=True)))
    if weights.sum() != served:
        yield Problem(LATENCIES, where, f"{served:,} operations were served, but its histograms have {weights.sum():,.0f}")
    yield from _totals(where, values, weights, report["response_ns"])
    if not is_logged_whole(run):
        return
    own, own_weights = _ordered(*weighted_latencies(run, name))
    if own_weights.sum() != served:
        yield Problem(LATENCIES, where, f"{served:,} operations were served, but its block sums have {own_weights.sum():,.0f}")
    elif (odd := _first_disagreement(values, weights, own, own_weights)) is not None:
        yield Problem(
            LATENCIES, where, f"histograms and block sums have different numbers of operations up to {odd * 1e3:.4g} ms"
        )
    yield from _sampled(run, name, own, own_weights)


def _ordered(values: Floats, weights: Floats) -> tuple[Floats, Floats]:
    order = np.argsort(values, kind="stable")
    return values[order], weights[order]


def _totals(where: str, values: Floats, weights: Floats, report: LatencyReport | None) -> Iterator[Problem]:
    """Quantiles and mean that the engine reported at the end, against the histograms."""
    if report is None:
        yield Problem(LATENCIES, where, "the engine reported no latencies at the end, but there are histograms")
        return
    cumulated = np.cumsum(weights)
    for key, share in _QUANTILES.items():
        place = min(int(np.searchsorted(cumulated, share * cumulated[-1] * (1 - 1e-12))), len(values) - 1)
        of_engine = report[key] / 1e9  # type: ignore[literal-required]
        if abs(values[place] - of_engine) > _DIGITS * of_engine + 2e-9:
            yield Problem(
                LATENCIES, where, f"its {key} is {of_engine * 1e3:.4g} ms, but {values[place] * 1e3:.4g} ms by its histograms"
            )
    mean = float(weights @ values / cumulated[-1])
    if abs(mean - report["mean"] / 1e9) > _DIGITS * mean + 2e-9:
        yield Problem(LATENCIES, where, f"its mean is {report['mean'] / 1e6:.4g} ms, but {mean * 1e3:.4g} ms by its histograms")


def _first_disagreement(values: Floats, weights: Floats, own: Floats, own_weights: Floats) -> float | None:
    """The first value of a histogram up to which two samples differ in their number, whatever was rounded; in s."""
    # Equal values have one cumulated number, that of the last of them.
    is_last = np.append(np.diff(values) > 0.0, True)
    at, below = values[is_last], np.cumsum(weights)[is_last]
    cumulated = np.append(0.0, np.cumsum(own_weights))
    lowest = cumulated[np.searchsorted(own, at * (1 - _DIGITS) - 2e-9, side="right")]
    highest = cumulated[np.searchsorted(own, at * (1 + _DIGITS) + 2e-9, side="right")]
    odd = np.flatnonzero((below < lowest) | (below > highest))
    return float(at[odd[0]]) if len(odd) else None


def _sampled(run: RunResult, name: str, own: Floats, own_weights: Floats) -> Iterator[Problem]:
    """The latency of each sampled operation is one of those in the block sums, and as often."""
    table = run.sampled_operations()
    if run.block_sums is None or table is None:
        return
    rows = of_kind(table, run.manifest.phases.index(MEASURE), run.manifest.operations.index(name))
    served = rows.filter(pc.is_in(rows["outcome"], SERVED))
    took_ns = served["end_ns"].to_numpy().astype(np.int64) - served["intended_start_ns"].to_numpy().astype(np.int64)
    took, times = np.unique(np.maximum(took_ns, 1) / 1e9, return_counts=True)
    # Of long runs block sums have bins.
    cumulated = np.append(0.0, np.cumsum(own_weights))
    slack = 0.0005 if (own_weights > 1).any() else 1e-12
    there = (
        cumulated[np.searchsorted(own, took * (1 + slack), side="right")]
        - cumulated[np.searchsorted(own, took * (1 - slack), side="left")]
    )
    if len(odd := np.flatnonzero(there < times)):
        text = f"{len(odd):,} of {len(took):,} latencies of sampled operations are not in its block sums, such as {took[odd[0]] * 1e3:.4g} ms"
        yield Problem(LATENCIES, f"{run_name(run)}, {name}", text)
