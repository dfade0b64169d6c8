"""What was measured of one variant of a comparison, as far as it may count for a recommendation.

The rate of an operation is how often it ended well in a second. Where several kinds shared the time, it is what it would be
if all requests in flight had been of this kind, each as long as it was: the counted rate divided by the share of the time
that was spent on it. At a given rate of arrivals (an open loop) the database got no more work than that: there it is what one
client reaches that waits for each answer. Where arrivals had to wait for others to end, longer and longer or until there was no time left
for them, neither this rate nor a latency says what the database can do.
"""

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from statistics import fmean

from sensorbench.analysis.candidate import Measured, Run
from sensorbench.analysis.intervals import Interval
from sensorbench.dataset.dataset import readings_of
from sensorbench.results import ComparisonResult, RunResult, VariantManifest
from sensorbench.results.described import DescribedDataset, Environment
from sensorbench.results.engine_report import OperationReport
from sensorbench.results.manifest import PhaseFigures
from sensorbench.results.server_use import server_use
from sensorbench.results.summary.claims import MeasuredFigure
from sensorbench.results.summary.comparison import ComparisonSummary, ServerDescription
from sensorbench.runner import Schedule, is_of_registers

LATENCIES = ("median", "p99")
# A variant has kept up with the rate of arrivals where no larger share of them never began, and where half of them began no later than
# by this share of the run. One that manages less than a rate by a share of it is late by half of that share in the median.
MAX_DROPPED = 0.05
MAX_LAG = MAX_DROPPED / 2


@dataclass(frozen=True)
class Origin:
    """A comparison that figures are from: what was measured, on which data and machine, when and how. `span_s` is from the first
    reading to the end of the last one's interval; None if it is not known.
    """

    title: str
    dataset: str
    readings: int
    interval_s: float | None
    scale: float
    machine: str
    date: str
    version: str
    load: str
    span_s: float | None = None

    @property
    def sensors(self) -> int | None:
        """About how many sensors there were: readings over those that one sensor gives in the span. None if that is not known."""
        if not self.span_s or not self.interval_s:
            return None
        return max(1, round(self.readings * self.interval_s / self.span_s))


class MeasuredComparison:
    """A comparison by its name among those that belong together (empty when it is alone), with its summary."""

    def __init__(self, name: str, result: ComparisonResult, summary: ComparisonSummary) -> None:
        self.name = name
        self.result = result
        self.operations = {
            name: operation for name, operation in result.manifest.plan.operations.items() if not is_of_registers(name)
        }
        self.variants = [MeasuredVariant(self, variant) for variant in result.manifest.variants if variant.is_whole]
        self.schedule = Schedule.model_validate(result.manifest.plan.workload["schedule"])
        self.differing = {name for name, answers in summary.result.answers.items() if not answers.equal}
        self.figures = {(figure.variant, figure.operation): figure for figure in summary.result.figures}

    @property
    def is_mixed(self) -> bool:
        """Whether some wrote while others read."""
        return len({operation.writes for operation in self.operations.values()}) > 1

    @property
    def conditions(self) -> tuple[str, Schedule, bool]:
        """What must be equal for figures of different comparisons to be compared: the data, the load, and what else went on."""
        return str(self.result.manifest.plan.dataset.get("fingerprint")), self.schedule, self.is_mixed

    @property
    def described_state(self) -> str:
        """How the work ended, when it did not come to its end."""
        return f"{f'part {self.name}' if self.name else 'the benchmark'} is {self.result.state}: runs that were completed count"

    @property
    def origin(self) -> Origin:
        """Where its figures are from."""
        manifest = self.result.manifest
        dataset = manifest.plan.dataset
        return Origin(
            title=manifest.title,
            dataset=dataset["title"],
            readings=int(dataset["relations"][readings_of(dataset["relations"]).relation]["rows"]),
            interval_s=dataset.get("interval_s"),
            scale=float(dataset.get("scale", 1.0)),
            machine=_machine(manifest.environment),
            date=manifest.created.date().isoformat(),
            version=manifest.version,
            load=_load(self.schedule),
            span_s=_span_s(dataset),
        )


