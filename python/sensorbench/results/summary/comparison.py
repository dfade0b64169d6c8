"""The summary of a comparison."""

from datetime import datetime
from typing import Annotated, Any, Literal, TypedDict

from pydantic import AliasChoices, BeforeValidator, ConfigDict, Field, RootModel, model_validator

from sensorbench.results.as_written import AsWritten, PresentKeys, with_present_run_keys
from sensorbench.results.blocks import DataBetweenBlocks, PlannedBlocks
from sensorbench.results.described import (
    BatchedLoad,
    ComparisonWorkload,
    DescribedDataset,
    EncodingCost,
    LoadedTable,
    LoaderReport,
    LoadMemory,
    LoadProgress,
    SnapshotReport,
)
from sensorbench.results.manifest import Status
from sensorbench.results.planned import OperationManifest
from sensorbench.results.summary.accounting import StreamAccounting
from sensorbench.results.summary.claims import MeasuredFigure
from sensorbench.results.summary.envelope import OperationErrors, Summary
from sensorbench.results.summary.freshness import VariantFreshness
from sensorbench.results.summary.generators import GeneratorFigures
from sensorbench.results.summary.guarantees import RegisterGuarantees
from sensorbench.results.summary.part import SummaryPart
from sensorbench.results.summary.retention import VariantRetention


class VariantRuns(SummaryPart):
    """The runs of a variant."""

    runs: int
    statuses: list[Status]
    temperature: Literal["cold", "warm", "hot"] | None = Field(description="Of the first run; null if there is none.")


class LoadSize(SummaryPart):
    """What loaded data take, in bytes; what else the database reports of it."""

    model_config = ConfigDict(extra="allow", frozen=True)

    total_bytes: int | None

    @property
    def largest_partitions(self) -> dict[str, int]:
        """The largest partition of each table, if the database has some and reports them."""
        known: dict[str, int] = (self.model_extra or {}).get("largest_partitions", {})
        return known


class ServerDescription(SummaryPart):
    """What a database says that it is."""

    model_config = ConfigDict(extra="allow", frozen=True)

    database: str
    version: str
    settings: dict[str, Any] = {}


class LoadFigures(SummaryPart):
    """How a variant was loaded. `settle_s` is the time until flushes, compactions and index builds were done after loading."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    rows: int
    readings: int
    load_s: float
    settle_s: float
    values_per_reading: int | float = Field(
        default=1, description="Values of each reading: the metrics of a wide row, in the mean where rows differ, else 1."
    )
    readings_per_s: float | None = None
    settled_readings_per_s: float | None = None
    size: LoadSize
    description: ServerDescription
    tables: list[Annotated[LoadedTable, AsWritten]] = []
    encoding: Annotated[EncodingCost, AsWritten] | None = None
    loader: Annotated[LoaderReport, AsWritten] | None = Field(
        default=None, description="The tool that loaded, where it was not the driver."
    )
    rows_sent: int | None = Field(default=None, description="Rows that went in, where some were lost.")
    snapshot: Annotated[SnapshotReport, AsWritten] | None = Field(
        default=None, description="A snapshot that the server wrote after loading."
    )
    progress: list[Annotated[LoadProgress, AsWritten]] = Field(
        default=[], description="How many rows were in at moments of the load, where that was noted."
    )
    undivided: str | None = Field(
        default=None, description="Why one process loaded it, where there were several load generators."
    )
    memory: Annotated[LoadMemory, AsWritten] | None = Field(
        default=None,
        description="Memory of the process that holds the data, where it is known; null in results of earlier versions.",
    )
    batched: Annotated[BatchedLoad, AsWritten] | None = Field(
        default=None, description="The batches that it was loaded in, where each was acknowledged by itself."
    )
    schema_sha256: str | None = Field(
        default=None, description="SHA-256 of the schema file that was run; null in results of earlier versions."
    )

    @property
    def values(self) -> int:
        """Values of all readings."""
        return round(self.readings * self.values_per_reading)

    @property
    def values_per_s(self) -> float | None:
        """Values per second while they were loaded; null if that took no time."""
        return None if self.readings_per_s is None else self.readings_per_s * self.values_per_reading


class AnswerProblem(SummaryPart):
    """A question that was answered wrongly, or not at all."""

    operation: str
    parameters: Any = None
    problem: str
    answered: bool = Field(default=True, description="False where the question failed, as by a time limit of the server.")


class AnswerChecks(SummaryPart):
    """How answers, or contents after writes, compared with what was expected."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    queried: int = Field(validation_alias=AliasChoices("queried", "asked"))
    wrong: int
    problems: list[AnswerProblem]
    unanswered: int = 0
    not_reached: int = Field(default=0, description="Questions about contents that were not compared, for want of time.")
    not_checked: str | None = Field(default=None, description="Why it could not be checked.")
    acknowledged_writes: int | None = None
    one_write_in: int = Field(default=1, description="One write in this many was read back.")
    read_back: int = 0
    lost_writes: int = 0
    unknown_writes: int = 0
    unknown_writes_found: int = 0
    accounting: list[StreamAccounting] = Field(
        default=[],
        description="What became of every reading that was delivered, by write; empty if the workload has no delivery.",
    )

    @model_validator(mode="before")
    @classmethod
    def _of_earlier_versions(cls, data: Any) -> Any:
        """Earlier versions counted a question that failed as one that was queried and answered wrongly."""
        problems = data.get("problems", []) if isinstance(data, dict) else []
        is_of_today = any(not isinstance(problem, dict) or "answered" in problem for problem in problems)
        failed = sum(problem["problem"] == "no answer came" for problem in problems) if not is_of_today else 0
        if not failed:
            return data
        queried = "queried" if "queried" in data else "asked"
        return {
            **data,
            queried: data[queried] - failed,
            "wrong": data["wrong"] - failed,
            "unanswered": data.get("unanswered", 0) + failed,
            "problems": [{**problem, "answered": problem["problem"] != "no answer came"} for problem in problems],
        }


