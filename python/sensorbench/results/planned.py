"""What is to be done in a benchmark of each kind: the part of its manifest that is the kind's own. Times are in s, sizes in bytes."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AliasChoices, Field

from sensorbench.results.as_written import AsWritten, PresentKeys
from sensorbench.results.blocks import DataBetweenBlocks, PlannedBlocks
from sensorbench.results.described import (
    ComparisonWorkload,
    DescribedDataset,
    EncodingCost,
    FactorsWorkload,
    LoadedWork,
    StressWorkload,
)
from sensorbench.results.estimate import Budget
from sensorbench.results.manifest import BaseManifest
from sensorbench.results.summary.part import SummaryPart


class OperationManifest(SummaryPart):
    """What is asked, in words."""

    title: str
    question: str
    writes: bool
    instance_of: str | None = Field(default=None, description="The operation that it is an instance of.")
    instance: str | None = None
    share: float | None = Field(default=None, description="The share of all rows that an instance is about.")


class ServerResources(SummaryPart):
    """What each server that was started for a benchmark may use, all its nodes together: the same for all of them."""

    memory_bytes: int | None = Field(default=None, description="Memory; caches and heaps are sized to it.")
    cpus: int | None = None


class PlannedComparison(SummaryPart):
    """Variants that are compared under one workload, in an experiment of a user's or in a study."""

    name: str
    source: Literal["experiment", "study"]
    part: str = Field(default="", description="The part of a study that it is, where the study has parts.")
    dataset: Annotated[DescribedDataset, AsWritten]
    operations: dict[str, OperationManifest]
    workload: Annotated[ComparisonWorkload, AsWritten, PresentKeys]
    metric: str
    include_outdated: bool = Field(
        default=False, description="Whether outdated versions of databases are ranked against current ones."
    )
    resources: ServerResources = Field(default=ServerResources(), description="What each server that was started may use.")
    generators: int = Field(default=1, description="How many load generators shared each run.")
    hosts: list[str] = Field(
        default=[], description="Their hosts, as they were named; none where they are processes of the controller's machine."
    )
    refused: dict[str, str] = Field(
        default={}, description="Variants that were not run because they make no sense on this dataset, with why not."
    )
    one_at_a_time: PlannedBlocks | None = Field(
        default=None, description="How variants are measured one at a time; null if all their servers are up."
    )
    data_between_blocks: DataBetweenBlocks | None = Field(
        default=None, description="Where data are kept between the blocks of variants that are measured one at a time."
    )
    order: list[list[str]] = Field(
        default=[],
        description="For each repetition, or each round of blocks, the variants in the order in which they ran.",
    )
    budget: Budget | None = Field(default=None, description="What a budget of time was turned into, where there was one.")
    max_load_s: float | None = Field(
        default=None, description="How long the rows of a variant could take to go in; null if there was no limit."
    )
    encodings: list[Annotated[EncodingCost, AsWritten]] = Field(
        default=[], description="What the readings of one sensor take as batches, by encoding, where that was wanted."
    )
    stopped_after: int | None = Field(
        default=None, description="Repetitions after which a gate had decided, and made no others; null if all were made."
    )


class ComparisonManifest(BaseManifest[PlannedComparison]):
    """`manifest.json` of a comparison."""

    kind: Literal["comparison"] = "comparison"


class StressObjective(SummaryPart):
    """The percentile of the response time that may not be above a limit."""

    percentile: str
    limit_s: float


class StressSearch(SummaryPart):
    """How the highest rate was searched: `precision` is the ratio of both ends less 1, `confirm` the trials of each."""

    first_per_s: float
    precision: float
    confirm: int
    min_per_s: float
    max_per_s: float | None
    held_s: float
    ramp_s: float


class PlannedStress(SummaryPart):
    """One target under rates that rise, or are searched."""

    operations: dict[str, str] = Field(description="What each operation does, in words, by name.")
    workload: Annotated[StressWorkload, AsWritten, PresentKeys]
    objective: StressObjective | None = None
    search: StressSearch | None = Field(default=None, description="How the highest rate was searched, where it was.")


class StressManifest(BaseManifest[PlannedStress]):
    """`manifest.json` of a stress run."""

    kind: Literal["stress"] = "stress"


class ArticleCount(SummaryPart):
    """The dataset, and how many articles it has."""

    title: str
    rows: int


