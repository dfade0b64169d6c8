"""A study of factors: the rates are found, all cells are measured in rounds, then those that compare drafts with the default."""

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from sensorbench import lab
from sensorbench._engine import Target
from sensorbench.benchmarks.factors.best_draft import OWN, best_draft
from sensorbench.benchmarks.factors.cells import Cell, Turn, add, cells_of
from sensorbench.benchmarks.factors.file import FactorsFile
from sensorbench.benchmarks.factors.measure import CellBench, SharedRecords, failed, measure, probe, rates_of
from sensorbench.benchmarks.factors.options import FactorOptions
from sensorbench.benchmarks.factors.scaling import scaled
from sensorbench.benchmarks.factors.templates import Templates
from sensorbench.benchmarks.stress import attempted
from sensorbench.benchmarks.tune import check_settings
from sensorbench.errors import UsageError
from sensorbench.lifecycle import Benchmark, Deadline, Description, RunContext
from sensorbench.progress import ProgressReporter
from sensorbench.results.factors import CellMeasurement, FactorsWriter, continued, is_measured, read_factors
from sensorbench.results.ownership import Claim, Owner
from sensorbench.results.planned import FactorsManifest, PlannedCell, PlannedFactors
from sensorbench.runner import (
    Servers,
    TargetSpec,
    addresses_of,
    borrowed_cluster,
    check_namespace,
    cluster_target,
    parse_target,
    seconds,
)

# What a budget counts beside the loads: adding records that cells share.
ADDING = "adding records"


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
        """How long each rate is held."""
        return self.options.duration or seconds(self.file.step)

    @property
    def rounds(self) -> int:
        """How many times each cell is measured."""
        return self.options.repetitions or self.file.rounds

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