class Block(SummaryPart):
    """A stretch of a comparison during which the server of one variant was up: it was started, warmed up and measured."""

    number: int = Field(description="Its place in the order of all blocks, from 1.")
    round: int = Field(description="Which of the variant's blocks it is, from 1; blocks of one round follow each other.")
    variant: str
    repeats: list[int] = Field(description="Numbers of its repetitions; none of a variant that only loads.")
    began: datetime
    ended: datetime
    server: Literal["started", "embedded", "kept up"] = Field(
        description="`started`: for this block. `embedded`: there is none. `kept up`: one that is yours, and was not stopped."
    )
    instance: str | None = Field(default=None, description="The lab's name of its server.")
    start_s: float | None = Field(default=None, description="Starting its server; null if none was started.")
    loaded: bool = Field(description="Whether its data were loaded in this block; else they lay on disk.")
    load_s: float | None = None
    settle_s: float | None = None
    measured_s: float = Field(description="Its repetitions, with their warm-up.")
    processes: dict[str, list[int]] = Field(
        description="The lab's servers of this comparison that were in the process table while it was measured, by name: their process ids."
    )
    contents: AnswerChecks | None = Field(default=None, description="What was read back of rows that were written since loading.")


class QueryPlan(SummaryPart):
    """The plan of a query: the access path in a few words (null if the database has none), and the plan's text."""

    access: str | None
    text: str


class QueryPlans(RootModel[dict[str, QueryPlan]]):
    """The plans of a variant's queries, by operation."""


class Failure(SummaryPart):
    """Why a variant was left out."""

    step: str
    cause: str


class RateChange(SummaryPart):
    """A moment of a run at which the throughput changed."""

    repetition: int
    time_s: float
    before_per_s: float
    after_per_s: float

    _present_keys = model_validator(mode="before")(with_present_run_keys)


class OutcomeCounts(SummaryPart):
    """How operations ended."""

    ok: int
    error: int
    timeout: int
    cancelled: int

    @property
    def ended(self) -> int:
        """All of them."""
        return self.ok + self.error + self.timeout + self.cancelled


class ServiceTimes(SummaryPart):
    """Quantiles of service times, in s; of several runs the greatest."""

    p50: float | None
    p99: float | None
    p999: float | None
    max: float | None


class OperationFigures(SummaryPart):
    """An operation at a variant, over all its runs."""

    variant: str
    operation: str
    runs: int
    counts: OutcomeCounts
    late: int
    rows: int
    rows_per_operation: float | None
    latency_s: dict[str, MeasuredFigure] = Field(description="Response times by metric; empty if nothing was measured.")
    service_s: ServiceTimes
    throughput_per_s: float | None


