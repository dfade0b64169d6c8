"""The summary of the MapReduce study."""

from typing import Annotated, Literal

from pydantic import Field

from sensorbench.results.as_written import AsWritten
from sensorbench.results.described import LoadedRows
from sensorbench.results.mapreduce import CompleteExecution, FailedExecution, JobRecord, Placement
from sensorbench.results.planned import ArticlesOfJob, MapReduceWorkload, SystemOfJob, WantedWord
from sensorbench.results.summary.claims import MeasuredFigure
from sensorbench.results.summary.envelope import Summary
from sensorbench.results.summary.part import SummaryPart


class MeanTime(MeasuredFigure):
    """A mean over executions (s) with its interval."""

    value: float


class ExecutionTime(SummaryPart):
    """What an execution took; the first of a cell finds nothing warm, and is in no mean."""

    execution: int
    total_s: float
    first: bool


class SetupParts(SummaryPart):
    """What the set-up consists of (s): the application, its executors, a first task on each core, and of the jobs what no stage was executed in."""

    context_s: float
    executors_s: float
    launch_s: float
    jobs_s: float


class WordFigures(SummaryPart):
    """T for a word, and means over executions of what its two jobs took."""

    word: str
    total: MeanTime | None = Field(
        default=None, description="From the submission of an application of its own; null if it had none, as in older results."
    )
    times: list[ExecutionTime] = Field(default=[], description="Of each of these applications.")
    setup_s: float | None = Field(default=None, description="Of the total; null for a native job.")
    executions: int
    jobs_s: float
    jobs: tuple[JobRecord, JobRecord]
    pairs: int
    occurrences: int
    list_length: int | None
    equal: bool


class JobFigures(SummaryPart):
    """A system with a number of workers, or its native job. The time is that of the first word; the first execution is in no mean."""

    system: str
    workers: int | None = Field(description="Null for the native job of the database.")
    nodes: int | None = Field(default=None, description="Nodes of the database, where it is one of the lab's.")
    total: MeanTime
    times: list[ExecutionTime]
    setup_s: float | None = Field(description="Null for a native job, which has none that could be distinguished.")
    setup_share: float | None
    setup_parts: SetupParts | None
    words: list[WordFigures]
    equal: bool = Field(description="Whether all results equal those of DuckDB.")


class SpeedUp(SummaryPart):
    """The time with the fewest workers over that with more; what is linear is the ratio of workers."""

    system: str
    word: str | None = Field(default=None, description="Null in older results, where it is the first.")
    from_workers: int
    workers: int
    speed_up: float
    speed_up_without_setup: float | None
    linear: float


class Gap(SummaryPart):
    """What is not available here, and why."""

    system: str
    what: str
    why: str


class PrintedGain(SummaryPart):
    """A percentage of the paper, and T(3)/T(8) if it is an increase and if it is a ratio."""

    printed_percent: float
    increase: float
    ratio: float


class HoldsByReading(SummaryPart):
    """Whether a claim holds on the paper's own figures, in both readings."""

    increase: bool
    ratio: bool


class PrintedFindings(SummaryPart):
    """The paper's table in both readings: by system, and by claim."""

    gains: dict[str, PrintedGain]
    claims: dict[str, HoldsByReading]


class MapReduceFigures(SummaryPart):
    """The times of all cells, and what they are of."""

    name: str
    dataset: ArticlesOfJob
    systems: dict[str, SystemOfJob]
    words: list[WantedWord]
    workers: list[int] = Field(description="Numbers of workers, and of nodes of the databases that grow with them.")
    repetitions: int = Field(description="How many executions of each cell were wanted.")
    workload: MapReduceWorkload
    hosts: list[str] = Field(
        default=[], description="Hosts that nodes of databases were placed on; none where these were on this machine."
    )
    loads: dict[str, Annotated[LoadedRows, AsWritten]] = Field(description="How each system was loaded, as in load.json.")
    cells: list[JobFigures]
    speed_ups: list[SpeedUp]
    gaps: list[Gap]
    placements: list[Placement] = Field(default=[], description="Where data were in each size of each database that grows.")
    executions: list[CompleteExecution | FailedExecution]
    printed: PrintedFindings | None = Field(default=None, description="What the paper has; null until the study judges.")


class MapReduceSummary(Summary[MapReduceFigures]):
    """`summary.json` of the MapReduce study. Its systems are not variants: each is executed with several numbers of workers."""

    kind: Literal["mapreduce"] = "mapreduce"
