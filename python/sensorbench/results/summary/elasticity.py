"""The summaries of changes of a cluster under load: of one cluster, and of several side by side."""

from typing import Annotated, Literal

from pydantic import Field

from sensorbench.results.as_written import AsWritten
from sensorbench.results.described import LoadReport
from sensorbench.results.manifest import Status
from sensorbench.results.planned import ArticleCount, ClusterChange, ElasticityWorkload
from sensorbench.results.summary.claims import MeasuredFigure
from sensorbench.results.summary.envelope import OperationErrors, Summary
from sensorbench.results.summary.guarantees import RegisterGuarantees
from sensorbench.results.summary.part import SummaryPart
from sensorbench.results.summary.stress import OperationCounts


class RequestSets(SummaryPart):
    """The measurements, in their order: when each began, how long a set took, and the standard deviation of that."""

    time_s: list[float]
    duration_s: list[float]
    sd_s: list[float]


class RunEvent(SummaryPart):
    """What happened, on the run's clock."""

    time_s: float
    name: str


class SetLevel(SummaryPart):
    """How long sets take while nothing changes."""

    mean_s: float
    sd_s: float
    sets: int


class ScoreDefinitions(SummaryPart):
    """The score by other readings of its definition."""

    above_ramp: float = Field(description="What is below the ramp counts as nothing.")
    excess_deviation: float = Field(description="Only deviation beyond that of before counts.")
    above_level: float = Field(description="Area A is above the level before the change.")
    trapezoid: float = Field(description="Straight lines between the sets instead of splines.")
    minutes: float = Field(description="Time in minutes, set times in seconds.")


class ElasticityScore(SummaryPart):
    """The score (lower is better, 0 is perfect) and its parts: areas in s², levels and response times in s."""

    elasticity: float
    definitions: ScoreDefinitions
    area_a: float
    area_b: float
    bootstrap_at_s: float
    stable_at_s: float
    av1_s: float
    av2_s: float
    rt1_s: float
    rt2_s: float
    sets_between: int


class StableAgain(SummaryPart):
    """When the cluster was stable again by one rule, and its score by that."""

    stable_at_s: float | None = Field(description="On the run's clock; null if it was not stable in time.")
    total_s: float | None = Field(default=None, description="From the beginning of the change.")
    additional_s: float | None = Field(default=None, description="From the end of the change.")
    after: SetLevel | None = None
    score: ElasticityScore | None = None
    reason: str | None = Field(default=None, description="Why there is no score although it was stable.")


class Stabilisation(SummaryPart):
    """When the cluster was stable again, by three rules."""

    by_band: StableAgain = Field(description="The median of any five sets is near the level at the end.")
    by_rule: StableAgain = Field(description="Five sets in a row differ little: the rule of the paper.")
    in_band: StableAgain = Field(description="Five sets in a row differ little, and are near the level at the end.")


class ThroughputDip(SummaryPart):
    """What clients got done after the change began, second by second."""

    level_per_s: float
    lowest_per_s: float
    area: float = Field(description="Operations fewer than at the level before.")
    recovered_s: float | None = Field(description="Time to recover; null if it was never as good as before.")
    available_s: float = Field(description="After which time nothing failed any more.")


class AroundChange(SummaryPart):
    """A figure before the change, during it, and after it; null if that took no time."""

    before: float | None
    during: float | None
    after: float | None


class NodeLoad(SummaryPart):
    """What a node did."""

    requests: AroundChange = Field(description="Requests that it served, by its own count.")
    cpus: AroundChange | None = Field(description="CPUs that it kept busy; null if its processes are not known.")


class BeforeAndAfter(SummaryPart):
    """A gauge before the change and at the end of its run; null if it was not reported."""

    before: float | None
    after: float | None


class NodeData(SummaryPart):
    """What of the data a node holds."""

    parts: BeforeAndAfter = Field(description="Regions of tables, or token ranges.")
    bytes: BeforeAndAfter = Field(description="Tables and indexes on disk.")


class DataMoves(SummaryPart):
    """What of the data lay where, before and after a change."""

    nodes: dict[str, NodeData] = Field(description="By node, of those that report what they hold.")
    joined: list[str] = Field(description="Nodes that joined.")
    without_data: list[str] = Field(description="Nodes that joined and hold nothing at the end.")
    moved_parts: int | None = Field(description="Parts that nodes have more than before; null if they have none.")
    moved_bytes: float | None = Field(description="Bytes that the nodes which joined hold at the end.")
    moving_s: float | None = Field(
        description="From the first part that came to another node to the last, as seen once per second."
    )