def _of_today(word: object) -> object:
    """A verdict in the words of today: earlier versions said that no difference was seen."""
    return "no significant difference" if word == "no difference seen" else word


class RankingVerdict(SummaryPart):
    """A variant against the fastest."""

    word: Annotated[str, BeforeValidator(_of_today)]
    reason: str
    ratio: MeasuredFigure


class RankedVariant(SummaryPart):
    """The place of a variant in a ranking; `against_best` is null for the fastest, and for the fastest of each class."""

    variant: str
    value_s: float
    against_best: RankingVerdict | None
    consistency: str = Field(
        default="",
        description="The consistency level, where variants differ in it: a variant is compared with the fastest of its own level alone.",
    )
    durability: str = Field(
        default="",
        description="Where its writes are when they are acknowledged, where the operation writes and variants differ in it: a variant is compared "
        "with the fastest of its own class alone.",
    )

    @property
    def ranked_within(self) -> str:
        """The consistency level and durability class that it is ranked within, in words; empty if there is one class."""
        return ", ".join(filter(None, [self.consistency, self.durability]))


class Ranking(SummaryPart):
    """The variants from the fastest to the slowest at an operation; `excluded` says why there is none."""

    operation: str
    metric: str
    excluded: str | None
    places: list[RankedVariant]
    outdated: dict[str, str] = Field(
        default={}, description="Variants that are not ranked because the version of their database is outdated, with why it is."
    )
    margin: float | None = Field(default=None, description="Ratios within it are equivalent.")

    @property
    def classes(self) -> "list[list[RankedVariant]]":
        """The places, apart by consistency level and durability class: only within one is anybody the fastest."""
        classes = dict.fromkeys(place.ranked_within for place in self.places)
        return [[place for place in self.places if place.ranked_within == within] for within in classes]

    def best_for(self, place: RankedVariant) -> RankedVariant:
        """The variant that a place is compared with: the fastest of the same class."""
        return next(other for other in self.places if other.ranked_within == place.ranked_within)


class AnswerMismatch(SummaryPart):
    """Two answers to the same request that differ."""

    k: int
    variant: str
    other: str
    problem: str


class AnswerComparison(SummaryPart):
    """How the answers to an operation compare across variants and with DuckDB."""

    compared: int
    compared_with_reference: int
    mismatch_count: int
    mismatches: list[AnswerMismatch]
    answered: bool
    equal: bool


class HiddenWait(SummaryPart):
    """An operation whose response time is much longer than its service time."""

    operation: str
    response_p999_s: float
    service_p999_s: float


class ClientHealth(SummaryPart):
    """Load-generator health while a variant was measured: started = ok + errors + timeouts + cancelled."""

    runs: int
    rate_per_s: float | None
    started: int
    dropped: int
    late: int
    ok: int
    timeouts: int
    errors: int
    cancelled: int
    error_kinds: list[OperationErrors]
    client_cpu: float | None
    client_cpu_is_shared_with_database: bool
    schedule_lag_p50_s: float | None
    schedule_lag_p99_s: float | None
    schedule_lag_p999_s: float | None
    min_median_s: float | None
    driver_ceiling_per_s: float | None
    spinning: bool
    clock_drift: float | None
    hidden_by_service_time: list[HiddenWait]
    client_bound: str | None


class ModelFigure(SummaryPart):
    """A variant and its latency."""

    variant: str
    latency_s: float | None


class ModelComparison(SummaryPart):
    """A model made for the questions beside a generic one, in the same kind of system."""

    operation: str
    kind: str
    shaped: ModelFigure
    generic: ModelFigure
    ratio: MeasuredFigure | None


class SectionColumn(SummaryPart):
    """A column of a table, and what kind of values it has."""

    title: str
    kind: str


class ShownPoint(TypedDict):
    """A variant by two figures, of which larger is better, with the interval of each. Each group has a front of its own."""

    label: str
    group: str
    x: float
    x_low: float | None
    x_high: float | None
    y: float
    y_low: float | None
    y_high: float | None
    is_on_front: bool


class ShownFront(TypedDict):
    """A Pareto front for each group of points."""

    x_title: str
    y_title: str
    points: list[ShownPoint]


