"""Evidence that is made up: what claims say of figures is tested on figures that are known."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any, cast

from sensorbench.analysis.intervals import Interval
from sensorbench.claims import Evidence, FigureEvidence, Quantity, RunValues
from sensorbench.claims.expression import Expression
from sensorbench.results import ComparisonResult
from sensorbench.results.summary.comparison import LoadFigures, LoadSize

Figures = dict[tuple[str, str, str], float]
CONCURRENCY = 64
# Each figure is that of three runs, which differ by this much.
NOISE = (0.999, 1.0, 1.001)


class FakeEvidence(Evidence):
    """Mean latencies by part, role and operation, in s; how many of the 100 operations of a run timed out; and bytes of partitions by role.

    `own` are quantities of the study.
    """

    def __init__(
        self,
        part: str,
        figures: Figures,
        timeouts: Mapping[tuple[str, str, str], int],
        rows: Mapping[str, int],
        own: Mapping[str, Quantity] = MappingProxyType({}),
    ) -> None:
        self.name, self.figures, self.timeouts, self.rows = part, figures, timeouts, rows
        roles = {role: role for of_part, role, _ in figures if of_part == part}
        plan = SimpleNamespace(part=part, dataset={"scale": 1.0}, one_at_a_time=None)
        result = cast("ComparisonResult", SimpleNamespace(manifest=SimpleNamespace(plan=plan)))
        super().__init__(result, roles, "mean", own={"latency": _latency, **own})
        self._own = own

    def part(self, name: str) -> "FakeEvidence":
        return FakeEvidence(name, self.figures, self.timeouts, self.rows, self._own)

    def interval(self, expression: Expression, confidence: float = 0.95, *, is_ratio: bool = True) -> Interval | None:
        """That of what is known by run."""
        return FigureEvidence.interval(self, expression, confidence)

    def contrast(self, terms: Sequence[tuple[str, str, float]]) -> Interval | None:
        return self.contrast_of_parts([(self.name, *term) for term in terms])

    def contrast_of_parts(self, terms: Sequence[tuple[str, str, str, float]]) -> Interval | None:
        known = [(self.figures.get((part, role, operation)), weight) for part, role, operation, weight in terms]
        if any(figure is None for figure, _ in known):
            return None
        value = math.prod(float(figure or 0.0) ** weight for figure, weight in known)
        return Interval(value, value * 0.99, value * 1.01, 0.95, 3, between_runs=True)

    def runs(self, role: str) -> list[Any]:
        return [self._run(role) for _ in range(3)]

    def _run(self, role: str) -> Any:
        of_role = {
            operation: figure for (part, name, operation), figure in self.figures.items() if (part, name) == (self.name, role)
        }
        counts = {operation: {"counts": {"ok": round(CONCURRENCY / latency * 10)}} for operation, latency in of_role.items()}
        phase = SimpleNamespace(name="measure", start_ns=0, end_ns=10 * 10**9, operations=counts)
        return SimpleNamespace(
            manifest=SimpleNamespace(totals=SimpleNamespace(phases=[phase]), operations=list(counts)), role=role
        )

    def counts_by_run(self, role: str, operation: str) -> list[dict[str, int]]:
        timed_out = self.timeouts.get((self.name, role, operation), 0)
        return [{"ok": 100 - timed_out, "error": 0, "timeout": timed_out, "cancelled": 0} for _ in NOISE]

    def latencies(self, run: Any, operations: Sequence[str]) -> list[Any]:
        """Two latencies around the mean, as far from it as it is long."""
        means = [self.figures[self.name, run.role, operation] for operation in operations]
        return [[0.0, 2.0 * mean] for mean in means]

    def largest_partition_bytes(self, role: str) -> int | None:
        sizes = {name: {"readings_0": size // 2, "readings_1": size} for name, size in self.rows.items()}
        known = {name: LoadSize(total_bytes=None, largest_partitions=of_tables) for name, of_tables in sizes.items()}
        loads = {name: LoadFigures.model_construct(size=size) for name, size in known.items()}
        return ComparisonResult(Path(), cast("Any", None), loads=loads).largest_partition_bytes(role)


def _latency(evidence: Evidence, role: str, others: Sequence[str]) -> RunValues | None:
    (operation,) = others
    assert isinstance(evidence, FakeEvidence)
    mean = evidence.figures.get((evidence.name, role, operation))
    return None if mean is None else evidence.by_run([mean * noise for noise in NOISE])