def check(plan: FactorsPlan) -> None:
    """Raises UsageError for what makes no sense, and for settings that the version in use does not know."""
    if plan.options.cluster is not None:
        _check_cluster(plan, plan.options.cluster)
    name = (plan.options.target or plan.file.database).partition("?")[0]
    if name != plan.file.database:
        raise UsageError(
            f"--target {plan.options.target}: study {plan.name} starts servers with the settings that it tries; expected "
            f"{plan.file.database}, with options behind ? if you like"
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


class FactorsBenchmark(Benchmark[FactorsPlan, FactorsManifest, FactorsWriter]):
    """Finds the rates, then measures all cells in rounds. Servers are started for each measurement."""

    manifest = FactorsManifest
    writer = FactorsWriter
    can_resume = True

    def servers(self, plan: FactorsPlan, progress: ProgressReporter) -> AbstractContextManager[Servers]:
        """A cluster of the user's, which is put back at the end; all else is started for each measurement."""
        return borrowed_cluster(plan.target, progress)

    def check(self, plan: FactorsPlan, servers: Servers, owner: Owner) -> None:
        """Raises UsageError where the namespace at servers of the user's is taken, before anything is set there."""
        if plan.target.cluster is not None:
            check_namespace(Target(plan.target.text), Claim(owner, "create"))

    def describe(self, plan: FactorsPlan, servers: Servers) -> Description[PlannedFactors]:
        """The study, its cells, and what is done at each."""
        bench, options, records = plan.bench, plan.options, plan.file.records
        planned = PlannedFactors(
            workload={
                "records": bench.records,
                "fields": records.fields,
                "field_bytes": records.field_bytes,
                "distribution": records.distribution,
                "concurrency": bench.concurrency,
                "top_per_s": options.rate,
            },
            name=plan.name,
            target=Target(plan.target.text).url if plan.target.place == "url" else plan.target.text,
            nodes=len(addresses) if (addresses := addresses_of(plan.target)) else plan.file.nodes,
            cluster=addresses,
            parts=plan.parts,
            cells=_described(plan.cells()),
            scale=options.used_scale,
            sizes=dict(bench.at.sizes),
            step_s=plan.step_s,
            rounds=plan.rounds,
            seed=options.seed,
            shares_records=plan.shares_records,
            budget_s=plan.deadline.budget_s if plan.deadline else None,
            left_out=dict(plan.left_out),
        )
        return Description(plan.file.title, planned)

    def check_same(self, before: FactorsManifest, after: FactorsManifest, folder: Path) -> FactorsManifest:
        """The manifest of the study that goes on, with more parts and rounds if those are wanted."""
        return continued(before, after, folder)

    def execute(self, plan: FactorsPlan, context: RunContext[FactorsWriter]) -> None:
        """Measures the cells of all parts, then those that compare the study's own draft with the default."""
        cells, writer = plan.cells(), context.writer
        templates = Templates(plan.bench, context.owner, cells, writer.template_folder, context.progress)
        with templates:
            at_work = _AtWork(plan, writer, context.progress, templates)
            at_work.find_rates()
            *groups, last = plan.groups()
            at_work.measure_all([turn for group in groups for turn in at_work.turns(group)], later=at_work.turns(last))
            own = [] if plan.groups_of_budget else at_work.cells_of_best_draft()
            at_work.measure_all(at_work.turns([*last, *own]))


@dataclass(frozen=True)
class _AtWork:
    """A study that goes on."""

    plan: FactorsPlan
    writer: FactorsWriter
    progress: ProgressReporter
    templates: Templates

    def find_rates(self) -> None:
        """The rates of each load: shares of what the default takes, unless the user has said."""
        plan, loads = self.plan, self.plan.file.loads
        if self.writer.manifest.plan.rates:
            return
        if plan.options.rate is not None:
            top = plan.options.rate
            self.writer.update_plan(
                rates={name: [top * share / max(load.shares) for share in load.shares] for name, load in loads.items()}
            )
            return
        with self.progress.task("what the default takes") as task:
            default = plan.bench.at.configuration(plan.file.default)
            quiet = ProgressReporter(quiet=True)
            reached = probe(plan.bench, default, self.writer.probe_folder(), plan.options.seed, quiet)
            task.end(f"{reached['write']:,.0f} writes/s, {reached['read']:,.0f} reads/s")
        self.writer.update_plan(reached=reached, rates={name: rates_of(load, reached) for name, load in loads.items()})

    def turns(self, cells: Sequence[Cell]) -> list[Turn]:
        """Each cell once in each round, every other round in the opposite order, so that drift is nobody's gain; those that were measured before are left."""
        numbers = range(1, self.plan.rounds + 1)
        turns = [Turn(cell, number) for number in numbers for cell in (cells if number % 2 else reversed(cells))]
        return [turn for turn in turns if not is_measured(self.writer.folder, turn.cell.id, turn.round)]

    def measure_all(self, turns: Sequence[Turn], later: Sequence[Turn] = ()) -> None:
        """Measures cells. Records that neither these nor the `later` ones share any more are removed."""
        for place, turn in enumerate(turns):
            self._measure(turn)
            self.templates.keep_for([*turns[place + 1 :], *later])

    def cells_of_best_draft(self) -> list[Cell]:
        """The cells of the study's own draft: under the loads of the part that has the paper's; none if it is the default."""
        file, at = self.plan.file, self.plan.bench.at
        part = file.draft_part
        if part not in self.plan.parts:
            return []
        own = best_draft(file, read_factors(self.writer.folder))
        if not own.changed:
            return []
        settings = at.configuration({**file.default, **own.changed})
        cells = self.plan.cells()
        mine = [add(cells, load, settings, part, OWN, apart=True) for load in file.parts[part].loads]
        self.writer.update_plan(cells=_described(cells))
        return [cell for cell in mine if cell.levels == [(part, OWN)]]

    def _measure(self, turn: Turn) -> None:
        cell, deadline = turn.cell, self.plan.deadline
        described = "; ".join(f"{part}: {level}" for part, level in cell.levels)
        shares = self.writer.manifest.plan.shares_records and not self.templates.adds(cell)
        if deadline is not None:
            adds = [ADDING] if shares and not self.templates.is_made(turn) else []
            deadline.check(f"round {turn.round} of {cell.id}", cell.load, *adds)
        # Cells of one round have the same operations, those of another one have others.
        seed = self.plan.options.seed + 1000 * turn.round
        records, reason = attempted(lambda: self._records(turn, seed)) if shares else (None, None)
        with self.progress.task(f"round {turn.round}, {cell.load}, {described}") as task:
            folder = self.writer.new_folder(cell.id, turn.round)
            measured = self._measured(turn, folder, seed, records) if reason is None else failed(cell, turn.round, seed, reason)
            self.writer.write_measurement(folder, measured)
            task.end(f"failed: {measured.reason}" if measured.outcome == "failed" else f"{measured.took_s:.0f} s")
        if deadline is not None:
            deadline.note(measured.took_s, cell.load)

    def _measured(self, turn: Turn, folder: Path, seed: int, records: SharedRecords | None) -> CellMeasurement:
        rates = self.writer.manifest.plan.rates[turn.cell.load]
        quiet = ProgressReporter(quiet=True)
        return measure(self.plan.bench, turn.cell, rates, folder, round_=turn.round, seed=seed, reporter=quiet, records=records)

    def _records(self, turn: Turn, seed: int) -> SharedRecords:
        """The records with which the servers of a cell start. Raises FailedError and EngineError."""
        begun_s, is_made = time.monotonic(), self.templates.is_made(turn)
        records = self.templates.records_for(turn, seed)
        if self.plan.deadline is not None and not is_made:
            self.plan.deadline.note(time.monotonic() - begun_s, ADDING)
        return records


def _described(cells: dict[str, Cell]) -> dict[str, PlannedCell]:
    return {
        cell.id: PlannedCell(load=cell.load, settings=cell.settings, apart=cell.apart, levels=cell.levels)
        for cell in cells.values()
    }
