"""The summary of a load or of queries of TSBS (Time Series Benchmark Suite)."""

from typing import Literal

from pydantic import Field

from sensorbench.results.planned import PlannedTsbs
from sensorbench.results.summary.comparison import AnswerComparison, ClientHealth, LoadFigures
from sensorbench.results.summary.envelope import Summary
from sensorbench.results.summary.part import SummaryPart
from sensorbench.results.summary.tools import ToolLatencies


class TsbsLatencies(ToolLatencies):
    """The same, with what TSBS prints of latencies besides; in s."""

    sd: float = Field(description="Standard deviation.")
    sum: float


class TsbsQueries(SummaryPart):
    """Queries of one kind at one variant: what became of them, and their response times."""

    variant: str
    query: str
    ok: int
    error: int
    timeout: int
    cancelled: int
    rows: int = Field(description="Rows of all answers together.")
    run_s: float | None = Field(description="How long they took together; null if they were cut short before that was known.")
    response_s: TsbsLatencies | None = Field(description="From the intended start; null if none ended.")

    @property
    def ended(self) -> int:
        """How many there were."""
        return self.ok + self.error + self.timeout + self.cancelled


class TsbsFigures(SummaryPart):
    """What was loaded at each variant, or how its queries went."""

    plan: PlannedTsbs
    loads: dict[str, LoadFigures] = Field(default={}, description="How each variant was loaded.")
    queries: list[TsbsQueries] = Field(default=[], description="By kind of query, and for each by variant.")
    answers: dict[str, AnswerComparison] = Field(
        default={}, description="How the answers to each kind of query compare across variants and with DuckDB."
    )
    client_health: dict[str, ClientHealth] = {}


class TsbsSummary(Summary[TsbsFigures]):
    """`summary.json` of a load or of queries of TSBS."""

    kind: Literal["tsbs"] = "tsbs"
