"""What cassandra-stress prints at the end of a run (StressMetrics.java), for people and scripts that read it. Latencies are in
ms.

An operation's rows are those that it wrote or was answered; its partitions those that it wrote to, or one where it was answered
any row.
"""

from collections.abc import Callable
from dataclasses import dataclass
from operator import methodcaller

import numpy as np
import pyarrow.compute as pc

from sensorbench.analysis.sample import figures
from sensorbench.compat.cassandra_stress.plan import PlannedOperation
from sensorbench.results import RunResult
from sensorbench.results.latencies import Floats, of_kind, weighted_latencies
from sensorbench.results.manifest import MEASURE, PhaseFigures

_LATENCIES = {
    "mean": "mean",
    "median": "median",
    "95th percentile": "p95",
    "99th percentile": "p99",
    "99.9th percentile": "p999",
}
_FAILED = ("error", "timeout", "cancelled")


@dataclass(frozen=True)
class _Total:
    """What became of operations: how many ended well and how many did not, their partitions and rows, and all latencies (ms),
    in order, with how often each was counted.
    """

    operations: int
    errors: int
    partitions: float
    rows: int
    latencies: Floats
    counts: Floats

    def latency(self, metric: str) -> float:
        """A figure of the latencies; 0 where there is none, as in cassandra-stress."""
        return float(figures(metric, self.latencies, self.counts[None, :])[0]) if len(self.latencies) else 0.0

    def max(self) -> float:
        """The longest latency."""
        return float(self.latencies[-1]) if len(self.latencies) else 0.0


def as_text(run: RunResult, planned: list[PlannedOperation]) -> str:
    """Rates, latencies, totals and the time that all took; each for all operations, and for each kind."""
    if run.manifest.totals is None:
        return ""
    phase = next(phase for phase in run.manifest.totals.phases if phase.name == MEASURE)
    run_s = ((phase.end_ns or 0) - (phase.start_ns or 0)) / 1e9
    totals = [(operation.kind, _total(run, phase, operation)) for operation in planned]
    of_kinds = {kind: _added([total for of, total in totals if of == kind]) for kind, _ in totals}
    whole = _added(list(of_kinds.values()))

    def line(name: str, form: str, unit: str, figure: Callable[[_Total], float]) -> str:
        each = ", ".join(f"{kind}: {figure(of_kind):{form}}{unit}" for kind, of_kind in of_kinds.items())
        return f"{name:<25} : {figure(whole):{form}}{unit} [{each}]"

    def rate(count: Callable[[_Total], float]) -> Callable[[_Total], float]:
        return lambda total: count(total) / run_s if run_s else 0.0

    seconds = round(run_s)
    return "\n".join(
        [
            "Results:",
            line("Op rate", ",.0f", " op/s", rate(lambda total: total.operations)),
            line("Partition rate", ",.0f", " pk/s", rate(lambda total: total.partitions)),
            line("Row rate", ",.0f", " row/s", rate(lambda total: total.rows)),
            *(line(f"Latency {name}", ".1f", " ms", methodcaller("latency", metric)) for name, metric in _LATENCIES.items()),
            line("Latency max", ".1f", " ms", _Total.max),
            line("Total partitions", ",.0f", "", lambda total: total.partitions),
            line("Total errors", ",.0f", "", lambda total: total.errors),
            f"{'Total operation time':<25} : {seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}",
            "",
        ]
    )


def _total(run: RunResult, phase: PhaseFigures, planned: PlannedOperation) -> _Total:
    counted = phase.operations[planned.name]
    ok = counted["counts"]["ok"]
    latencies, counts = weighted_latencies(run, planned.name)
    order = np.argsort(latencies)
    return _Total(
        operations=ok,
        errors=sum(counted["counts"][outcome] for outcome in _FAILED),
        partitions=ok * (_share_with_rows(run, planned) if planned.rows is None else planned.partitions),
        rows=counted["rows"] if planned.rows is None else ok * planned.rows,
        latencies=latencies[order] * 1e3,
        counts=counts[order],
    )


def _share_with_rows(run: RunResult, planned: PlannedOperation) -> float:
    """Of the answers to an operation, the share that has rows: of those that were logged, which are all or every n-th."""
    table = run.table("operations")
    if table is None:
        return 0.0
    logged = of_kind(table, run.manifest.phases.index(MEASURE), run.manifest.operations.index(planned.name))
    answered = logged.filter(pc.equal(logged["outcome"], "ok"))
    return pc.sum(pc.greater(answered["rows"], 0)).as_py() / answered.num_rows if answered.num_rows else 0.0


def _added(totals: list[_Total]) -> _Total:
    latencies = np.concatenate([total.latencies for total in totals])
    order = np.argsort(latencies)
    return _Total(
        operations=sum(total.operations for total in totals),
        errors=sum(total.errors for total in totals),
        partitions=sum(total.partitions for total in totals),
        rows=sum(total.rows for total in totals),
        latencies=latencies[order],
        counts=np.concatenate([total.counts for total in totals])[order],
    )