class ClusterChange(SummaryPart):
    """What is done to the cluster."""

    kind: str
    title: str
    count: int = Field(description="How many nodes it is about.")
    away_s: float = Field(description="How long the node is away or disturbed, for the kinds that are over after a time.")
    how: str = Field(description="What follows @ in the option; empty if nothing does.")
    costs: str = Field(default="", description="What the cluster gives up where all nodes join at once.")


class ElasticityWorkload(SummaryPart):
    """The load, and how long the parts of a transition are, in measurements where no unit is said; `executions` request sets are a measurement."""

    requests_per_thread: int = Field(description="Requests per thread in each set.")
    threads_per_node: int
    executions: int
    rate_per_node: float | None = Field(description="Requests per second for each node in an open loop; null in a closed loop.")
    timeout_s: float
    warmup_s: float | None = Field(
        default=None, description="How long measurements do not count; null in results of earlier versions, which counted them."
    )
    warmup_measurements: int | None = Field(
        default=None,
        description="Measurements that do not count, in results of earlier versions.",
        validation_alias=AliasChoices("warmup_measurements", "warm_up"),
    )
    before: int
    after: int
    max_s: float = Field(description="How long to wait for stability after the change.")
    mix: dict[str, float]
    grows: bool = Field(description="Whether data and load grow with the nodes.")
    copies: int = Field(default=1, description="How often the dataset was loaded at the start, each time under new ids.")
    node_memory_bytes: int | None = Field(
        default=None, description="Memory of one node at the start; null if it was neither limited nor said."
    )
    node_idle_bytes: int | None = Field(
        default=None,
        description="What of that the processes of a node take with its settings, so that data have the rest; null if it is not known.",
    )
    seed: int
    generators: int = Field(default=1, description="How many load generators shared the requests.")
    hosts: list[str] = Field(
        default=[], description="The hosts of load generators; none where they were processes of the client's machine."
    )


class PlannedElasticity(SummaryPart):
    """One cluster that is changed under load, one change a run."""

    operations: dict[str, str] = Field(description="What each operation does, in words, by name.")
    workload: ElasticityWorkload
    dataset: ArticleCount
    changes: list[ClusterChange] = Field(description="What was to be done to the cluster, in this order.")
    hosts: list[str] = Field(
        default=[],
        description="Hosts that may have had its nodes; none where these were on this machine, or the cluster was there.",
    )


class ElasticityManifest(BaseManifest[PlannedElasticity]):
    """`manifest.json` of changes of a cluster."""

    kind: Literal["elasticity"] = "elasticity"


class TuneGoal(SummaryPart):
    """The figure that is to become better, as on the command line, and what it is: s, bytes, or operations per second (`count`)."""

    text: str
    kind: Literal["duration_s", "bytes", "count"]
    smaller_is_better: bool


class SearchedSetting(SummaryPart):
    """The values of a server setting that the search chose from: `values`, or numbers from `low` to `high`."""

    about: str
    values: list[str | int | float] | None = None
    low: int | float | None = None
    high: int | float | None = None
    step: int | float | None = None
    log: bool = False
    line: str = Field(default="", description="How it is written where it is not a line of the server's file.")
    unit: str = ""
    durability: bool = Field(default=False, description="It trades durability for speed; the first of its values is the safest.")


class SearchSpace(SummaryPart):
    """The server settings that were searched, and how they are written into the server's own file."""

    database: str
    file: str
    line: str = "{key} = {value}"
    settings: dict[str, SearchedSetting]


class TuneBudget(SummaryPart):
    """How much the search could take, without the confirmation; null if that was not limited."""

    runs: int | None
    time_s: float | None


class PlannedTune(SummaryPart):
    """A search for better settings of a server."""

    operations: dict[str, str] = Field(description="What each operation does, in words, by name.")
    workload: Annotated[LoadedWork, AsWritten, PresentKeys]
    goal: TuneGoal = Field(description="The figure that is to become better.")
    space: SearchSpace = Field(description="Which settings may take which values.")
    left_out: list[str] = Field(description="Settings of the space that trade durability for speed, and were left out for that.")
    start: dict[str, str] = Field(description="The settings that count as the default; all others are left to the server.")
    seed: int
    budget: TuneBudget
    pairs: int = Field(description="Pairs of runs of the confirmation.")
    cluster: list[str] | None = Field(
        default=None, description="Nodes of a cluster of the user's; null if the lab started the servers."
    )
    hosts: list[str] = Field(
        default=[], description="Hosts that nodes of servers were placed on; none where these were on this machine."
    )


