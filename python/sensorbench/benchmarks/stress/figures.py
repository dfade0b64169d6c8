"""What the results of a stress run say of each step: what was offered, what became of it, how long it took, and whose limit it was."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sensorbench.analysis.sample import Floats, figures
from sensorbench.analysis.steady import MIN_WINDOWS, time_to_steady
from sensorbench.benchmarks.stress.objective import Objective
from sensorbench.benchmarks.stress.steering import MARK
from sensorbench.results import RunResult
from sensorbench.results.insight import Insight, insight, over
from sensorbench.results.latencies import tagged_histograms
from sensorbench.results.manifest import OUTCOMES, PhaseFigures
from sensorbench.results.stress import StressResult
from sensorbench.results.summary.stress import Latencies, OperationCounts, ServerFigures, StepOperation, StressStep
from sensorbench.runner import CLIENT, GENERATOR, client_bound

LATENCIES = ("mean", "median", "p90", "p95", "p99", "p999")
# In so large a share of what may be in flight, on average, the limit of it is what is measured.
ALL_IN_FLIGHT = 0.95
# Where the median operation starts so late though less than this share of what may be in flight is, the client itself is late.
LATE_S, FEW_IN_FLIGHT = 0.001, 0.5
# A step that was held for this share of its time was not cut short.
WHOLE = 0.999
# Servers are asked once per second; a step has this many windows, but none is shorter than two samples.
WINDOWS, MIN_WINDOW_S = 60, 2.0


def step_figures(result: StressResult) -> list[StressStep]:
    """The figures of each step that was begun, in order over all runs."""
    manifest = result.manifest
    ceiling_per_s = manifest.environment.get("driver_ceiling_per_s")
    stated = manifest.plan.objective
    objective = Objective(stated.percentile, stated.limit_s) if stated else None
    return [
        step
        for number, run in enumerate(result.runs, start=1)
        for step in _steps_of_run(run, number, ceiling_per_s, objective, manifest.variants[0].database)
    ]


def _steps_of_run(
    run: RunResult, number: int, ceiling_per_s: float | None, objective: Objective | None, database: str
) -> list[StressStep]:
    """The steps of one run; `ceiling_per_s` is what the driver reaches when the database does nothing."""
    totals = run.manifest.totals
    if totals is None:
        return []
    tables = _Tables(run.histograms(), run.table("resources"), run.table("events"))
    reported = insight(run, database)
    return [
        _step(run, number, phase, ends_of(phase, totals.duration_ns), tables, reported, ceiling_per_s, objective)
        for phase in begun_steps(run)
    ]


@dataclass(frozen=True)
class _Tables:
    """Tables of a run."""

    histograms: pa.Table | None
    resources: pa.Table | None
    events: pa.Table | None


def _step(
    run: RunResult,
    number: int,
    phase: PhaseFigures,
    ends_ns: tuple[int, int],
    tables: _Tables,
    reported: Insight,
    ceiling_per_s: float | None,
    objective: Objective | None,
) -> StressStep:
    planned = next(step for step in run.manifest.plan["steps"] if step["name"] == phase.name)
    start_s, end_s = (time_ns / 1e9 for time_ns in ends_ns)
    length_s = max(end_s - start_s, 1e-9)
    names, counts = list(phase.operations), counts_of(phase)
    response, service, lag = (latencies(tables.histograms, phase.name, names, kind) for kind in ("response", "service", "wait"))
    client_cpus = _client_cpus(tables.resources, *ends_ns)
    # Little's law.
    concurrency = counts.started / length_s * service.mean if service else 0.0
    share = share_within(tables.histograms, phase, objective.limit_s) if objective and run.state == "complete" else None
    return StressStep(
        run=number,
        name=phase.name,
        rate_per_s=planned["rate_per_s"],
        start_s=start_s,
        end_s=end_s,
        cut_short=end_s - start_s < planned["held_s"] * WHOLE,
        steered=_annotations(tables.events, *ends_ns),
        counts=counts,
        response_s=response,
        service_s=service,
        schedule_lag_s=lag,
        operations={name: _of_operation(tables.histograms, phase, name) for name in names},
        client_cpu=sum(client_cpus.values()) if client_cpus else None,
        offered_per_s=counts.offered / length_s,
        completed_per_s=counts.ok / length_s,
        concurrency=concurrency,
        share_within=share,
        met=objective.is_met(share) if objective and share is not None else None,
        client_bound=_client_bound(run, counts.ok / length_s, ceiling_per_s, client_cpus, lag, concurrency),
        at_concurrency_limit=concurrency >= ALL_IN_FLIGHT * run.manifest.plan["concurrency"],
        servers=_servers(reported, start_s, end_s),
    )


def _servers(reported: Insight, from_s: float, to_s: float) -> ServerFigures:
    """What the servers reported in a step."""
    window = over(reported, from_s, to_s)
    return ServerFigures(
        hit_rates=window.hit_rates, rates=window.rates, means=window.means, steady_after_s=_steady(reported, from_s, to_s)
    )


def _steady(reported: Insight, from_s: float, to_s: float) -> dict[str, float | None]:
    """For each cache that was asked, how long after the step began its hit rate was steady; None if it was not, or is not known."""
    window_s = max(MIN_WINDOW_S, (to_s - from_s) / WINDOWS)
    steady = {}
    for name, (times_s, hits, requests) in reported.caches.items():
        inside = (times_s >= from_s) & (times_s <= to_s)
        if inside.sum() > MIN_WINDOWS and requests[inside][-1] > requests[inside][0]:
            steady[name] = time_to_steady(times_s[inside], hits[inside], requests[inside], window_s=window_s)
    return steady


def begun_steps(run: RunResult) -> list[PhaseFigures]:
    """The phases of a run that are steps and were begun."""
    names = {step["name"] for step in run.manifest.plan["steps"]}
    return [phase for phase in run.manifest.phase_figures if phase.name in names and phase.start_ns is not None]


def ends_of(phase: PhaseFigures, duration_ns: int) -> tuple[int, int]:
    """When a phase began, and when it ended: with the run, if that was cut short; both in ns on the run's clock."""
    return phase.start_ns or 0, duration_ns if phase.end_ns is None else phase.end_ns


