"""The summary of a study of factors."""

from typing import Annotated, Literal

from pydantic import Field

from sensorbench.results.as_written import AsWritten
from sensorbench.results.described import FactorsWorkload
from sensorbench.results.factors import Where
from sensorbench.results.summary.claims import MeasuredFigure
from sensorbench.results.summary.envelope import Summary
from sensorbench.results.summary.part import SummaryPart


class FactorParameter(SummaryPart):
    """A parameter: what the paper calls it, what the version in use calls it, and its default there (at scale 1) and here."""

    in_paper: str = Field(description="Empty for what the paper does not name.")
    setting: str
    default: str
    here: str
    about: str
    became: str = Field(description="What happened to it since the paper; empty if nothing did.")


class LevelFigure(SummaryPart):
    """A figure's mean over the rounds, and its ratio to that of the part's base, round by round; null if no round has both."""

    value: float
    rounds: int
    ratio: MeasuredFigure | None


class LevelFigures(SummaryPart):
    """The figures of a level under a load: of putting the records there (`filled`), or of a step, counted from 0."""

    load: str
    level: str
    where: Where
    rate_per_s: float | None = Field(description="The rate of the step; null for `filled`.")
    figures: dict[str, LevelFigure]


class FactorPartFigures(SummaryPart):
    """A part of the study: levels of settings, each compared with the base."""

    title: str
    about: str
    base: str = Field(description="The level that all others are compared with.")
    levels: list[str]
    successors: list[str] = Field(description="Levels that the paper does not have: what has taken a parameter's place.")
    rows: list[LevelFigures]


class CellOutcome(SummaryPart):
    """How the measurement of a cell came out in a round."""

    round: int
    outcome: Literal["measured", "failed"]
    reason: str | None
    took_s: float


class FactorCell(SummaryPart):
    """A configuration under a load, which levels (part, level) it is, and how its measurements came out."""

    id: str
    load: str
    settings: dict[str, str]
    apart: bool
    levels: list[tuple[str, str]]
    measurements: list[CellOutcome]


class LevelChoice(SummaryPart):
    """A level that was better than the default, and its ratio to it."""

    part: str
    level: str
    ratio: MeasuredFigure


class BestDraftFigures(SummaryPart):
    """The study's own draft: the best level of each part, and the settings that differ from the default for it, at this scale."""

    choices: list[LevelChoice]
    changed: dict[str, str]


CurveFigure = Literal["hit_rate", "disk_read_per_s", "steady_s"]


class LoadCurves(SummaryPart):
    """Figures that the report draws over the load average, as the paper does, and over the rate."""

    title: str
    about: str = Field(description="What the paper draws, and what is to be known of it.")
    parts: list[str] = Field(description="The parts whose levels are drawn.")
    figures: list[CurveFigure]
    printed_load: str = Field(description="The figure as which the paper's printed load is compared.")
    printed_unit: str = Field(description="The unit of the paper's load, in words; empty if it has one.")


class FactorsFigures(SummaryPart):
    """What was varied, and what each level does."""

    name: str
    question: str
    paper: str
    target: str
    nodes: int | None
    workload: Annotated[FactorsWorkload, AsWritten]
    scale: float
    sizes: dict[str, float] = Field(description="By which factor each setting that is a size was multiplied.")
    step_s: float
    rounds: int
    looks: list[int] = Field(
        default=[],
        description="After how many rounds claims were judged, so that what they need no more was measured no more; none: all rounds were made.",
    )
    seed: int
    reached: dict[str, float] = Field(description="Reads and writes per second that the default takes, each alone.")
    rates: dict[str, list[float]] = Field(description="The rates of each load, operations per second.")
    cluster: list[str] | None = Field(
        default=None, description="Nodes of a cluster of the user's; null if the lab started the servers."
    )
    shares_records: bool = Field(
        default=False,
        description="Whether servers of cells that have the same files start with records that were added once in each round.",
    )
    left_out: dict[str, str] = Field(default={}, description="Parts and levels that a budget left out, each with why.")
    loads: dict[str, str] = Field(description="What each load is, by its name.")
    parameters: list[FactorParameter]
    parts: dict[str, FactorPartFigures]
    cells: list[FactorCell]
    best_draft: BestDraftFigures
    curves: LoadCurves | None = Field(
        default=None, description="What is drawn over the load average; null if the paper does not."
    )


class FactorsSummary(Summary[FactorsFigures]):
    """`summary.json` of a study of factors."""

    kind: Literal["factors"] = "factors"
