"""What manifests say of machine, servers, data and load, by the keys that are written today; see `AsWritten`. Times are in s, sizes in bytes."""

from collections.abc import Mapping
from typing import NotRequired, Required, TypedDict


class TargetDescription(TypedDict, total=False):
    """What a database says that it is."""

    database: str
    version: str
    settings: dict[str, str]


class SizeReport(TypedDict, total=False):
    """What data take, in bytes; what else the database reports of it. `unknown`: why the total is not reported."""

    total_bytes: Required[int | None]
    unknown: str
    largest_partitions: dict[str, int]


class LoadedPart(TypedDict):
    """How long rows took, the batches that they came in, and how often the driver sent some again that the database was too busy for; not there
    in results of earlier versions, and where a tool loaded.
    """

    rows: int
    duration_s: float
    batches: int
    batch_s: dict[str, float]
    retries: NotRequired[int]


class LoadedByGenerator(LoadedPart):
    """What one of several load generators loaded of a table: `rows` are those that the database acknowledged, of the `rows_sent` that were its part.
    `start_s`: how long after the first one it began; `start_lag_s`: how long after the agreed moment.
    """

    number: int
    host: str
    pid: int
    rows_sent: int
    start_s: float
    start_lag_s: float


class LoadedTable(LoadedPart):
    """How one table was loaded; `generators`, where several shared that: then it took from the first start to the last end."""

    table: str
    prepare_s: float
    prepared_bytes: int
    generators: NotRequired[list[LoadedByGenerator]]


class EncodingCost(TypedDict):
    """Of a schema with batches: the encoding, how many readings are a batch and the bytes of one, and CPU time of a reading in ns."""

    encoding: str
    readings_a_batch: int
    bytes_a_reading: float
    encode_ns: float
    decode_ns: float


class LoadedRows(TypedDict):
    """How many rows were loaded, and what they take."""

    rows: int
    size: SizeReport


class LoaderReport(TypedDict):
    """A database's own tool that loaded: the name that options give it, the files that were made for it before, and in its own words why rows did
    not go in, by table.
    """

    name: str
    program: str
    version: str
    files_s: float
    file_bytes: int
    problems: list[str]


class SnapshotReport(TypedDict):
    """A snapshot that the server wrote when everything was loaded: its bytes, without those that it had before, and how long all of it took.
    `others_…`: what it had and took before, where others have data at the same server.
    """

    total_bytes: int
    took_s: float
    others_bytes: NotRequired[int]
    others_took_s: NotRequired[float]


class LoadProgress(TypedDict):
    """How many rows of all tables were in at a moment of a load: in s since 1970, and since the load began."""

    time_s: float
    elapsed_s: float
    rows: int


class BatchInterval(TypedDict):
    """Batches of a load that were acknowledged one after the other: when the last of them was, in s since the load began, and how many rows were in then.
    `lag_s`: how far the latest of them was behind its intended start. `batch_s`: how long they took, in s.
    """

    end_s: float
    rows: int
    batches: int
    lag_s: float
    batch_s: dict[str, float]


class LoadSizeSample(TypedDict):
    """What the data took, in bytes, at a moment of a load, in s since it began; and how many rows were in."""

    elapsed_s: float
    rows: int
    bytes: int


class LevelBasis(TypedDict):
    """What the default levels of a `key` of `--sweep` rest on, in a sentence, and the address of the recommendation where there is one."""

    key: str
    basis: str
    source: str | None


class BatchedLoad(TypedDict):
    """A load in batches of `batch_rows`, each acknowledged by itself, by some `writers`; at a `rate` in rows per second, or as fast as the database takes
    them. `recommended_rows`: what its vendor says; `default_levels`: of keys that were swept without levels; `retries`: how often a driver sent a
    part of a batch again. At a rate, response times count from the intended start of a batch, and `last_lag_s` says how far behind
    its own the last one began.
    """

    batch_rows: int
    writers: int
    rate: float | None
    recommended_rows: int | None
    batches: int
    batch_s: dict[str, float]
    intervals: list[BatchInterval]
    sizes: list[LoadSizeSample]
    retries: NotRequired[int]
    default_levels: NotRequired[list[LevelBasis]]
    response_s: NotRequired[dict[str, float]]
    max_lag_s: NotRequired[float]
    last_lag_s: NotRequired[float]


class LoadMemory(TypedDict):
    """Memory while a variant was loaded and settled, in bytes: of its server (`of` is `server`: all its processes), or of this process, which the
    database is a part of (`client`).
    """

    of: str
    before_bytes: int
    peak_bytes: int
    end_bytes: int


