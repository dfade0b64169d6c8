"""What YCSB prints at the end (site.ycsb.measurements.exporter.TextMeasurementsExporter), for scripts that read it."""

from collections.abc import Iterator

import numpy as np

from sensorbench.analysis.sample import figures
from sensorbench.compat.ycsb.plan import PlannedOperation
from sensorbench.results import RunResult
from sensorbench.results.latencies import Floats, weighted_latencies
from sensorbench.results.manifest import MEASURE

_PERCENTILES = {"50th": "median", "95th": "p95", "99th": "p99"}
_FAILED = {"error": "ERROR", "timeout": "TIMEOUT", "cancelled": "CANCELLED"}


def as_text(run: RunResult, planned: list[PlannedOperation]) -> str:
    """Run time, throughput, and of each kind of operation how many there were, their latencies in µs and how they ended."""
    return "".join(f"[{group}], {what}, {value}\n" for group, what, value in _lines(run, planned))


def _lines(run: RunResult, planned: list[PlannedOperation]) -> Iterator[tuple[str, str, str]]:
    if run.manifest.totals is None:
        return
    phase = next(phase for phase in run.manifest.totals.phases if phase.name == MEASURE)
    run_ms = ((phase.end_ns or 0) - (phase.start_ns or 0)) / 1e6
    ok = sum(operation["counts"]["ok"] for operation in phase.operations.values())
    yield "OVERALL", "RunTime(ms)", f"{run_ms:.0f}"
    yield "OVERALL", "Throughput(ops/sec)", f"{ok / run_ms * 1e3 if run_ms else 0.0}"
    for kind in dict.fromkeys(operation.kind for operation in planned):
        names = [operation.name for operation in planned if operation.kind == kind]
        counts = {
            outcome: sum(phase.operations[name]["counts"][outcome] for name in names)
            for outcome in ("ok", "error", "timeout", "cancelled")
        }
        yield from _of_kind(kind, counts, *_latencies(run, names))


def _of_kind(kind: str, counts: dict[str, int], values: Floats, weights: Floats) -> Iterator[tuple[str, str, str]]:
    yield kind, "Operations", str(counts["ok"])
    if len(values):
        order = np.argsort(values)
        latencies_us, of_all = values[order] * 1e6, weights[order][None, :]
        yield kind, "AverageLatency(us)", f"{figures('mean', latencies_us, of_all)[0]}"
        yield kind, "MinLatency(us)", f"{latencies_us[0]:.0f}"
        yield kind, "MaxLatency(us)", f"{latencies_us[-1]:.0f}"
        for name, metric in _PERCENTILES.items():
            yield kind, f"{name}PercentileLatency(us)", f"{figures(metric, latencies_us, of_all)[0]:.0f}"
    yield kind, "Return=OK", str(counts["ok"])
    for outcome, name in _FAILED.items():
        if counts[outcome]:
            yield kind, f"Return={name}", str(counts[outcome])


def _latencies(run: RunResult, names: list[str]) -> tuple[Floats, Floats]:
    """Latencies (s) of several operations, and how often each was counted."""
    of_each = [weighted_latencies(run, name) for name in names]
    return np.concatenate([values for values, _ in of_each]), np.concatenate([weights for _, weights in of_each])
