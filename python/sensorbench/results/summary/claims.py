"""Claims with their verdicts, as summaries have them."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from pydantic import Field, model_validator

from sensorbench.results.summary.part import SummaryPart

VERDICTS = ("reproduced", "partly reproduced", "not reproduced", "inconclusive", "not tested", "below minimum scale")
# What verdicts of substitutes were called, in each claim.
_ONLY_IN_FORMAT_1 = "substitute"


class MeasuredFigure(SummaryPart):
    """A figure and its confidence interval; `low` and `high` are null if they are not known."""

    value: float | None
    low: float | None
    high: float | None
    confidence: float | None = None
    runs: int | None = None
    between_runs: bool | None = Field(default=None, description="Whether the spread between runs is in the interval.")


class AgreementBand(SummaryPart):
    """Between which values a figure agrees with a claim; an end that is null is open."""

    low: float | None
    high: float | None


class JudgedCell(SummaryPart):
    """One comparison that a claim is made of."""

    name: str
    verdict: str
    reason: str
    measured: MeasuredFigure | None = None
    published: float | None = Field(default=None, description="The paper's own figure.")
    band: AgreementBand | None = Field(default=None, description="Where the interval must lie to agree with the claim.")
    is_ratio: bool = Field(default=True, description="Whether these are ratios; else they have a unit of their own.")


class VerdictOf(SummaryPart):
    """The verdict of one dataset."""

    verdict: str
    reason: str
    measured: MeasuredFigure | None


class JudgedClaim(SummaryPart):
    """A published finding and whether it was reproduced here."""

    id: str
    text: str
    sentence: str = Field(default="", description="The paper's own words.")
    note: str = Field(default="", description="Where the paper's own figures contradict it, and other reservations.")
    form: str
    published: str
    requires: list[str] = Field(default=[], description="What must be measured to judge it.")
    parts: list[str] = Field(default=[], description="The parts of the study that it is about.")
    verdict: str
    reason: str = ""
    measured: MeasuredFigure | None = Field(default=None, description="The figure of a claim that is one comparison.")
    cells: list[JudgedCell] = Field(default=[], description="The comparisons that the claim is made of.")
    substitutes: dict[str, str] = Field(
        default={}, description="Which variant stands for a system of the paper that was not measured, by role."
    )
    repetitions: dict[str, int | None] = Field(
        default={},
        description="From how many repetitions on it is decidable, by the coefficient of variation between runs; null: not at ten. By simulation.",
    )
    of_each: dict[str, VerdictOf] = Field(default={}, description="By dataset, in a series of several datasets.")
    rules: Literal["format 1", "direction and magnitude"] = Field(
        default="direction and magnitude",
        description="By which rules it was judged. Those of format 1 could not distinguish every finding from its contrary.",
    )

    @model_validator(mode="before")
    @classmethod
    def _of_format_1(cls, content: object) -> object:
        """A verdict of earlier versions says by which rules it was given; it is never translated."""
        if not isinstance(content, dict) or _ONLY_IN_FORMAT_1 not in content:
            return content
        return {**{key: value for key, value in content.items() if key != _ONLY_IN_FORMAT_1}, "rules": "format 1"}


def counts_by_verdict(claims: Sequence[JudgedClaim]) -> dict[str, int]:
    """How many claims have each verdict, also those that none has; words of earlier formats come last."""
    counts = Counter(claim.verdict for claim in claims)
    return {word: counts[word] for word in [*VERDICTS, *(word for word in counts if word not in VERDICTS)]}


def verdict_counts(claims: Sequence[JudgedClaim]) -> str:
    """The same in a sentence."""
    return ", ".join(f"{count} {word}" for word, count in counts_by_verdict(claims).items())
