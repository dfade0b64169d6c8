"""What the results of a stress run say of each step: what was offered, what became of it, how long it took, and whose limit it was."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sensorbench.analysis.sample import Floats, figures
from sensorbench.experiment.honesty import client_bound
from sensorbench.experiment.watch import CLIENT
from sensorbench.results import RunResult
from sensorbench.results.latencies import tagged_histograms
from sensorbench.results.manifest import PhaseFigures
from sensorbench.results.stress import StressResult
from sensorbench.stress.steering import MARK

LATENCIES = ("mean", "median", "p90", "p95", "p99", "p999")
# Of operations that ended, by the engine's words.
OUTCOMES = ("ok", "error", "timeout", "cancelled")
# In so large a share of what may be in flight, on average, the limit of it is what is measured.
ALL_IN_FLIGHT = 0.95
# Where the median operation starts so late though less than this share of what may be in flight is, the client itself is late.
LATE_S, FEW_IN_FLIGHT = 0.001, 0.5
# A step that was held for this share of its time was not cut short.
WHOLE = 0.999


def step_figures(result: StressResult) -> list[dict[str, Any]]:
    """The figures of each step that was begun, of all runs in turn. Times in s, rates in operations a second."""
    ceiling_per_s, objective = result.manifest.environment.get("driver_ceiling_per_s"), result.manifest.objective
    limit_s = objective["limit_s"] if objective else None
    return [
        figure
        for number, run in enumerate(result.runs, start=1)
        for figure in figures_of_run(run, number, ceiling_per_s, limit_s)
    ]


def figures_of_run(
    run: RunResult, number: int, ceiling_per_s: float | None, limit_s: float | None = None
) -> list[dict[str, Any]]:
    """The figures of the steps of one run; `ceiling_per_s` is what the driver reaches when the database does nothing. With `limit_s` those
    of a complete run have the share of operations that succeeded within it.
    """
    whole = run.manifest.whole
    if whole is None:
        return []
    histograms, resources, events = run.histograms(), run.table("resources"), run.table("events")
    steps = {step["name"]: step for step in run.manifest.plan["steps"]}
    found = []
    for phase in begun_steps(run):
        start_ns, end_ns = ends_of(phase, whole.duration_ns)
        names = list(phase.operations)
        figure = {
            "run": number,
            "name": phase.name,
            "rate_per_s": steps[phase.name]["rate_per_s"],
            "start_s": start_ns / 1e9,
            "end_s": end_ns / 1e9,
            "cut_short": (end_ns - start_ns) / 1e9 < steps[phase.name]["held_s"] * WHOLE,
            "steered": _marks(events, start_ns, end_ns),
            **counts_of(phase),
            "response_s": latencies(histograms, phase.name, names, "response"),
            "service_s": latencies(histograms, phase.name, names, "service"),
            "wait_s": latencies(histograms, phase.name, names, "wait"),
            "operations": {name: _of_operation(histograms, phase, name) for name in names},
            "client_cpu": _client_cpu(resources, start_ns, end_ns),
        }
        figure |= _rates(figure)
        if limit_s is not None and run.state == "complete":
            figure["share_within"] = share_within(histograms, phase, limit_s)
        found.append({**figure, **_limits(figure, run, ceiling_per_s)})
    return found


def begun_steps(run: RunResult) -> list[PhaseFigures]:
    """The phases of a run that are steps and were begun."""
    names = {step["name"] for step in run.manifest.plan["steps"]}
    phases = run.manifest.whole.phases if run.manifest.whole else []
    return [phase for phase in phases if phase.name in names and phase.start_ns is not None]


def ends_of(phase: PhaseFigures, duration_ns: int) -> tuple[int, int]:
    """When a phase began, and when it ended: with the run, if that was cut short; both in ns on the run's clock."""
    return phase.start_ns or 0, duration_ns if phase.end_ns is None else phase.end_ns


def share_within(histograms: pa.Table | None, phase: PhaseFigures, limit_s: float) -> float:
    """Of all operations that were due in a phase, the share that succeeded within `limit_s` from when they were due."""
    counts = counts_of(phase)
    values, weights = merged(histograms, phase.name, list(phase.operations), "response")
    # Those that timed out are in the histogram, at their limit, which is above this one.
    return float(weights[values <= limit_s].sum() / counts["offered"]) if counts["offered"] else 0.0


