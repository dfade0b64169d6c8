"""The summary of a search for better settings of a server."""

from typing import Annotated, Literal

from pydantic import Field

from sensorbench.results.as_written import AsWritten, PresentKeys
from sensorbench.results.described import LoadedWork
from sensorbench.results.planned import SearchSpace, TuneBudget, TuneGoal
from sensorbench.results.summary.claims import MeasuredFigure
from sensorbench.results.summary.envelope import Summary
from sensorbench.results.summary.part import SummaryPart
from sensorbench.results.tune import Measurement


class TuneTrial(Measurement):
    """A measurement of the search, and its figure over what the default's was at that time; null if one of them is not known."""

    number: int
    ratio: float | None


class SettingEffect(SummaryPart):
    """The ratios of trials with the best's value of a server setting over those of all others; null if one side has no trial."""

    setting: str
    about: str
    with_it: str = Field(description="Which trials count as having the best's value.")
    trials_with: int
    trials_without: int
    ratio: MeasuredFigure | None


class DefaultDrift(SummaryPart):
    """How far the repetitions of the default within the search were apart."""

    values: list[float]
    repetitions: int
    max_to_min: float
    last_to_first: float


class TuneFigures(SummaryPart):
    """What was searched, and what came out."""

    operations: dict[str, str]
    workload: Annotated[LoadedWork, AsWritten, PresentKeys]
    goal: TuneGoal
    space: SearchSpace
    left_out: list[str] = Field(description="Settings that trade durability for speed, and were left out for that.")
    start: dict[str, str] = Field(description="The settings that count as the default; all others are left to the server.")
    seed: int
    budget: TuneBudget
    pairs: int = Field(description="Pairs of runs (default and best) for the confirmation.")
    cluster: list[str] | None = Field(
        default=None, description="Nodes of a cluster of the user's; null if the lab started the servers."
    )
    verdict: Literal["gain", "no gain"] | None = Field(description="Null until the confirmation is over.")
    reason: str = Field(description="Why that is the verdict, or why there is none.")
    best: dict[str, str] | None = Field(description="The best configuration of the search; null if none could be measured.")
    changed: dict[str, str] = Field(description="The settings of the best that differ from the default.")
    ratio: MeasuredFigure | None = Field(description="The best to the default, by the confirmation alone.")
    search_ratio: float | None = Field(description="The best to the default, by the search: the best of many, partly luck.")
    snippet: str = Field(description="The lines to paste into the server's own file; empty if there is no gain.")
    effects: list[SettingEffect]
    trials: list[TuneTrial]
    confirmation: list[Measurement]
    drift: DefaultDrift | None = Field(description="Null where the default was measured fewer than two times.")


class TuneSummary(Summary[TuneFigures]):
    """`summary.json` of a search for better settings."""

    kind: Literal["tune"] = "tune"
