"""A study of factors: the rates are found, all cells are measured in rounds, then those that compare drafts with the default."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sensorbench.benchmarks.factors.best_draft import OWN, best_draft
from sensorbench.benchmarks.factors.cells import Cell, add, cells_of
from sensorbench.benchmarks.factors.file import FactorsFile
from sensorbench.benchmarks.factors.measure import CellBench, measure, probe, rates_of
from sensorbench.benchmarks.factors.options import FactorOptions
from sensorbench.benchmarks.factors.scaling import scaled
from sensorbench.benchmarks.tune import unknown_settings
from sensorbench.errors import UsageError
from sensorbench.lifecycle import Benchmark, Description, RunContext
from sensorbench.progress import ProgressReporter
from sensorbench.results.factors import FactorsWriter, continued, is_measured, read_factors
from sensorbench.results.planned import FactorsManifest, PlannedCell, PlannedFactors
from sensorbench.runner import Servers, TargetSpec, parse_target, seconds


@dataclass(frozen=True)
class FactorsPlan:
    """A study of factors that is to be carried out."""

    name: str
    file: FactorsFile
    options: FactorOptions

    @property
    def target(self) -> TargetSpec:
        """The servers, which are started for each cell."""
        own = (self.options.target or "").partition("?")[2]
        described = [option.split("=", 1) for text in (self.file.options, own) for option in text.split("&") if option]
        # What the user says counts.
        options = "&".join("=".join(option) for option in {key: (key, *value) for key, *value in described}.values())
        return replace(parse_target("?".join(filter(None, [self.file.database, options]))), nodes=self.file.nodes)

    @property
    def bench(self) -> CellBench:
        """What all cells share."""
        concurrency = self.options.concurrency or self.file.concurrency
        return CellBench(self.file, self.target, scaled(self.file, self.options.scale, self.step_s), self.step_s, concurrency)

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
        return [name for name in self.file.parts if name in self.options.parts or not self.options.parts]

    def cells(self) -> dict[str, Cell]:
        """The cells of these parts."""
        return cells_of(self.file, self.parts, self.bench.at)


def check(plan: FactorsPlan) -> None:
    """Raises UsageError for what makes no sense, and for settings that the version in use does not know."""
    name = (plan.options.target or plan.file.database).partition("?")[0]
    if name != plan.file.database:
        raise UsageError(
            f"--target {plan.options.target}: study {plan.name} starts servers with the settings that it tries; expected "
            f"{plan.file.database}, with options behind ? if you like"
        )
    if not plan.options.scale > 0.0:
        raise UsageError(f"--scale {plan.options.scale:g}: expected a number above 0")
    unknown = [name for name in plan.options.parts if name not in plan.file.parts]
    if unknown:
        raise UsageError(f"--part {unknown[0]}: study {plan.name} has the parts {', '.join(plan.file.parts)}")
    for cell in plan.cells().values():
        for key, why in unknown_settings(plan.target, cell.settings).items():
            raise UsageError(f"{plan.name}: {plan.target.database.name} does not know the setting {key}: {why}")


class FactorsBenchmark(Benchmark[FactorsPlan, FactorsManifest, FactorsWriter]):
    """Finds the rates, then measures all cells in rounds. Servers are started for each measurement."""

    manifest = FactorsManifest
    writer = FactorsWriter
    can_resume = True

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
            target=plan.target.text,
            nodes=plan.file.nodes,
            parts=plan.parts,
            cells=_described(plan.cells()),
            scale=options.scale,
            sizes=dict(bench.at.sizes),
            step_s=plan.step_s,
            rounds=plan.rounds,
            seed=options.seed,
        )
        return Description(plan.file.title, planned)

    def check_same(self, before: FactorsManifest, after: FactorsManifest, folder: Path) -> FactorsManifest:
        """The manifest of the study that goes on, with more parts and rounds if those are wanted."""
        return continued(before, after, folder)

    def execute(self, plan: FactorsPlan, context: RunContext[FactorsWriter]) -> None:
        """Measures the cells of all parts, then those that compare drafts with the default."""
        at_work = _AtWork(plan, context.writer, context.progress)
        at_work.find_rates()
        cells = list(plan.cells().values())
        at_work.measure_all([cell for cell in cells if not cell.apart])
        at_work.measure_all([cell for cell in cells if cell.apart] + at_work.cells_of_best_draft())


@dataclass(frozen=True)
class _AtWork:
    """A study that goes on."""

    plan: FactorsPlan
    writer: FactorsWriter
    progress: ProgressReporter

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

    def measure_all(self, cells: Sequence[Cell]) -> None:
        """Each cell once in each round, every other round in the opposite order, so that drift is nobody's gain."""
        for number in range(1, self.plan.rounds + 1):
            for cell in cells if number % 2 else reversed(cells):
                if not is_measured(self.writer.folder, cell.id, number):
                    self._measure(cell, number)

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

    def _measure(self, cell: Cell, round_: int) -> None:
        described = "; ".join(f"{part}: {level}" for part, level in cell.levels)
        with self.progress.task(f"round {round_}, {cell.load}, {described}") as task:
            folder = self.writer.new_folder(cell.id, round_)
            rates = self.writer.manifest.plan.rates[cell.load]
            # Cells of one round have the same operations, those of another one have others.
            seed = self.plan.options.seed + 1000 * round_
            measured = measure(
                self.plan.bench, cell, rates, folder, round_=round_, seed=seed, reporter=ProgressReporter(quiet=True)
            )
            self.writer.write_measurement(folder, measured)
            task.end(f"failed: {measured.reason}" if measured.outcome == "failed" else f"{measured.took_s:.0f} s")


def _described(cells: dict[str, Cell]) -> dict[str, PlannedCell]:
    return {
        cell.id: PlannedCell(load=cell.load, settings=cell.settings, apart=cell.apart, levels=cell.levels)
        for cell in cells.values()
    }
