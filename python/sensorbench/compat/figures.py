"""What a run says in the words of another tool: counts and latencies of each of its kinds of operations."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from sensorbench.analysis.sample import figures
from sensorbench.results import RunResult
from sensorbench.results.latencies import Floats, weighted_latencies
from sensorbench.results.manifest import MEASURE, OUTCOMES, PhaseFigures
from sensorbench.results.planned import ToolOperation
from sensorbench.results.reader import described_damage
from sensorbench.results.summary.envelope import Caveat, Caveats, envelope
from sensorbench.results.summary.tools import CassandraStressSummary, KindFigures, ToolFigures, ToolLatencies, YcsbSummary
from sensorbench.results.tools import ToolResult
from sensorbench.runner import health_of_client, warn_of_client

Summary = TypeVar("Summary", YcsbSummary, CassandraStressSummary)
# Of how many partitions the operations were that succeeded, by the run, the operation's name and plan, and how many they were.
CountPartitions = Callable[[RunResult, str, ToolOperation, int], float]

_METRICS = ("mean", "median", "p90", "p95", "p99", "p999")


@dataclass(frozen=True)
class _Counted:
    """What became of operations, and their latencies (s), with how often each was counted."""

    outcomes: dict[str, int]
    rows: int
    partitions: float | None
    latencies: Floats
    counts: Floats


def summarise_tool(result: ToolResult[Any], summary: type[Summary], count_partitions: CountPartitions | None = None) -> Summary:
    """The summary of a run on disk; `count_partitions` where the tool counts those."""
    manifest, run = result.manifest, result.run
    variant = manifest.variants[0]
    health = health_of_client([run] if run else [], variant.embedded, manifest.environment.get("driver_ceiling_per_s"))
    caveats = Caveats(damaged_files(run) if run else [])
    warn_of_client(caveats, health)
    phase = measured_phase(run) if run else None
    counted = {
        name: _counted(run, phase, name, planned, count_partitions)
        for name, planned in manifest.plan.operations.items()
        if run and phase
    }
    kinds = dict.fromkeys(planned.kind for planned in manifest.plan.operations.values())
    return summary(
        **envelope(manifest),
        warnings=caveats,
        result=ToolFigures(
            plan=manifest.plan,
            run_s=((phase.end_ns or 0) - (phase.start_ns or 0)) / 1e9 if phase else None,
            total=_figures(list(counted.values())),
            kinds={
                kind: _figures([of for name, of in counted.items() if manifest.plan.operations[name].kind == kind])
                for kind in kinds
            },
            client_health=health,
        ),
    )


def damaged_files(run: RunResult) -> list[Caveat]:
    """A caveat for each file of a run that is damaged and was left out."""
    action = "Restore the file from a copy."
    return [
        Caveat(kind="damaged", text=f"A file of the results is damaged: {text}.", action=action) for text in described_damage(run)
    ]


def measured_phase(run: RunResult) -> PhaseFigures | None:
    """The phase that counts; None if the run was cut short before it was counted."""
    totals = run.manifest.totals
    return next((phase for phase in totals.phases if phase.name == MEASURE), None) if totals else None


def _counted(
    run: RunResult, phase: PhaseFigures, name: str, planned: ToolOperation, count_partitions: CountPartitions | None
) -> _Counted:
    of_engine = phase.operations[name]
    outcomes = {outcome: of_engine["counts"][outcome] for outcome in OUTCOMES}
    ok = outcomes["ok"]
    return _Counted(
        outcomes,
        of_engine["rows"] if planned.rows is None else ok * planned.rows,
        count_partitions(run, name, planned, ok) if count_partitions else None,
        *weighted_latencies(run, name),
    )


def _figures(counted: Sequence[_Counted]) -> KindFigures:
    """The figures of operations together."""
    latencies = np.concatenate([np.empty(0), *(of.latencies for of in counted)])
    order = np.argsort(latencies)
    counts = np.concatenate([np.empty(0), *(of.counts for of in counted)])[order]
    partitions = [of.partitions for of in counted if of.partitions is not None]
    return KindFigures(
        **{outcome: sum(of.outcomes[outcome] for of in counted) for outcome in OUTCOMES},
        rows=sum(of.rows for of in counted),
        partitions=sum(partitions) if partitions else None,
        response_s=latencies_of(latencies[order], counts) if len(latencies) else None,
    )


def latencies_of(ascending: Floats, counts: Floats) -> ToolLatencies:
    """Figures of latencies.

    Args:
        ascending: the latencies in ascending order, in s, shape (latencies,).
        counts: how often each was counted, shape (latencies,).

    """
    of_metrics = {metric: float(figures(metric, ascending, counts[None, :])[0]) for metric in _METRICS}
    return ToolLatencies(min=float(ascending[0]), max=float(ascending[-1]), **of_metrics)