def share_within(histograms: pa.Table | None, phase: PhaseFigures, limit_s: float) -> float:
    """Of all operations that were due in a phase, the share that succeeded within `limit_s` from when they were due."""
    counts = counts_of(phase)
    values, weights = merged(histograms, phase.name, list(phase.operations), "response")
    # Those that timed out are in the histogram, at their limit, which is above this one.
    return float(weights[values <= limit_s].sum() / counts.offered) if counts.offered else 0.0


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


def latencies(histograms: pa.Table | None, phase: str, operations: Sequence[str], kind: str) -> Latencies | None:
    """Mean, percentiles and maximum, in s; None if nothing was counted."""
    values, weights = merged(histograms, phase, operations, kind)
    if len(values) == 0:
        return None
    found = {metric: float(figures(metric, values, weights[None, :])[0]) for metric in LATENCIES}
    return Latencies(**found, max=float(values[-1]))


def _of_operation(histograms: pa.Table | None, phase: PhaseFigures, name: str) -> StepOperation:
    ended = phase.operations[name]
    return StepOperation(
        **{outcome: ended["counts"][outcome] for outcome in OUTCOMES},
        late=ended["late"],
        response_s=latencies(histograms, phase.name, [name], "response"),
    )


def counts_of(phase: PhaseFigures) -> OperationCounts:
    """What became of all arrivals of a phase."""
    ended = {outcome: sum(operation["counts"][outcome] for operation in phase.operations.values()) for outcome in OUTCOMES}
    return OperationCounts(
        offered=phase.started + phase.dropped,
        started=phase.started,
        dropped=phase.dropped,
        late=sum(operation["late"] for operation in phase.operations.values()),
        **ended,
    )


def _client_bound(
    run: RunResult,
    rate_per_s: float,
    ceiling_per_s: float | None,
    client_cpus: Mapping[str, float],
    lag: Latencies | None,
    concurrency: float,
) -> str | None:
    """Why the client was the limit, or one of its load generators; None if none was."""
    plan = run.manifest.plan
    generators = plan.get("generators", 1)
    reason = None
    cpus: Mapping[str, float | None] = client_cpus or {CLIENT: None}
    for process, cpu in cpus.items():
        bound = client_bound(
            rate_per_s=rate_per_s / generators,
            ceiling_per_s=ceiling_per_s,
            client_cpu=cpu,
            threads=plan["threads"],
            embedded=run.manifest.variant.embedded,
        )
        if bound is not None and reason is None:
            reason = bound if process == CLIENT else f"load {process}: {bound}"
    if reason is None and lag and lag.median > LATE_S and concurrency < FEW_IN_FLIGHT * plan["concurrency"]:
        return f"half of the operations started more than {lag.median * 1e3:.3g} ms late, with {concurrency:,.0f} of {plan['concurrency']:,} in flight"
    return reason


def _client_cpus(resources: pa.Table | None, start_ns: int, end_ns: int) -> dict[str, float]:
    """Processors that the client kept busy in a time bucket, as far as it was looked at; each of its load generators, where there are some."""
    if resources is None:
        return {}
    processes = [name for name in pc.unique(resources["process"]).to_pylist() if name.startswith(f"{GENERATOR} ")]
    found = {}
    for process in processes or [CLIENT]:
        own = resources.filter(pc.equal(resources["process"], process)).sort_by("time_ns")
        times, cpu_s = own["time_ns"].to_numpy().astype(np.float64), own["cpu_s"].to_numpy()
        if len(times) >= 2:
            at_ends = np.interp([start_ns, end_ns], times, cpu_s)
            found[process] = float((at_ends[1] - at_ends[0]) / max((end_ns - start_ns) / 1e9, 1e-9))
    return found


def _annotations(events: pa.Table | None, start_ns: int, end_ns: int) -> list[str]:
    """How the rate was changed by hand in a time bucket."""
    rows = events.to_pylist() if events is not None else []
    return [row["name"] for row in rows if start_ns <= row["time_ns"] <= end_ns and row["name"].startswith(MARK)]
