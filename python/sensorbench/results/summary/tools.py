"""The summaries of other tools' workloads: phases of YCSB, and runs of profiles of cassandra-stress."""

from typing import Generic, Literal, TypeVar

from pydantic import Field

from sensorbench.results.planned import PlannedCassandraStress, PlannedOfTool, PlannedYcsb
from sensorbench.results.summary.comparison import ClientHealth
from sensorbench.results.summary.envelope import Summary
from sensorbench.results.summary.part import SummaryPart
from sensorbench.results.summary.stress import Latencies

Planned = TypeVar("Planned", bound=PlannedOfTool)


class ToolLatencies(Latencies):
    """The same, with the shortest one."""

    min: float


class KindFigures(SummaryPart):
    """Operations of one kind, by the other tool's name: what became of them, and their response times."""

    ok: int
    error: int
    timeout: int
    cancelled: int
    rows: int = Field(description="Rows that those that succeeded wrote or returned.")
    partitions: float | None = Field(
        description="Partitions that they wrote to, or one for each answer that has rows; null if the tool counts none."
    )
    response_s: ToolLatencies | None = Field(description="From the intended start; null if none ended.")


class ToolFigures(SummaryPart, Generic[Planned]):
    """The figures of one run, by kind of operation."""

    plan: Planned
    run_s: float | None = Field(description="How long the run took; null if it was cut short before it was counted.")
    total: KindFigures = Field(description="All kinds together.")
    kinds: dict[str, KindFigures]
    client_health: ClientHealth


class YcsbSummary(Summary[ToolFigures[PlannedYcsb]]):
    """`summary.json` of a phase of YCSB."""

    kind: Literal["ycsb"] = "ycsb"


class CassandraStressSummary(Summary[ToolFigures[PlannedCassandraStress]]):
    """`summary.json` of a run of a profile of cassandra-stress."""

    kind: Literal["cassandra-stress"] = "cassandra-stress"