class LoadReport(LoadedRows):
    """`load.json`: how a variant was loaded. `rows` are those that are there, `rows_sent` those that went in where some were lost.
    `values_per_reading`: the metrics of a wide row, in the mean, else 1. `undivided`: why several load generators did not share it.
    """

    variant: str
    tables: list[LoadedTable]
    readings: int
    load_s: float
    settle_s: float
    values_per_reading: int | float
    readings_per_s: float | None
    settled_readings_per_s: float | None
    description: TargetDescription
    encoding: NotRequired[EncodingCost]
    loader: NotRequired[LoaderReport]
    rows_sent: NotRequired[int]
    snapshot: NotRequired[SnapshotReport]
    progress: NotRequired[list[LoadProgress]]
    undivided: NotRequired[str]
    memory: NotRequired[LoadMemory]
    batched: NotRequired[BatchedLoad]
    # SHA-256 of the schema file that was run, in hexadecimal.
    schema_sha256: NotRequired[str]


class DescribedServer(TypedDict):
    """A server of the lab, and how its limits are kept."""

    instance: str
    database: str
    version: str
    nodes: int
    replicas: int
    settings: dict[str, str]
    cpus: list[int] | None
    cpus_by: str | None
    memory_bytes: int | None
    memory_by: str | None
    server_user: str | None
    # The instance with whose data its nodes started; null, or not there, where they started empty.
    data_of: NotRequired[str | None]
    # The host of each of its nodes; none, or not there, where they were on the client's machine.
    hosts: NotRequired[list[str]]


class DescribedSpark(TypedDict, total=False):
    """The Spark that executes: the user's, which has a URL, or one that was started for the benchmark."""

    url: str
    version: str
    nodes: int
    settings: dict[str, str]
    started: Required[bool]


class DescribedClient(TypedDict):
    """What the client could do when a benchmark began, on a database that does nothing: how late its timer was at the 99th percentile, and
    operations per second on one thread.
    """

    timer_lag_s: float
    null_ops_per_s: float


class Environment(TypedDict, total=False):
    """What could change a figure and is not in the plan. `servers` are by the URL that targets have; ceilings are operations per second."""

    sensorbench: str
    python: str
    system: str
    kernel: str
    processor: str
    processors: int | None
    processors_allowed: int
    memory_bytes: int
    memory_limit_bytes: int | None
    clock_source: str | None
    frequency_governor: str | None
    virtual_machine: bool
    load_before: list[float]
    file_system: str | None
    disk_free_bytes: int
    client: DescribedClient
    driver_ceilings_per_s: dict[str, float | None]
    driver_ceiling_per_s: float | None
    servers: dict[str, DescribedServer]
    spark: DescribedSpark


class DescribedRelation(TypedDict):
    """A relation of a dataset, as far as results are read by it."""

    rows: int


class DescribedDataset(TypedDict):
    """The dataset of a comparison, as `data describe` says it, and which operations are asked of it."""

    name: str
    title: str
    generated: bool
    source: str
    license: str
    how_made: str
    notes: list[str]
    relations: dict[str, DescribedRelation]
    operations: str
    fingerprint: NotRequired[str]
    scale: NotRequired[float]
    # ISO 8601; null if readings have no time.
    first_time: NotRequired[str | None]
    last_time: NotRequired[str | None]
    # Null where readings do not come at a usual interval.
    interval_s: NotRequired[float]


class DescribedSchedule(TypedDict):
    """When operations come."""

    concurrency: int | None
    rate: float | None
    arrival: str


class DescribedFreshness(TypedDict):
    """Markers beside the load: how many per second, how often each is read, and how long."""

    rate: float
    poll: str
    within: str
    watched: int


class DescribedRetention(TypedDict):
    """Readings that expire in accelerated time: how long their times are, how long they stay, and how often something is done about it."""

    span: str
    keep: str
    every: str
    rollup: Mapping[str, str | None] | None
    sample: str


class ComparisonWorkload(TypedDict):
    """The workload of a comparison."""

    mix: dict[str, float]
    schedule: DescribedSchedule
    # A number is one of operations, in results of earlier versions.
    warmup: str | int
    duration: str | None
    operations: int | None
    repetitions: int
    timeout: str
    seed: int
    answers: NotRequired[str]
    delivery: NotRequired[Mapping[str, object] | None]
    freshness: NotRequired[DescribedFreshness | None]
    retention: NotRequired[DescribedRetention | None]


class DescribedWork(TypedDict):
    """What a stress run asks, whatever the rate: the data in words, how many records there are, shares of the operations, and how records
    are chosen.
    """

    data: str
    records: int
    mix: dict[str, float]
    choice: str | None


class LoadedWork(DescribedWork):
    """The same, and how operations come."""

    concurrency: int
    threads: int
    timeout_s: float
    arrival: str
    warmup_s: float


class StressWorkload(LoadedWork):
    """The same, with what else decides a stress run."""

    pin: bool
    seed: int
    # How many load generators shared it; results of earlier versions have one.
    generators: NotRequired[int]
    # Their hosts, where they are not processes of this machine.
    hosts: NotRequired[list[str]]


class FactorsWorkload(TypedDict):
    """What is asked of each cell of a study of factors."""

    records: int
    fields: int
    field_bytes: int
    distribution: str
    concurrency: int
    top_per_s: float | None
