"""What a gate found: `gate.json` beside the results of its comparison."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from sensorbench.results.summary.claims import MeasuredFigure
from sensorbench.results.summary.part import SummaryPart

GATE_FILE = "gate.json"
GateWord = Literal["slower", "not slower", "undecided"]


class GateOperation(SummaryPart):
    """An operation at head and at base. Ratios are of response times: above 1, head is slower."""

    operation: str
    verdict: GateWord
    reason: str
    runs: int = Field(description="Repetitions after which that was decided; all that were made where it was not.")
    base_s: float | None
    head_s: float | None
    ratio: MeasuredFigure = Field(description="Head over the geometric mean of base and base again.")
    control: MeasuredFigure = Field(description="Base again over base.")
    noise: float | None = Field(description="Standard deviation of the control between repetitions, as a share.")
    detectable: float | None = Field(
        description="The slowdown that this many repetitions show in four of five sessions, as a share."
    )
    decidable_margin: float | None = Field(
        description="The smallest margin at which all repetitions that the gate may make show in four of five sessions that nothing is slower."
    )


class GateSide(SummaryPart):
    """One side: what was given for it, and the variants of the comparison that are it."""

    given: list[str]
    variants: list[str]
    version: str = Field(description="Version of the database.")


class GateResult(SummaryPart):
    """A gate: whether head is slower than base."""

    format: Literal[1] = 1
    title: str
    folder: str
    verdict: GateWord
    reason: str
    base: GateSide
    head: GateSide
    differences: list[str] = Field(description="What differs between the sides, in words.")
    metric: str
    margin: float = Field(description="Share by which head may be slower.")
    looks: list[int]
    repetitions: int = Field(description="Repetitions of each side that were made.")
    max_repetitions: int
    budget_s: float
    took_s: float = Field(description="From the first repetition until the decision.")
    created: datetime
    operations: list[GateOperation]

    @property
    def exit_code(self) -> int:
        """0 where head is not slower, 1 where it is, 3 where that was not decided."""
        return {"not slower": 0, "slower": 1, "undecided": 3}[self.verdict]
