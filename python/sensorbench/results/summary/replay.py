"""The summary of a replay."""

from typing import Literal

from pydantic import Field

from sensorbench.results.replay import ComparedAnswers, PlannedReplay
from sensorbench.results.summary.comparison import ClientHealth
from sensorbench.results.summary.envelope import Summary
from sensorbench.results.summary.part import SummaryPart


class ReplayCounts(SummaryPart):
    """What became of all statements: statements = started + not_started; started = ok + error + timeout + cancelled."""

    statements: int
    started: int
    not_started: int = Field(description="They were not reached before the replay ended.")
    ok: int
    error: int
    timeout: int
    cancelled: int
    unknown: int = Field(
        description="Of those that started, those of which it is unknown whether the server executed them: timeouts, cancelled ones, and those whose connection was lost."
    )


class Percentiles(SummaryPart):
    """Percentiles and maximum of a latency, in s."""

    p50: float
    p99: float
    max: float


class ReplayedTemplate(SummaryPart):
    """Statements of a template."""

    template: str
    kind: str
    statement: str
    started: int
    ok: int
    error: int
    timeout: int
    cancelled: int
    response_s: Percentiles | None = Field(description="From the intended start; null if none ended.")
    service_s: Percentiles | None = Field(description="From the start.")
    recorded_p50_s: float | None
    recorded_p99_s: float | None
    recorded_errors: int | None = Field(description="Null where the replay was cut short, as the fields below.")
    new_errors: int | None
    gone_errors: int | None
    rows_compared: int | None
    rows_differ: int | None


class ReplayFigures(SummaryPart):
    """The figures of a replay."""

    plan: PlannedReplay
    run_s: float | None = Field(description="How long the replay took; null if it was cut short before it was counted.")
    counts: ReplayCounts
    own_lag_s: Percentiles | None = Field(
        description="How much later statements started than they would have if the replayer had never been late. Null with speed max."
    )
    late_starts: int = Field(
        description="Statements that started more than 1 ms after their intended start, for whatever reason."
    )
    late_because: Literal["nobody", "replayer", "target"] = Field(
        description="Who made starts late, where more than 1% of them were: the replayer where the p99 of its own lag is above 1 ms and half of that of all statements, else the target."
    )
    templates: list[ReplayedTemplate]
    answers: list[ComparedAnswers] | None = Field(description="Answers at two targets; null if there was one alone.")
    client_health: ClientHealth


class ReplaySummary(Summary[ReplayFigures]):
    """`summary.json` of a replay."""

    kind: Literal["replay"] = "replay"