@dataclass(frozen=True)
class MeasuredVariant:
    """A variant in one comparison."""

    comparison: MeasuredComparison
    variant: VariantManifest

    @property
    def layout(self) -> str:
        """What equal layouts of different comparisons have in common, whatever they are called there."""
        parameters = sorted(self.variant.schema_parameters.items())
        return f"{self.variant.target} {self.variant.schema_name} {parameters}"

    def problem(self, operation: str) -> str | None:
        """Why an operation does not count, if it does not."""
        result, name = self.comparison.result, self.variant.id
        if failure := result.failures.get(name):
            return f"it failed at {failure.step}: {failure.cause}"
        if any(known[name].problems for known in (result.checks, result.contents) if name in known):
            return "its answers were wrong, or what was written was not found again"
        if operation in self.comparison.differing:
            return f"the databases did not give equal answers to {operation}"
        if not self._phases:
            return f"no run of it was completed{f' in part {self.comparison.name}' if self.comparison.name else ''}"
        if self.dropped > MAX_DROPPED:
            return f"it fell behind the rate of arrivals: more than {MAX_DROPPED:.0%} of them never began"
        if self.lag > MAX_LAG:
            return f"it fell behind the rate of arrivals: half of them began late by more than {MAX_LAG:.1%} of the run"
        return None if all(self._rates(operation)) else f"{operation} did not succeed in every run"

    def measured(self, operation: str) -> Measured:
        """What was measured of an operation without a problem."""
        rates = self._rates(operation)
        figures, writes = self.comparison.figures[self.variant.id, operation], self.comparison.operations[operation].writes
        return Measured(
            operation=operation,
            comparison=self.comparison.name,
            runs=tuple(self._run(run, rate or 0.0) for (run, _), rate in zip(self._phases, rates, strict=True)),
            readings=self._readings(operation) if writes else 1,
            rows=None if writes else figures.rows_per_operation,
            is_mixed=self.comparison.is_mixed,
            latency_s={name: _interval(figures.latency_s[name]) for name in LATENCIES if name in figures.latency_s},
        )

    @cached_property
    def _phases(self) -> list[tuple[RunResult, PhaseFigures]]:
        """The completed runs, with what was measured in each."""
        complete = [run for run in self.comparison.result.runs[self.variant.id] if run.state == "complete"]
        return [(run, phase) for run in complete for phase in run.manifest.measured]

    @cached_property
    def dropped(self) -> float:
        """The share of arrivals that never began, because the database was busy with those before."""
        dropped = sum(phase.dropped for _, phase in self._phases)
        offered = dropped + sum(phase.started for _, phase in self._phases)
        return dropped / offered if offered else 0.0

    @cached_property
    def lag(self) -> float:
        """The median schedule lag as a share of the run that it is from, of the run and the operation where that is largest; 0 in a closed loop."""
        lags = [
            schedule_lag["p50"] / 1e9 / phase.length_s
            for _, phase in self._phases
            for operation in phase.operations.values()
            if phase.length_s and (schedule_lag := operation["schedule_lag_ns"])
        ]
        return max(lags, default=0.0)

    def _rates(self, operation: str) -> list[float | None]:
        return [rate(phase, operation, is_open=self.comparison.schedule.is_open_loop) for _, phase in self._phases]

    def _run(self, run: RunResult, per_s: float) -> Run:
        place = Path(self.comparison.name) / run.folder.relative_to(self.comparison.result.folder)
        return Run(str(place), run.manifest.repetition, run.manifest.created.isoformat(), per_s)

    def _readings(self, operation: str) -> int:
        """How many readings a write carries. Earlier results have it in the schema's parameter."""
        readings = self.variant.statements.get(operation, {}).get("readings")
        return int(readings or self.variant.schema_parameters.get("batch", 1))

    @property
    def description(self) -> ServerDescription | None:
        """What the database said of itself after loading; None if it was not loaded."""
        load = self.comparison.result.loads.get(self.variant.id)
        return load.description if load else None

    @property
    def nodes(self) -> int:
        """The nodes of its server; one where the lab did not start it."""
        server = self.comparison.result.server(self.variant)
        return int(server["nodes"]) if server else 1

    @property
    def bytes_a_reading(self) -> float | None:
        """What all copies of a reading take after loading, on disk or in memory."""
        return self.comparison.result.bytes_a_reading(self.variant.id)

    @property
    def memory_bytes(self) -> float | None:
        """What its servers had resident, on average; None if no process of theirs was looked at."""
        uses = [server_use(self.comparison.result, run, self.variant.id) for run, _ in self._phases]
        known = [moment.megabytes for use in uses for moment in use]
        return fmean(known) * 1e6 if known else None


def _machine(environment: Environment) -> str:
    virtual = "virtual machine, " if environment.get("virtual_machine") else ""
    memory = environment.get("memory_bytes")
    of_memory = f", {memory / 1e9:.0f} GB of memory" if memory else ""
    return f"{virtual}{environment.get('processors')} × {environment.get('processor')}{of_memory}, {environment.get('system')}"


def _span_s(dataset: DescribedDataset) -> float | None:
    """From the first reading to the end of the last one's interval; None if times or interval are not known."""
    first, last, interval_s = dataset.get("first_time"), dataset.get("last_time"), dataset.get("interval_s")
    if not first or not last or not interval_s:
        return None
    return (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds() + interval_s


def _load(schedule: Schedule) -> str:
    if schedule.is_open_loop:
        return f"requests came at {'a rate of ' + format(schedule.rate, 'g') + '/s' if schedule.rate else 'rates that change'}"
    return f"{schedule.concurrency} requests in flight"


def rate(phase: PhaseFigures, operation: str, *, is_open: bool) -> float | None:
    """Operations of one kind a second, as the module says; None when none succeeded."""
    of_kind = phase.operations[operation]
    service = of_kind["service_ns"]
    if not of_kind["counts"]["ok"] or not service or phase.length_s is None:
        return None
    if is_open:
        return 1e9 / service["mean"]
    share = _busy_ns(of_kind) / sum(_busy_ns(operation) for operation in phase.operations.values())
    return of_kind["counts"]["ok"] / phase.length_s / share


def _busy_ns(of_kind: OperationReport) -> float:
    """The time that requests of one kind were in flight, all together."""
    response = of_kind["response_ns"]
    return response["count"] * response["mean"] if response else 0.0


def _interval(figure: MeasuredFigure) -> Interval:
    if figure.value is None or figure.confidence is None or figure.runs is None:
        raise AssertionError("the interval of a latency has a value")
    return Interval(figure.value, figure.low, figure.high, figure.confidence, figure.runs, bool(figure.between_runs))
