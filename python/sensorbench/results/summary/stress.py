"""The summary of a stress run."""

from typing import Annotated, Literal

from pydantic import Field

from sensorbench.results.as_written import AsWritten, PresentKeys
from sensorbench.results.described import StressWorkload
from sensorbench.results.planned import StressObjective, StressSearch
from sensorbench.results.summary.envelope import OperationErrors, Summary
from sensorbench.results.summary.generators import GeneratorFigures
from sensorbench.results.summary.part import SummaryPart


class Latencies(SummaryPart):
    """Mean, percentiles and maximum of a latency, in s."""

    mean: float
    median: float
    p90: float
    p95: float
    p99: float
    p999: float
    max: float


class OperationCounts(SummaryPart):
    """What became of all arrivals: offered = started + dropped; started = ok + error + timeout + cancelled."""

    offered: int
    started: int
    dropped: int = Field(description="Arrivals that never started before the end.")
    late: int = Field(description="Operations that started more than 1 ms after their intended start.")
    ok: int
    error: int
    timeout: int
    cancelled: int


class StepOperation(SummaryPart):
    """One operation during a step."""

    ok: int
    error: int
    timeout: int
    cancelled: int
    late: int
    response_s: Latencies | None


class ServerFigures(SummaryPart):
    """What the servers reported during a step: hit rates by cache, counters per second and means of gauges by quantity."""

    hit_rates: dict[str, float]
    rates: dict[str, float]
    means: dict[str, float]
    steady_after_s: dict[str, float | None] = Field(
        description="By cache, after which time of the step its hit rate was steady; null if it never was."
    )


class StressStep(SummaryPart):
    """A rate that was held."""

    run: int
    name: str
    rate_per_s: float
    start_s: float
    end_s: float
    cut_short: bool
    steered: list[str] = Field(description="Changes of the rate by the user during the step.")
    counts: OperationCounts
    response_s: Latencies | None = Field(description="From the intended start; null if no operation ended.")
    service_s: Latencies | None = Field(description="From the start.")
    schedule_lag_s: Latencies | None = Field(description="From the intended start to the start.")
    operations: dict[str, StepOperation]
    client_cpu: float | None = Field(description="CPUs that the client kept busy; null if that was not sampled twice.")
    offered_per_s: float
    completed_per_s: float
    concurrency: float = Field(description="Operations in flight on average, by Little's law.")
    share_within: float | None = Field(
        default=None,
        description="Of all arrivals, the share that succeeded within the objective's limit; null if the step was cut short.",
    )
    met: bool | None = Field(default=None, description="Whether the objective was met; null without one.")
    client_bound: str | None = Field(description="Why the client was the limit; null if it was not.")
    at_concurrency_limit: bool = Field(description="All operations that may be in flight were, nearly all the time.")
    servers: ServerFigures


class StressCapacity(SummaryPart):
    """The highest rate that met the objective in each trial, and the lowest above it that met it in none."""

    met_per_s: float | None
    missed_per_s: float | None
    is_confirmed: bool
    trials: int
    client_bound: str | None


class StressFigures(SummaryPart):
    """The steps of a stress run, and the capacity where it was searched."""

    operations: dict[str, str]
    workload: Annotated[StressWorkload, AsWritten, PresentKeys]
    objective: StressObjective | None
    search: StressSearch | None
    steps: list[StressStep]
    capacity: StressCapacity | None
    errors: list[OperationErrors]
    load_generators: list[GeneratorFigures] = Field(
        default=[], description="The load generators, where several shared the runs, or one on another host."
    )


class StressSummary(Summary[StressFigures]):
    """`summary.json` of a stress run."""

    kind: Literal["stress"] = "stress"
