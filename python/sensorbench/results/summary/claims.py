"""Claims with their verdicts, as summaries have them."""

from pydantic import Field

from sensorbench.results.summary.part import SummaryPart


class MeasuredFigure(SummaryPart):
    """A figure and its confidence interval; `low` and `high` are null where they are not known."""

    value: float | None
    low: float | None
    high: float | None
    confidence: float | None = None
    runs: int | None = None
    between_runs: bool | None = Field(default=None, description="Whether the spread between runs is in the interval.")


class SubstituteVerdict(SummaryPart):
    """What a claim is with substitutes, where its own databases were not measured."""

    roles: dict[str, str] = Field(description="Which variant plays which part of the claim.")
    verdict: str
    reason: str
    measured: MeasuredFigure | None


class VerdictOf(SummaryPart):
    """The verdict of one dataset."""

    verdict: str
    reason: str
    measured: MeasuredFigure | None


class JudgedClaim(SummaryPart):
    """A published finding and whether it was reproduced here."""

    id: str
    text: str
    form: str
    published: str
    requires: list[str] = Field(default=[], description="What must be measured to judge it.")
    parts: list[str] = Field(default=[], description="The parts of the study that it is about.")
    verdict: str
    reason: str = ""
    measured: MeasuredFigure | None = None
    substitute: SubstituteVerdict | None = None
    of_each: dict[str, VerdictOf] = Field(default={}, description="By dataset, in a series of several datasets.")