class TuneManifest(BaseManifest[PlannedTune]):
    """`manifest.json` of a search for server settings."""

    kind: Literal["tune"] = "tune"


class PlannedCell(SummaryPart):
    """A cell of a study of factors: a configuration under a load, and which levels (part, level) it is."""

    load: str
    settings: dict[str, str] = Field(description="All settings, as in the server's own file.")
    apart: bool = Field(description="Measured after all others, interleaved with those that are, too.")
    levels: list[tuple[str, str]]


class PlannedFactors(SummaryPart):
    """Levels of server settings, each on fresh servers, under the same loads."""

    name: str
    target: str
    nodes: int | None
    workload: Annotated[FactorsWorkload, AsWritten]
    parts: list[str]
    cells: dict[str, PlannedCell]
    scale: float
    sizes: dict[str, float] = Field(description="By which factor each setting that is a size was multiplied.")
    step_s: float
    rounds: int
    looks: list[int] = Field(
        default=[],
        description="After how many rounds claims were judged, so that what they need no more was measured no more; none: all rounds were made.",
    )
    seed: int
    reached: dict[str, float] = Field(default={}, description="Reads and writes per second that the default takes, each alone.")
    rates: dict[str, list[float]] = Field(default={}, description="The rates of each load, operations per second.")
    shares_records: bool = Field(
        default=False,
        description="Whether servers of cells that have the same files start with records that were added once in each round.",
    )
    took_s: dict[str, list[float]] = Field(
        default={},
        description="How long finding the rates, adding records that are shared, and each measurement under a load took (s), by which the rest is planned.",
    )
    budget_s: float | None = Field(default=None, description="The time after which nothing is begun; null: there is none.")
    left_out: dict[str, str] = Field(default={}, description="Parts and levels that a budget left out, each with why.")
    cluster: list[str] | None = Field(
        default=None, description="Nodes of a cluster of the user's; null if the lab started the servers."
    )


class FactorsManifest(BaseManifest[PlannedFactors]):
    """`manifest.json` of a study of factors."""

    kind: Literal["factors"] = "factors"


class ArticlesOfJob(SummaryPart):
    """The dataset."""

    name: str
    title: str
    articles: int
    scale: float
    generated: bool


class SystemOfJob(SummaryPart):
    """Where articles lie, and how they are reached."""

    database: str
    connector: str
    splits: str = Field(description="What a split of a table is.")
    native_job: str | None = Field(description="How the database does the job itself; null if it cannot.")
    schema_summary: str | None = Field(default=None, description="Null for files.")
    grows: bool = Field(default=False, description="Whether it gets as many nodes as Spark has workers.")
    why_fixed: str | None = Field(default=None, description="Why it does not, where databases grow.")


class WantedWord(SummaryPart):
    """A word that is looked for, and what DuckDB finds of it."""

    kind: str
    word: str
    occurrences: int
    articles: int


class MapReduceWorkload(SummaryPart):
    """What each worker has, and into what work is split."""

    cores_per_worker: int
    memory_per_worker: str
    splits: int
    articles_per_part: int
    grows: bool = Field(default=False, description="Whether databases grow with Spark, where they can.")


class PlannedMapReduce(SummaryPart):
    """One job over the same articles in several systems, with one worker and more."""

    name: str = "mapreduce"
    workload: MapReduceWorkload
    dataset: ArticlesOfJob
    systems: dict[str, SystemOfJob]
    words: list[WantedWord] = Field(description="What is looked for, each by applications of its own.")
    workers: list[int] = Field(description="Numbers of Spark's workers, and of the nodes of databases that grow with it.")
    executions: int = Field(description="Of each cell, for each word.")
    budget_s: float | None = Field(default=None, description="The time for which executions and scale were chosen.")
    hosts: list[str] = Field(
        default=[], description="Hosts that nodes of databases were placed on; none where these were on this machine."
    )


class MapReduceManifest(BaseManifest[PlannedMapReduce]):
    """`manifest.json` of the MapReduce study."""

    kind: Literal["mapreduce"] = "mapreduce"


