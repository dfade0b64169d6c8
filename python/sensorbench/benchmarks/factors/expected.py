"""How long a study of factors takes: as long as its work of the same kind took before, else by arithmetic.

What was not measured yet is expected to take as many times its arithmetic as what was measured: a machine that is busy is slower at all of it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from sensorbench.benchmarks.factors.cells import Cell, Turn, layout
from sensorbench.benchmarks.factors.plan import ADDING, FINDING, FactorsPlan
from sensorbench.runner import seconds

# Assumed until a study has measured them: what three nodes on a machine with two cores take to start, be checked and end, and the records that they
# take and count per second. `python -m benches.factor_costs RESULTS` says what they were in the results of a study.
START_S, ADDED_PER_S, COUNTED_PER_S = 45.0, 4_000.0, 40_000.0


@dataclass(frozen=True)
class Expected:
    """The times of a plan, in s. `took_s` is how long each work of a kind took: a load's measurements, adding shared records, finding the rates."""

    plan: FactorsPlan
    took_s: Mapping[str, Sequence[float]] = field(default_factory=lambda: MappingProxyType({}))

    def finding_s(self) -> float:
        """How long finding the rates takes; nothing if a user says them."""
        return self._of(FINDING) if self.plan.options.rate is None else 0.0

    def cell_s(self, cell: Cell) -> float:
        """How long a measurement of a cell takes, without records that it shares."""
        return self._of(cell.load)

    def total_s(self, names: Iterable[str], rounds: int | None = None) -> float:
        """How long cells take in some rounds, or in all, with the records that they share."""
        cells = self.plan.cells()
        numbers = range(1, (rounds or self.plan.rounds) + 1)
        return self.turns_s([Turn(cells[name], number) for name in names for number in numbers])

    def turns_s(self, turns: Iterable[Turn], made: Collection[tuple[object, int]] = ()) -> float:
        """How long measurements take, with the records that they share and that are not `made` yet: layouts and rounds."""
        turns = list(turns)
        shared = {(layout(turn.cell, self.plan.file), turn.round) for turn in turns if not self._adds(turn.cell.load)}
        return len(shared - set(made)) * self._of(ADDING) + sum(self.cell_s(turn.cell) for turn in turns)

    def waits_s(self, load: str) -> float:
        """How long after the records are there servers are restarted; 0 where they are not."""
        again_after = self.plan.file.loads[load].again_after
        return seconds(again_after) * self.plan.bench.at.time if again_after else 0.0

    def _of(self, kind: str) -> float:
        took_s = self.took_s.get(kind)
        return sum(took_s) / len(took_s) if took_s else self._slowness() * self._arithmetic(kind)

    def _slowness(self) -> float:
        """How many times as long as by arithmetic everything took that was done."""
        arithmetic_s = sum(len(took_s) * self._arithmetic(kind) for kind, took_s in self.took_s.items())
        return sum(map(sum, self.took_s.values())) / arithmetic_s if arithmetic_s else 1.0

    def _arithmetic(self, kind: str) -> float:
        records, step_s = self.plan.bench.records, self.plan.step_s
        adding_s = START_S + records / ADDED_PER_S
        if kind == ADDING:
            return adding_s
        if kind == FINDING:
            return adding_s + step_s
        load = self.plan.file.loads[kind]
        held_s = len(load.shares) * step_s
        again_s = max(held_s, self.waits_s(kind)) + START_S * len(load.shares) if load.again_after else 0.0
        return (adding_s if self._adds(kind) else START_S + records / COUNTED_PER_S) + held_s + again_s

    def _adds(self, load: str) -> bool:
        """Whether each measurement of a load adds its records itself."""
        return self.plan.file.loads[load].measures_adding or not self.plan.shares_records
