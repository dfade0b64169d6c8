"""One measurement of a cell: fresh servers with its configuration, the records put there, its rates held."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sensorbench.benchmarks.factors.cells import Cell
from sensorbench.benchmarks.factors.figures import filled_figures, step_figures
from sensorbench.benchmarks.factors.file import FactorLoad, FactorsFile
from sensorbench.benchmarks.factors.scaling import Scaled
from sensorbench.benchmarks.stress import (
    Load,
    RecordWork,
    SharedRecordWork,
    Step,
    StepsApart,
    StressPlan,
    attempted,
    stress,
    summarise_stress,
    with_mix,
)
from sensorbench.benchmarks.tune import ConfiguredWork
from sensorbench.compat.ycsb import CoreWorkload, Property, parse_core_workload
from sensorbench.errors import FailedError
from sensorbench.progress import ProgressReporter
from sensorbench.results.factors import CellMeasurement, FilledFigures, StepFigures
from sensorbench.results.writer import write_typed_summary
from sensorbench.runner import Servers, TargetSpec, seconds

TIMEOUT_S = 60.0
# A rate that no server reaches: what is completed is what it takes with this many operations in flight.
MUCH_TOO_HIGH_PER_S = 1e6


@dataclass(frozen=True)
class CellBench:
    """What all cells share."""

    file: FactorsFile
    target: TargetSpec
    at: Scaled
    step_s: float
    concurrency: int

    @property
    def records(self) -> int:
        """How many records there are at this scale."""
        return max(1, round(self.file.records.count * self.at.data))

    def load(self) -> Load:
        """How operations come. Nodes that share a machine with the client need its processors more than it does; what it takes is told."""
        return Load(self.concurrency, timeout_s=TIMEOUT_S, pin=False)


@dataclass(frozen=True)
class SharedRecords:
    """Records that were added once: the kept instance that has them, and the folder of the results that has how they were added."""

    instance: str
    folder: str


@dataclass(frozen=True)
class _Figures:
    """What a stress run found: of putting the records there, and of each rate."""

    filled: FilledFigures | None
    steps: list[StepFigures]


def measure(
    bench: CellBench,
    cell: Cell,
    rates: Sequence[float],
    folder: Path,
    *,
    round_: int,
    seed: int,
    reporter: ProgressReporter,
    records: SharedRecords | None = None,
) -> CellMeasurement:
    """Measures a cell; its servers start with `records`, or these are added. That servers do not start with its configuration, or end, is an outcome.

    Raises InterruptedRunError and DiskFullError.
    """
    start_s = time.monotonic()
    load = bench.file.loads[cell.load]
    figures, reason = attempted(lambda: _figures(bench, load, cell.settings, rates, folder, seed, reporter, records))
    return CellMeasurement(
        cell=cell.id,
        round=round_,
        outcome="measured" if figures else "failed",
        reason=reason,
        seed=seed,
        took_s=time.monotonic() - start_s,
        data_of=records.folder if records else None,
        filled=figures.filled if figures else None,
        steps=figures.steps if figures else [],
    )


def failed(cell: Cell, round_: int, seed: int, reason: str) -> CellMeasurement:
    """What is said of a cell whose records could not be added."""
    return CellMeasurement(cell=cell.id, round=round_, outcome="failed", reason=reason, seed=seed, took_s=0.0)


def probe(bench: CellBench, settings: Mapping[str, str], folder: Path, seed: int, reporter: ProgressReporter) -> dict[str, float]:
    """How many writes, and how many reads, per second the servers take with this configuration. Raises FailedError."""
    load = FactorLoad(title="", mix={"read": 1.0}, shares=[1.0])
    figures = _figures(bench, load, settings, [MUCH_TOO_HIGH_PER_S], folder, seed, reporter)
    reached = {"read": figures.steps[0].completed_per_s, "write": figures.filled.per_s if figures.filled else 0.0}
    none = [word for word, rate in reached.items() if not rate > 0.0]
    if none:
        raise FailedError(f"the default configuration took no {none[0]}s in {bench.step_s:g} s; see {folder}")
    return reached


def rates_of(load: FactorLoad, reached: Mapping[str, float]) -> list[float]:
    """The rates of a load: shares of what its mix would reach if each kind of operation took as long as it does alone; two digits."""
    whole = sum(load.mix.values())
    per_s = 1.0 / sum(weight / whole / reached[word] for word, weight in load.mix.items())
    return [float(f"{share * per_s:.2g}") for share in load.shares]


def _figures(
    bench: CellBench,
    load: FactorLoad,
    settings: Mapping[str, str],
    rates: Sequence[float],
    folder: Path,
    seed: int,
    reporter: ProgressReporter,
    records: SharedRecords | None = None,
) -> _Figures:
    workload = with_mix(core_workload(bench), {str(word): weight for word, weight in load.mix.items()})
    kind = SharedRecordWork if records else RecordWork
    target = replace(bench.target, data_of=records.instance) if records else bench.target
    work = ConfiguredWork(kind(target, workload, folder, seed=seed, replace=False), settings)
    with work.cleared():
        result = stress(StressPlan(work, bench.load(), _steps(bench, load, rates)), folder, reporter)
    summary = summarise_stress(result)
    write_typed_summary(folder, summary)
    return _Figures(filled_figures(result), step_figures(result, summary, bench.file.cache))


def core_workload(bench: CellBench) -> CoreWorkload:
    """The records at this scale."""
    records = bench.file.records
    said = {
        "recordcount": bench.records,
        "fieldcount": records.fields,
        "fieldlength": records.field_bytes,
        "requestdistribution": records.distribution,
        "writeallfields": "true",
    }
    workload, _ = parse_core_workload({key: Property(str(value), "the study's file") for key, value in said.items()})
    return workload


def _steps(bench: CellBench, load: FactorLoad, rates: Sequence[float]) -> StepsApart:
    """The rates in turn; where they come again, a second time."""
    words = ["step", "again"] if load.again_after else ["step"]
    steps = [Step(f"{word}_{number}", rate, bench.step_s) for word in words for number, rate in enumerate(rates, start=1)]
    later_s = seconds(load.again_after) * bench.at.time if load.again_after else 0.0
    return StepsApart(steps, _Beginning(load.cold, len(rates), later_s).before)


@dataclass
class _Beginning:
    """The state in which steps begin: the first `number` of them with empty caches, if so wished; the others, `later_s` after the data
    were there and later, right after the servers were restarted.
    """

    cold: bool
    number: int
    later_s: float
    ready_at_s: float = 0.0

    def before(self, started: Servers, number: int) -> None:
        """Brings the state of a step about."""
        if number == 1:
            self.ready_at_s = time.monotonic()
        if number > self.number:
            time.sleep(max(0.0, self.ready_at_s + self.later_s - time.monotonic()))
            started.restart()
        elif self.cold:
            started.empty_caches()
