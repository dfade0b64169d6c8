"""What measurements say of a claim, and of each part of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sensorbench.analysis.intervals import Interval
from sensorbench.wording import counted

Verdict = Literal["reproduced", "partly reproduced", "not reproduced", "inconclusive", "not tested", "below minimum scale"]

# Of several parts, the first of these that occurs is the verdict of the whole.
WEAKEST_FIRST: tuple[Verdict, ...] = (
    "not reproduced",
    "not tested",
    "below minimum scale",
    "inconclusive",
    "partly reproduced",
    "reproduced",
)
NOT_MEASURED = "something that it needs was not measured"
# This many parts of a verdict are named in its reason.
MAX_NAMED = 5


@dataclass(frozen=True)
class Band:
    """Between which values a figure must lie; an end that is None is open."""

    low: float | None
    high: float | None


@dataclass(frozen=True)
class Cell:
    """One comparison that a claim is made of, and what was found.

    `measured` is None if nothing was measured or the rule knows no interval; `published` is the paper's own figure, and `band` what counts as
    agreement with the claim. `is_ratio`: these are ratios, which is not so of bytes, shares and scores.
    """

    name: str
    verdict: Verdict
    reason: str
    measured: Interval | None = None
    published: float | None = None
    band: Band | None = None
    is_ratio: bool = True

    @property
    def is_open(self) -> bool:
        """Whether more runs may still decide it: the direction, or the magnitude."""
        return self.verdict == "inconclusive" or (self.verdict == "partly reproduced" and self._straddles())

    def _straddles(self) -> bool:
        """Whether the interval lies only in part within the band."""
        if self.measured is None or self.measured.low is None or self.measured.high is None or self.band is None:
            return False
        bottom, top = self.band.low, self.band.high
        return (bottom is None or self.measured.high > bottom) and (top is None or self.measured.low < top)


@dataclass(frozen=True)
class Judgement:
    """What the measurements say of a claim."""

    verdict: Verdict
    reason: str
    cells: Sequence[Cell] = ()

    @property
    def is_open(self) -> bool:
        """Whether more runs may still decide it."""
        if self.verdict == "partly reproduced":
            return all(cell.is_open for cell in self.cells if cell.verdict == "partly reproduced")
        return self.verdict == "inconclusive"

    @property
    def measured(self) -> Interval | None:
        """The figure of a claim that is one comparison."""
        return self.cells[0].measured if len(self.cells) == 1 else None


def untested_for(reason: str) -> Judgement:
    """What is said of something that was not tested, and why."""
    return Judgement("not tested", reason)


def weakest(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict of a whole, of whose parts these are the verdicts; of nothing: not tested."""
    return next((verdict for verdict in WEAKEST_FIRST if verdict in verdicts), "not tested")


def all_of(cells: Sequence[Cell]) -> Judgement:
    """What follows for a claim that says all of these: the weakest of the verdicts, with the cells that are the reason."""
    if not cells:
        return untested_for(NOT_MEASURED)
    verdict = weakest([cell.verdict for cell in cells])
    if len(cells) == 1:
        return Judgement(verdict, cells[0].reason, cells)
    return Judgement(verdict, _counted(cells), cells)


def any_of(cells: Sequence[Cell]) -> Judgement:
    """What follows for a claim that says at least one of these; each was judged with a confidence that allows for their number."""
    verdicts = {cell.verdict for cell in cells}
    if not cells:
        return untested_for(NOT_MEASURED)
    if "reproduced" in verdicts:
        verdict: Verdict = "reproduced"
    elif verdicts == {"not reproduced"}:
        verdict = "not reproduced"
    else:
        verdict = weakest([cell.verdict for cell in cells if cell.verdict != "not reproduced"])
    return Judgement(verdict, f"at least one is claimed; {_counted(cells)}", cells)


def _counted(cells: Sequence[Cell]) -> str:
    """How many cells have each verdict, and those that are not reproduced."""
    counts = [(verdict, sum(cell.verdict == verdict for cell in cells)) for verdict in reversed(WEAKEST_FIRST)]
    numbers = ", ".join(f"{count} {verdict}" for verdict, count in counts if count)
    contrary = [cell.name for cell in cells if cell.verdict == "not reproduced"]
    more = f" and {len(contrary) - MAX_NAMED} more" if len(contrary) > MAX_NAMED else ""
    named = f"; contrary: {', '.join(contrary[:MAX_NAMED])}{more}" if contrary else ""
    return f"of {counted(len(cells), 'comparison')}: {numbers}{named}"
