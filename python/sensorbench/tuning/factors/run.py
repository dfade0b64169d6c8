"""A study of factors: the rates are found, all cells are measured in rounds, then those that compare drafts with the default."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sensorbench import __version__
from sensorbench.errors import UsageError
from sensorbench.experiment import TargetSpec, parse_target
from sensorbench.experiment.ending import written_down
from sensorbench.lifecycle.command import command_line
from sensorbench.places import check_is_free
from sensorbench.progress import Teller
from sensorbench.results.environment import environment
from sensorbench.results.factors import FactorsResult, FactorsWriter, is_measured, read_factors, resumed
from sensorbench.results.manifest import CellManifest, FactorsManifest, Process, now
from sensorbench.tuning.configured import unknown_settings
from sensorbench.tuning.factors.cells import Cell, add, cells_of
from sensorbench.tuning.factors.file import FactorsFile
from sensorbench.tuning.factors.measure import CellBench, measure, probe, rates_of
from sensorbench.tuning.factors.own import OWN, own_draft
from sensorbench.tuning.factors.scaling import scaled


@dataclass(frozen=True)
class FactorOptions:
    """What a user may change. `top_per_s` is the highest rate of each load, instead of what the default takes."""

    scale: float
    step_s: float
    rounds: int
    seed: int
    in_flight: int
    parts: tuple[str, ...]
    options: str = ""
    top_per_s: float | None = None


@dataclass(frozen=True)
class FactorStudyRun:
    """A study of factors that is to be carried out."""

    name: str
    file: FactorsFile
    options: FactorOptions

    @property
    def target(self) -> TargetSpec:
        """The servers, which are started for each cell."""
        told = [
            option.split("=", 1) for text in (self.file.options, self.options.options) for option in text.split("&") if option
        ]
        # What the user says counts.
        options = "&".join("=".join(option) for option in {key: (key, *value) for key, *value in told}.values())
        return replace(parse_target("?".join(filter(None, [self.file.database, options]))), nodes=self.file.nodes)

    @property
    def bench(self) -> CellBench:
        """What all cells share."""
        wanted = self.options
        return CellBench(self.file, self.target, scaled(self.file, wanted.scale, wanted.step_s), wanted.step_s, wanted.in_flight)

    @property
    def parts(self) -> list[str]:
        """The parts that are wanted, in the study's order."""
        return [name for name in self.file.parts if name in self.options.parts or not self.options.parts]

    def cells(self) -> dict[str, Cell]:
        """The cells of these parts."""
        return cells_of(self.file, self.parts, self.bench.at)


def check(wanted: FactorStudyRun) -> None:
    """Raises UsageError for what makes no sense, and for settings that the version in use does not know."""
    if not wanted.options.scale > 0.0:
        raise UsageError(f"--scale {wanted.options.scale:g}: expected a number above 0")
    unknown = [name for name in wanted.options.parts if name not in wanted.file.parts]
    if unknown:
        raise UsageError(f"--part {unknown[0]}: study {wanted.name} has the parts {', '.join(wanted.file.parts)}")
    for cell in wanted.cells().values():
        for key, why in unknown_settings(wanted.target, cell.settings).items():
            raise UsageError(f"{wanted.name}: {wanted.target.database.name} does not know the setting {key}: {why}")


def run_factors(wanted: FactorStudyRun, folder: Path, teller: Teller, *, resume: bool) -> FactorsResult:
    """Carries it out.

    Raises UsageError before anything is written; FailedError, InterruptedRunError and DiskFullError after what was done until then is on
    disk.
    """
    manifest = _manifest(wanted, folder)
    if not resume:
        check_is_free(folder, ", or go on with --resume")
    writer = resumed(folder, manifest) if resume else FactorsWriter(folder, manifest)
    at_work = _AtWork(wanted, writer, teller)
    with written_down(writer, "; --resume goes on"):
        at_work.find_rates()
        cells = list(wanted.cells().values())
        at_work.measure_all([cell for cell in cells if not cell.apart])
        at_work.measure_all([cell for cell in cells if cell.apart] + at_work.own_cells())
    return read_factors(folder)