class ToolOperation(SummaryPart):
    """An operation of the engine, in the words of the other tool."""

    kind: str = Field(description="What the other tool calls it; several operations may be of one kind.")
    rows: int | None = Field(default=None, description="Rows that it writes; null if rows are counted.")
    partitions: float | None = Field(
        default=None, description="Partitions that it writes to, on average; null if answers say it, or there are none."
    )


class PlannedOfTool(SummaryPart):
    """What other tools' workloads have in common."""

    operations: dict[str, ToolOperation]
    seed: int
    timeout_s: float


class PlannedYcsb(PlannedOfTool):
    """A phase of a core workload."""

    phase: Literal["load", "run"]
    properties: dict[str, bool | int | float | str | None] = Field(description="By YCSB's keys, with _ for a dot.")
    ycsb_zipfian: bool


class YcsbManifest(BaseManifest[PlannedYcsb]):
    """`manifest.json` of a phase of YCSB."""

    kind: Literal["ycsb"] = "ycsb"


class Population(SummaryPart):
    """Numbers of partitions: from `min` to `max` in turn (seq), or by a distribution as cassandra-stress has it."""

    kind: str
    min: int
    max: int
    shape: float
    quantas: int
    mean: float
    deviation: float
    inverted: bool


class PlannedCassandraStress(PlannedOfTool):
    """Operations of a profile. Times are how long the run was to be, rates operations per second."""

    profile: str
    weights: dict[str, float] = Field(description="How often each of the profile's operations comes.")
    population: Population = Field(description="The partitions that it is about.")
    count: int | None = Field(description="How many operations were to be carried out; null if a time was given.")
    duration_s: float | None
    rate_per_s: float | None
    concurrency: int
    consistency: str


class CassandraStressManifest(BaseManifest[PlannedCassandraStress]):
    """`manifest.json` of a run of a profile of cassandra-stress."""

    kind: Literal["cassandra-stress"] = "cassandra-stress"


class PlannedTsbs(SummaryPart):
    """A load or queries of TSBS (Time Series Benchmark Suite), by the names of its options; times are UTC."""

    phase: Literal["load", "run"]
    use_case: str
    scale: int = Field(description="Number of hosts or trucks.")
    timestamp_start: datetime
    timestamp_end: datetime = Field(description="End of the data (exclusive).")
    log_interval_s: float
    seed: int
    dataset: str = Field(description="Our name of the data.")
    rows: int = Field(description="Rows of the data: of cpu-only for each host and time, of iot those that arrive.")
    metrics: int = Field(description="Values of all rows.")
    workers: int = Field(description="Batches that are sent, or queries that are executed, at the same time.")
    batch_size: int | None = Field(default=None, description="Rows of a batch, at most; null if nothing is loaded.")
    queries: list[str] = Field(default=[], description="Kinds of queries, in the order in which they were executed.")
    max_queries: int | None = Field(default=None, description="How many queries of each kind; null if something is loaded.")
    max_rps: float | None = Field(
        default=None, description="Queries per second that come whether or not others are answered; null in a closed loop."
    )
    inexpressible: dict[str, dict[str, str]] = Field(
        default={}, description="Queries that the schema of a variant cannot express, by variant, with why not."
    )
    whole_answers: dict[str, int] = Field(
        default={},
        description="Rows of all answers together if each is a whole fleet, by query; of queries that should select trucks of it.",
    )
    caveats: dict[str, list[str]] = Field(
        default={}, description="What figures of a query do not say, here or in what others published of TSBS, by query."
    )


class TsbsManifest(BaseManifest[PlannedTsbs]):
    """`manifest.json` of a load or of queries of TSBS."""

    kind: Literal["tsbs"] = "tsbs"


class PlannedSeries(SummaryPart):
    """The comparisons of a study of several datasets or parts."""

    name: str
    of: Literal["datasets", "parts"]
    parts: dict[str, str] = Field(
        description="The folders of the comparisons, by the name of their dataset or of their part of the study, in order."
    )
    budget: Budget | None = Field(default=None, description="What a budget of time was turned into, where there was one.")
    left_out: dict[str, str] = Field(default={}, description="Those of the comparisons that were not begun, each with why.")


class SeriesManifest(BaseManifest[PlannedSeries]):
    """`manifest.json` of a study of several datasets or parts."""

    kind: Literal["series"] = "series"
