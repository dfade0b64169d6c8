"""The summary of several comparisons of one study."""

from typing import Literal

from pydantic import Field

from sensorbench.results.manifest import Status
from sensorbench.results.planned import OperationManifest
from sensorbench.results.summary.comparison import Failure, StudySection
from sensorbench.results.summary.envelope import Summary
from sensorbench.results.summary.part import SummaryPart


class SeriesPart(SummaryPart):
    """A comparison of a series, in a few words."""

    folder: str
    title: str
    readings: int
    status: Status
    answers_equal: bool | None
    failures: dict[str, Failure]
    variants: list[str]
    operations: dict[str, OperationManifest]
    warnings: list[str] = Field(description="Kinds of the warnings in its report.")


class GrowthPoint(SummaryPart):
    """A figure of a variant on a dataset of this many readings."""

    dataset: str
    readings: int
    variant: str
    what: str = Field(description="load (s), size (bytes), or the operation whose latency (s) it is.")
    value: float


class SeriesFigures(SummaryPart):
    """Several comparisons of one study, by dataset or part."""

    name: str
    of: Literal["datasets", "parts"]
    parts: dict[str, SeriesPart]
    growth: list[GrowthPoint]
    sections: list[StudySection]
    left_out: dict[str, str] = Field(default={}, description="Parts that were not begun, each with why.")


class SeriesSummary(Summary[SeriesFigures]):
    """`summary.json` of a study of several datasets or parts."""

    kind: Literal["series"] = "series"