@dataclass(frozen=True)
class _AtWork:
    """A study that goes on."""

    wanted: FactorStudyRun
    writer: FactorsWriter
    teller: Teller

    def find_rates(self) -> None:
        """The rates of each load: shares of what the default takes, unless the user has said."""
        wanted, loads = self.wanted, self.wanted.file.loads
        if self.writer.manifest.rates:
            return
        if wanted.options.top_per_s is not None:
            top = wanted.options.top_per_s
            self.writer.update(
                rates={name: [top * share / max(load.shares) for share in load.shares] for name, load in loads.items()}
            )
            return
        with self.teller.task("what the default takes") as task:
            default = wanted.bench.at.configuration(wanted.file.default)
            quiet = Teller(quiet=True)
            reached = probe(wanted.bench, default, self.writer.probe_folder(), wanted.options.seed, quiet)
            task.end(f"{reached['write']:,.0f} writes/s, {reached['read']:,.0f} reads/s")
        self.writer.update(reached=reached, rates={name: rates_of(load, reached) for name, load in loads.items()})

    def measure_all(self, cells: Sequence[Cell]) -> None:
        """Each cell once in each round, every other round in the opposite order, so that drift is nobody's gain."""
        for number in range(1, self.wanted.options.rounds + 1):
            for cell in cells if number % 2 else reversed(cells):
                if not is_measured(self.writer.folder, cell.id, number):
                    self._measure(cell, number)

    def own_cells(self) -> list[Cell]:
        """The cells of the study's own draft: under the loads of the part that has the source's; none if it is the default."""
        file, at = self.wanted.file, self.wanted.bench.at
        part = file.draft_part
        if part not in self.wanted.parts:
            return []
        own = own_draft(file, read_factors(self.writer.folder))
        if not own.changed:
            return []
        settings = at.configuration({**file.default, **own.changed})
        cells = self.wanted.cells()
        mine = [add(cells, load, settings, part, OWN, apart=True) for load in file.parts[part].loads]
        self.writer.update(cells=_told(cells))
        return [cell for cell in mine if cell.levels == [(part, OWN)]]

    def _measure(self, cell: Cell, round_: int) -> None:
        told = "; ".join(f"{part}: {level}" for part, level in cell.levels)
        with self.teller.task(f"round {round_}, {cell.load}, {told}") as task:
            folder = self.writer.new_folder(cell.id, round_)
            rates = self.writer.manifest.rates[cell.load]
            # Cells of one round have the same operations, those of another one have others.
            seed = self.wanted.options.seed + 1000 * round_
            measured = measure(self.wanted.bench, cell, rates, folder, round_=round_, seed=seed, teller=Teller(quiet=True))
            self.writer.write_measurement(folder, measured)
            task.end(f"failed: {measured.reason}" if measured.outcome == "failed" else f"{measured.took_s:.0f} s")


def _told(cells: dict[str, Cell]) -> dict[str, CellManifest]:
    return {
        cell.id: CellManifest(load=cell.load, settings=cell.settings, apart=cell.apart, levels=cell.levels)
        for cell in cells.values()
    }


def _manifest(wanted: FactorStudyRun, folder: Path) -> FactorsManifest:
    bench, options = wanted.bench, wanted.options
    return FactorsManifest(
        title=wanted.file.title,
        process=Process.this(),
        created=now(),
        version=__version__,
        command=command_line(),
        workload={
            "records": bench.records,
            **wanted.file.records.model_dump(exclude={"count"}),
            "in_flight": options.in_flight,
            "top_per_s": options.top_per_s,
        },
        environment=environment(folder),
        name=wanted.name,
        target=wanted.target.text,
        nodes=wanted.file.nodes,
        parts=wanted.parts,
        cells=_told(wanted.cells()),
        scale=options.scale,
        sizes=dict(bench.at.sizes),
        step_s=options.step_s,
        rounds=options.rounds,
        seed=options.seed,
    )
