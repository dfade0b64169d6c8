"""What was fitted to recorded traffic, and how well that describes the half of it that was not looked at."""

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from sensorbench.results.traffic import Quantiles

Choice = Literal["uniform", "zipfian", "latest", "sequential", "numbers", "recorded"]
Verdict = Literal["holds", "does not hold", "undecided"]
CheckName = Literal["mix", "skew", "burstiness"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class FittedSource(_Part):
    """Where some parameters of an operation come from."""

    parameters: list[str]
    choice: Choice = Field(
        description="How values are chosen. `recorded`: each as often as it came. `numbers`: each once, a step from the one before."
    )
    exponent: float | None = Field(default=None, description="Of `zipfian` and `latest`.")
    values: int = Field(description="Rows that are chosen from; of `numbers`, 0.")
    of: str = Field(description="What the values are, in words.")


class FittedOperation(_Part):
    """An operation of the experiment, which was a template of the trace."""

    name: str
    template: int
    kind: str
    statement: str = Field(description="As it was recorded, with $1, $2, … in the places of literals.")
    statements: int = Field(description="In the first half.")
    share: float = Field(description="Of all statements of the first half.")
    sources: list[FittedSource]


class LeftOut(_Part):
    """Statements of the first half that the experiment does not have."""

    what: str = Field(description="The template's number and statement, or what several templates have in common.")
    statements: int
    share: float = Field(description="Of all statements of the first half.")
    reason: str


class NotFitted(_Part):
    """What the sessions of the first half had, and the experiment has not: each of its statements comes by itself, when the schedule says."""

    sessions: int
    transactions: int
    in_transactions: float = Field(
        description="The share of all statements of the first half, with those that begin and end transactions."
    )
    think_time_s: Quantiles | None = Field(
        description="From the answer to a statement, or from its arrival where the trace has no durations, to the next one of its session. None "
        "where no session has two statements."
    )


class FittedStep(_Part):
    """A rate that is held for a while."""

    length_s: float
    rate_per_s: float


class FittedSchedule(_Part):
    """When the operations of the experiment come."""

    arrival: Literal["constant", "poisson"]
    concurrency: int = Field(description="Concurrency limit: the sessions that were open at the same time.")
    steps: list[FittedStep]

    @property
    def length_s(self) -> float:
        """All steps together."""
        return sum(step.length_s for step in self.steps)

    @property
    def operations(self) -> float:
        """How many operations come, on average."""
        return sum(step.length_s * step.rate_per_s for step in self.steps)


class Compared(_Part):
    """A figure of what the experiment sends, and of the second half."""

    subject: str = Field(description="An operation, a parameter source, or a length of windows.")
    figure: str
    fitted: float
    recorded: float
    difference: float
    chance: float = Field(description="A difference that chance alone exceeds in 1% of the cases.")
    verdict: Verdict


class Check(_Part):
    """One check of the fit against the second half."""

    name: CheckName
    verdict: Verdict
    difference: float | None = Field(description="The largest one that counts; None if nothing could be compared.")
    why: str
    compared: list[Compared]


class RatePoint(_Part):
    """A rate of the second half, and what the fitted schedule has at the same time of the first."""

    start_s: float
    fitted_per_s: float
    recorded_per_s: float


class TrafficFit(_Part):
    """An experiment that was made of a trace."""

    database: str
    trace: str
    statements: int = Field(description="Of both halves.")
    length_s: float = Field(description="Of both halves.")
    scale_rate: float
    operations: list[FittedOperation]
    left_out: list[LeftOut]
    not_fitted: NotFitted
    schedule: FittedSchedule = Field(description="Before it is scaled.")
    checks: list[Check]
    rates: list[RatePoint]
    files: list[str] = Field(description="Of the experiment; none where no data were given.")
    to_write: list[str] = Field(description="Operations whose statements are still to be written for other databases, by file.")

    @property
    def holds(self) -> bool:
        """Whether all checks hold."""
        return all(check.verdict == "holds" for check in self.checks)

    @property
    def share_left_out(self) -> float:
        """The share of the statements of the first half that the experiment does not have."""
        return sum(part.share for part in self.left_out)


def overall(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict of several: the worst of them."""
    return next((verdict for verdict in ("does not hold", "undecided") if verdict in verdicts), "holds")