def merged(histograms: pa.Table | None, phase: str, operations: Sequence[str], kind: str) -> tuple[Floats, Floats]:
    """Latencies (s), ascending, of all these operations in a phase, and how often each was counted."""
    pairs = (
        [pair for name in operations for pair in tagged_histograms(histograms, phase, name, kind)]
        if histograms is not None
        else []
    )
    values = np.concatenate([np.empty(0), *(values for values, _ in pairs)])
    weights = np.concatenate([np.empty(0), *(weights for _, weights in pairs)])
    order = np.argsort(values, kind="stable")
    return values[order], weights[order]


def latencies(histograms: pa.Table | None, phase: str, operations: Sequence[str], kind: str) -> dict[str, float] | None:
    """Mean, percentiles and maximum, in s; None where nothing was counted."""
    values, weights = merged(histograms, phase, operations, kind)
    if len(values) == 0:
        return None
    found = {metric: float(figures(metric, values, weights[None, :])[0]) for metric in LATENCIES}
    return {**found, "max": float(values[-1])}


def _of_operation(histograms: pa.Table | None, phase: PhaseFigures, name: str) -> dict[str, Any]:
    told = phase.operations[name]
    return {
        **{outcome: told["counts"][outcome] for outcome in OUTCOMES},
        "late": told["late"],
        "response_s": latencies(histograms, phase.name, [name], "response"),
    }


def counts_of(phase: PhaseFigures) -> dict[str, int]:
    """What became of everything that was due."""
    ended = {outcome: sum(one["counts"][outcome] for one in phase.operations.values()) for outcome in OUTCOMES}
    return {
        "offered": phase.started + phase.unstarted,
        "started": phase.started,
        "unstarted": phase.unstarted,
        "late": sum(one["late"] for one in phase.operations.values()),
        **ended,
    }


def _rates(figure: Mapping[str, Any]) -> dict[str, float]:
    length_s = max(figure["end_s"] - figure["start_s"], 1e-9)
    service = figure["service_s"]
    return {
        "offered_per_s": figure["offered"] / length_s,
        "completed_per_s": figure["ok"] / length_s,
        # Little's law: how many were in flight on average.
        "in_flight": figure["started"] / length_s * service["mean"] if service else 0.0,
    }


def _limits(figure: Mapping[str, Any], run: RunResult, ceiling_per_s: float | None) -> dict[str, Any]:
    """Whether the client was the limit, and why; and whether all that may be in flight were."""
    plan, wait = run.manifest.plan, figure["wait_s"]
    reason = client_bound(
        rate_per_s=figure["completed_per_s"],
        ceiling_per_s=ceiling_per_s,
        client_cpu=figure["client_cpu"],
        threads=plan["threads"],
        embedded=run.manifest.setting.embedded,
    )
    is_full = figure["in_flight"] >= ALL_IN_FLIGHT * plan["in_flight"]
    if reason is None and wait and wait["median"] > LATE_S and figure["in_flight"] < FEW_IN_FLIGHT * plan["in_flight"]:
        reason = f"half of the operations started more than {wait['median'] * 1e3:.3g} ms late, with {figure['in_flight']:,.0f} of {plan['in_flight']:,} in flight"
    return {"client_bound": reason, "all_in_flight": is_full}


def _client_cpu(resources: pa.Table | None, start_ns: int, end_ns: int) -> float | None:
    """Processors that the client kept busy in a stretch of time, as far as it was looked at."""
    if resources is None:
        return None
    own = resources.filter(pc.equal(resources["process"], CLIENT)).sort_by("time_ns")
    times, cpu_s = own["time_ns"].to_numpy().astype(np.float64), own["cpu_s"].to_numpy()
    if len(times) < 2:
        return None
    at_ends = np.interp([start_ns, end_ns], times, cpu_s)
    return float((at_ends[1] - at_ends[0]) / max((end_ns - start_ns) / 1e9, 1e-9))


def _marks(events: pa.Table | None, start_ns: int, end_ns: int) -> list[str]:
    """How the rate was changed by hand in a stretch of time."""
    rows = events.to_pylist() if events is not None else []
    return [row["name"] for row in rows if start_ns <= row["time_ns"] <= end_ns and row["name"].startswith(MARK)]
