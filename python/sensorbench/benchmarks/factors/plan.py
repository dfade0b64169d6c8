"""The plan of a study of factors: what is measured, at which servers, in which order."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from sensorbench import lab
from sensorbench.benchmarks.factors.cells import Cell, Turn, cells_of
from sensorbench.benchmarks.factors.file import FactorsFile
from sensorbench.benchmarks.factors.measure import CellBench
from sensorbench.benchmarks.factors.options import FactorOptions
from sensorbench.benchmarks.factors.scaling import scaled
from sensorbench.benchmarks.tune import check_settings
from sensorbench.errors import UsageError
from sensorbench.lifecycle import Deadline
from sensorbench.results.factors import FactorsResult
from sensorbench.runner import TargetSpec, cluster_target, parse_target, seconds

# What is counted beside the loads: adding records that cells share, and finding the rates.
ADDING, FINDING = "adding records", "finding the rates"


@dataclass(frozen=True)
class FactorsPlan:
    """A study of factors that is to be carried out."""

    name: str
    file: FactorsFile
    options: FactorOptions
    # Of a budget: the cells that are measured, by their ids, in groups; a group with all its rounds comes before the next one.
    groups_of_budget: tuple[tuple[str, ...], ...] = ()
    # What it leaves out, parts and levels of others, each with why; and when it is over.
    left_out: Mapping[str, str] = field(default_factory=dict)
    deadline: Deadline | None = None
    # After how many rounds is looked which cells are needed still, and who knows that.
    looks: tuple[int, ...] = ()
    needed_after: Callable[[FactorsResult], Collection[str]] | None = None

    @cached_property
    def target(self) -> TargetSpec:
        """The servers, which are started for each cell, or are the user's."""
        if self.options.cluster is not None:
            return cluster_target(self.options.cluster, self.file.options)
        own = (self.options.target or "").partition("?")[2]
        described = [option.split("=", 1) for text in (self.file.options, own) for option in text.split("&") if option]
        # What the user says counts.
        options = "&".join("=".join(option) for option in {key: (key, *value) for key, *value in described}.values())
        return replace(parse_target("?".join(filter(None, [self.file.database, options]))), nodes=self.file.nodes)

    @property
    def bench(self) -> CellBench:
        """What all cells share."""
        concurrency = self.options.concurrency or self.file.concurrency
        return CellBench(
            self.file, self.target, scaled(self.file, self.options.used_scale, self.step_s), self.step_s, concurrency
        )

    @property
    def step_s(self) -> float:
        """Duration of each rate."""
        return self.options.duration or seconds(self.file.step)

    @property
    def rounds(self) -> int:
        """How many times each cell is measured at most."""
        return self.looks[-1] if self.looks else self.options.repetitions or self.file.rounds

    @property
    def first_rounds(self) -> int:
        """How many times each cell is measured whatever comes out."""
        return self.looks[0] if self.looks else self.rounds

    @property
    def parts(self) -> list[str]:
        """The parts that are wanted, in the study's order."""
        wanted = self.options.parts or tuple(self.file.parts)
        return [name for name in self.file.parts if name in wanted and name not in self.left_out]

    @property
    def shares_records(self) -> bool:
        """Whether servers can start with records that were added once."""
        return self.target.place == "started" and lab.keeps_data(self.file.database)

    def cells(self) -> dict[str, Cell]:
        """The cells of these parts."""
        found = cells_of(self.file, self.parts, self.bench.at)
        of_budget = {name for group in self.groups_of_budget for name in group}
        return {name: cell for name, cell in found.items() if name in of_budget or not of_budget}

    def groups(self) -> list[list[Cell]]:
        """The cells in the order in which they are measured: each group with all its rounds before the next one."""
        cells = self.cells()
        if self.groups_of_budget:
            return [[cells[name] for name in group] for group in self.groups_of_budget]
        return [[cell for cell in cells.values() if cell.apart is apart] for apart in (False, True)]

    @property
    def stages(self) -> list[range]:
        """The rounds until each look; all of them where nobody looks."""
        ends = self.looks or (self.rounds,)
        return [range(begun + 1, end + 1) for begun, end in zip((0, *ends), ends, strict=False)]

    def turns_left(self, result: FactorsResult, rounds: range, cells: Sequence[Cell]) -> list[Turn]:
        """The measurements of some rounds that are still to be made: each cell once in each, every other round in the opposite order, so that drift is
        nobody's gain. After the first look, those of cells that are needed still.
        """
        needed = self.needed_after(result) if rounds.start > 1 and self.needed_after else None
        wanted = [cell for cell in cells if needed is None or cell.id in needed]
        turns = [Turn(cell, number) for number in rounds for cell in (wanted if number % 2 else reversed(wanted))]
        measured = {
            name: {each.round for each in found if each.outcome == "measured"} for name, found in result.measurements.items()
        }
        return [turn for turn in turns if turn.round not in measured.get(turn.cell.id, ())]

    def turns_until_look(self, result: FactorsResult) -> tuple[list[Turn], int]:
        """The measurements that are to be made until the next look, and after which round that is; none where all are made."""
        for rounds in self.stages:
            if turns := [turn for group in self.groups() for turn in self.turns_left(result, rounds, group)]:
                return turns, rounds.stop - 1
        return [], self.rounds


def check(plan: FactorsPlan) -> None:
    """Raises UsageError for what makes no sense, and for settings that the version in use does not know."""
    if plan.options.cluster is not None:
        _check_cluster(plan, plan.options.cluster)
    name = (plan.options.target or plan.file.database).partition("?")[0]
    if name != plan.file.database:
        raise UsageError(
            f"--target {plan.options.target}: study {plan.name} starts servers with the settings that it tries; expected "
            f"{plan.file.database}, with options after ? if you like"
        )
    if not plan.options.used_scale > 0.0:
        raise UsageError(f"--scale {plan.options.used_scale:g}: expected a number above 0")
    unknown = [name for name in plan.options.parts if name not in plan.file.parts]
    if unknown:
        raise UsageError(f"--part {unknown[0]}: study {plan.name} has the parts {', '.join(plan.file.parts)}")
    for cell in plan.cells().values():
        check_settings(plan.target, cell.settings, f"{plan.name}, {{key}}")


def _check_cluster(plan: FactorsPlan, file: Path) -> None:
    """Raises UsageError for a cluster of another database, and for one whose caches cannot be emptied where that is wanted."""
    if plan.options.target is not None:
        raise UsageError(
            f"--target {plan.options.target}: the file of --cluster names the target; leave out --target, or --cluster"
        )
    target, database = plan.target, plan.file.database
    if target.database.name != database:
        raise UsageError(f"{file}, url: study {plan.name} measures {database}, and this is {target.database.name}")
    if target.cluster is not None and any(plan.file.loads[cell.load].cold for cell in plan.cells().values()):
        target.cluster.check_empties_caches()