class ShownEffect(TypedDict):
    """What a change of one factor does to an operation: it multiplies a figure by `ratio`."""

    factor: str
    change: str
    operation: str
    ratio: float
    low: float | None
    high: float | None
    runs: int | None


class ShownRequests(TypedDict):
    """A question whose single requests are drawn, for each of some variants. What is drawn is in the results, not here."""

    operation: str
    title: str
    variants: list[str]


class ShownCurvePoint(TypedDict):
    """A point of a line: lines of one `line` have one colour, those of one `figure` one stroke; points are joined by `order`."""

    line: str
    figure: str
    order: float
    label: str
    x: float
    y: float
    low: float | None
    high: float | None


class ShownCurves(TypedDict):
    """Lines on logarithmic axes, each of counts or of durations in s."""

    title: str
    x_title: str
    x_kind: Literal["count", "duration_s"]
    y_title: str
    y_kind: Literal["count", "duration_s"]
    points: list[ShownCurvePoint]


class StudySection(SummaryPart):
    """A section that a study has to itself: a text, a table and pictures."""

    title: str
    text: str
    columns: list[SectionColumn]
    rows: list[list[Any]]
    front: Annotated[ShownFront, AsWritten] | None = None
    effects: list[Annotated[ShownEffect, AsWritten]] | None = None
    requests: list[Annotated[ShownRequests, AsWritten]] | None = None
    use: list[str] | None = Field(default=None, description="Variants whose servers' CPU, memory and disk are drawn over time.")
    curves: list[Annotated[ShownCurves, AsWritten]] | None = None


class StallLoop(SummaryPart):
    """What one loop measured of a stall: response times in s."""

    stall_s: float = Field(description="For how long the database could not write.")
    operations: int
    p50_s: float
    p99_s: float
    p999_s: float
    max_s: float


class StallFigures(SummaryPart):
    """One stall as a closed and as an open loop measure it: coordinated omission, to be seen."""

    variant: str
    operation: str
    title: str = Field(description="The operation's title.")
    rate_per_s: float = Field(description="The rate of the open loop.")
    loops: dict[Literal["closed", "open"], StallLoop]


class ComparisonFigures(SummaryPart):
    """What a comparison found. Keys of variants are their ids."""

    source: Literal["experiment", "study"]
    name: str
    part: str = Field(default="", description="The part of a study that it is.")
    finished: datetime | None
    dataset: Annotated[DescribedDataset, AsWritten]
    workload: Annotated[ComparisonWorkload, AsWritten, PresentKeys]
    metric: str = Field(description="The metric by which variants are ranked.")
    generators: int = Field(default=1, description="How many load generators shared each run.")
    hosts: list[str] = Field(
        default=[], description="Their hosts, as they were named; none where they are processes of the controller's machine."
    )
    operations: dict[str, OperationManifest]
    runs: dict[str, VariantRuns]
    load: dict[str, LoadFigures]
    rate_changes: dict[str, list[RateChange]]
    figures: list[OperationFigures]
    rankings: list[Ranking]
    answers: dict[str, AnswerComparison]
    query_plans: dict[str, dict[str, QueryPlan]]
    failures: dict[str, Failure]
    refused: dict[str, str] = Field(default={}, description="Variants that make no sense on this dataset, with why not.")
    known_answers: dict[str, AnswerChecks]
    contents: dict[str, AnswerChecks]
    guarantees: dict[str, RegisterGuarantees]
    freshness: dict[str, VariantFreshness] = Field(default={}, description="Of variants with markers during their load.")
    retention: dict[str, VariantRetention] = Field(default={}, description="Of variants whose readings expire meanwhile.")
    client_health: dict[str, ClientHealth]
    load_generators: list[GeneratorFigures] = Field(
        default=[], description="The load generators, where several shared the runs, or one on another host."
    )
    models: list[ModelComparison] = []
    sections: list[StudySection] = []
    stall: StallFigures | None = None
    one_at_a_time: PlannedBlocks | None = Field(
        default=None, description="How variants were measured one at a time; null if all their servers were up."
    )
    data_between_blocks: DataBetweenBlocks | None = None
    blocks: list[Block] = Field(default=[], description="In their order; none where all servers were up.")


class ComparisonSummary(Summary[ComparisonFigures]):
    """`summary.json` of a comparison."""

    kind: Literal["comparison"] = "comparison"