class Transition(SummaryPart):
    """One change of the cluster, in a run of its own."""

    number: int
    status: Status
    reason: str | None
    failed: str | None = Field(description="Why the change failed; null if it did not.")
    change: ClusterChange
    nodes: int = Field(description="Nodes when the run began.")
    articles: int
    request_threads: int
    requests_per_set: int
    executions: int
    sets: RequestSets
    events: list[RunEvent]
    begun_at_s: float | None
    scored_from_s: float | None = Field(description="When the measurement began in which the change began.")
    transfer_s: float | None = Field(description="How long the change took, until all data were where they belong.")
    noticed_s: float | None = Field(description="After how long the other nodes knew that one was away; null if not known.")
    before: SetLevel | None
    stability: Stabilisation | None = Field(description="Null where nothing was changed, or the change was not done.")
    dip: ThroughputDip | None
    counts: OperationCounts | None = Field(description="Of all operations, those on registers included.")
    guarantees: RegisterGuarantees | None
    servers: dict[str, NodeLoad] = Field(description="By node, of those that report their requests.")
    data: DataMoves | None = Field(default=None, description="Where the data were; null if nodes do not report it.")

    @property
    def moved_nothing(self) -> bool:
        """Whether nodes joined and got no data: that is not growth of the cluster."""
        return self.data is not None and bool(self.data.without_data)


class Scalability(SummaryPart):
    """By how much longer sets take on more nodes, with data and load in proportion; 0 is perfect."""

    from_nodes: int
    to_nodes: int
    scalability: float


class LawEstimate(SummaryPart):
    """A parameter with its confidence interval (95%)."""

    value: float
    low: float
    high: float


class ScalabilityLaw(SummaryPart):
    """The universal scalability law (Gunther) of requests per second by nodes."""

    per_node: LawEstimate
    contention: LawEstimate
    coherency: LawEstimate
    peak_nodes: float | None
    reached_per_s: dict[str, float] = Field(description="Requests per second that were measured, by nodes.")


class ElasticityFigures(SummaryPart):
    """The transitions of a cluster, and how it scales."""

    operations: dict[str, str]
    workload: ElasticityWorkload
    dataset: ArticleCount
    changes: list[ClusterChange]
    hosts: list[str] = Field(
        default=[],
        description="Hosts that may have had its nodes; none where these were on this machine, or the cluster was there.",
    )
    load: Annotated[LoadReport, AsWritten] | None = Field(description="How loading went, as in load.json.")
    transitions: list[Transition]
    scalability: list[Scalability]
    law: ScalabilityLaw | None
    errors: list[OperationErrors]


class ElasticitySummary(Summary[ElasticityFigures]):
    """`summary.json` of changes of a cluster under load."""

    kind: Literal["elasticity"] = "elasticity"


class ComparedCluster(SummaryPart):
    """One of the results that are compared."""

    folder: str = Field(description="Where its results are, from the folder of the comparison.")
    title: str
    status: Status
    target: str
    command: list[str]


class ComparedTransition(SummaryPart):
    """One change of one of the clusters that are compared, on the clock of its run."""

    folder: str = Field(description="Where its results are, from the folder of the comparison.")
    target: str
    number: int
    change: ClusterChange
    nodes: int = Field(description="Nodes when the run began.")
    failed: str | None = None
    sets: RequestSets
    begun_at_s: float | None
    transfer_s: float | None
    noticed_s: float | None = None
    before: SetLevel | None
    stability: Stabilisation | None
    dip: ThroughputDip | None = None
    data: DataMoves | None = None
    lost_writes: int | None = Field(default=None, description="Null where no registers were written and read.")
    stale_reads: int | None = None


class StableCluster(SummaryPart):
    """How steady a cluster is to which nothing is done: windows of equally many sets, one after the other."""

    folder: str = Field(description="Where its results are, from the folder of the comparison.")
    target: str
    nodes: int
    window_sets: int = Field(description="Sets of a window.")
    time_s: list[float] = Field(description="When each window began, from the first on.")
    deviation: list[float] = Field(description="The standard deviation of the set times of each window over their mean.")
    spread: float | None = Field(description="The greatest deviation over the smallest; null if there are too few sets.")
    spread_by_chance: float | None = Field(description="The same of the same sets in any order: the median of many.")


class TransitionFigure(MeasuredFigure):
    """A figure of a database at a transition (0 is the first), with its interval over repetitions."""

    role: str
    transition: int
    figure: str


class ElasticityComparisonFigures(SummaryPart):
    """What was measured of several clusters."""

    works: list[ComparedCluster]
    roles: dict[str, str] = Field(description="The databases of the study: their titles, by role.")
    figures: list[TransitionFigure]
    transitions: list[ComparedTransition] = Field(
        default=[], description="Each change of each cluster, for its curve and scores."
    )
    stable: list[StableCluster] = Field(default=[], description="Clusters to which nothing was done.")
    parts_left: list[str] = Field(default=[], description="Parts of the study that were not measured yet; --resume does.")


class ElasticityComparisonSummary(Summary[ElasticityComparisonFigures]):
    """`summary.json` of several clusters side by side. What the envelope has of the environment is what they have in common."""

    kind: Literal["elasticity comparison"] = "elasticity comparison"
