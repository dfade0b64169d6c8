"""What the engine is requested to do, as its JSON has it (`crates/sensorbench-engine/src/plan.rs`), and what manifests keep of it."""

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict, cast


class PlannedSegment(TypedDict):
    """A stretch of a schedule: a rate, or one that changes evenly to another."""

    from_per_s: float
    to_per_s: NotRequired[float | None]
    length_s: NotRequired[float | None]


class Pace(TypedDict):
    """When operations of an open loop come."""

    arrival: NotRequired[str]
    segments: list[PlannedSegment]


class Numbering(TypedDict):
    """How the operations of a phase are numbered for writes; `before`: how many operations each phase before has."""

    offset: int
    stride: int
    before: NotRequired[list[int]]


class PlannedPhase(TypedDict):
    """A phase of a run; it ends after this many operations, or after this many seconds. Without a pace it is a closed loop."""

    name: str
    operations: NotRequired[int | None]
    duration_s: NotRequired[float | None]
    pace: NotRequired[Pace | None]
    numbering: NotRequired[Numbering]


class ParameterOrigin(TypedDict):
    """Where a parameter of an operation comes from: numbers of the parameter source and of its column."""

    source: int
    column: int
    each: NotRequired[bool]


class PlannedDisorder(TypedDict, total=False):
    """How readings come out of order: one of these, with their numbers; delays are in readings."""

    poisson: Mapping[str, float]
    ratio: Mapping[str, float]
    batch: Mapping[str, float]


class PlannedDuplicates(TypedDict):
    """The share of writes that send a reading again, and how many new readings ago it was first sent, at most."""

    share: float
    window: int


class PlannedGaps(TypedDict):
    """The share of readings that are missing, and how many in a row."""

    share: float
    length: int


class DeliveryModel(TypedDict, total=False):
    """Which reading the n-th write has."""

    disorder: PlannedDisorder
    duplicates: PlannedDuplicates
    gaps: PlannedGaps


class PlannedChurn(TypedDict):
    """Series that are replaced: the parameter with this number grows by `step` each time; `time` is that of their time, `share` of a period."""

    parameter: int
    time: int
    start_us: int
    period_us: int
    share: float
    step: int


class PlannedDelivery(TypedDict):
    """How writes deliver their readings; `renewed`: numbers of the parameters that change in a reading which is sent again."""

    model: DeliveryModel
    renewed: list[int]
    churn: PlannedChurn | None


class PlannedOperation(TypedDict):
    """An operation: its share of the mix, how a schema asks it, where its parameters come from, what the client does besides, and how
    readings are delivered that do not come as they are.
    """

    weight: float
    operation: Mapping[str, Any]
    parameters: NotRequired[Sequence[ParameterOrigin]]
    client_steps: NotRequired[Mapping[str, Any]]
    delivery: NotRequired[PlannedDelivery]


class RowsSource(TypedDict):
    """Rows of the table with this number."""

    table: int
    choice: NotRequired[str | Mapping[str, object]]


class PlannedNumber(TypedDict):
    """A column of numbers, each used once."""

    type: str
    start: int
    step: int


class NumbersSource(TypedDict):
    """Numbers, counted for each row of another parameter source where there is one."""

    columns: list[PlannedNumber]
    per: int | None


class PlannedSpan(TypedDict):
    """A span of time that ends with a write: its time is that parameter of it, its length from `min` to `max` units."""

    time: int
    unit_us: int
    min: int
    max: int


class WrittenSource(TypedDict):
    """What was written earlier by the operation with this number."""

    operation: int
    window: int
    exponent: float | None
    span: PlannedSpan | None


class PlannedSource(TypedDict, total=False):
    """A parameter source: one of these."""

    rows: RowsSource
    numbers: NumbersSource
    written: WrittenSource
    records: Mapping[str, object]
    new_records: Mapping[str, object]
    texts: Sequence[Mapping[str, object]]


class OperationsPlan(TypedDict):
    """What is asked, whatever the load: operations in their order, and what they take their parameters from."""

    seed: int
    operations: list[PlannedOperation]
    order: NotRequired[str]
    parameter_sources: NotRequired[list[PlannedSource]]


class PlannedShare(TypedDict):
    """What of a run a load generator has: its number, from 0, of how many, and the zero of the clock that they share (ns of CLOCK_MONOTONIC)."""

    number: int
    of: int
    clock_origin_ns: int


class EnginePlan(OperationsPlan):
    """A run."""

    phases: list[PlannedPhase]
    concurrency: int
    timeout_s: float
    threads: NotRequired[int]
    spin: NotRequired[bool]
    log_every: NotRequired[int | None]
    answers_every: NotRequired[int | None]
    answers_whole: NotRequired[int]


class SharedPlan(EnginePlan):
    """A run, and which share of it one of several load generators has."""

    share: PlannedShare


class HeldStep(TypedDict):
    """A rate that was held, as the manifest of its run has it."""

    name: str
    rate_per_s: float
    held_s: float
    ramp_s: float


class KeptRetention(TypedDict):
    """How readings of a run expire and are rolled up, in the words of the schema."""

    expires_by: str
    rolls_up_by: str | None
    # Without a statement of the client.
    is_kept_by_database: bool


class KeptPlan(TypedDict, total=False):
    """What the manifest of a run keeps of its plan; and what benchmarks say of it besides: the steps of stress, the change of a cluster."""

    phases: list[PlannedPhase]
    concurrency: int
    threads: int
    timeout_s: float
    spin: bool
    log_every: int | None
    answers_every: int | None
    answers_whole: int
    # How many load generators share the run, where there are several; threads are those of each.
    generators: int
    # Their hosts, where they are not processes of this machine.
    hosts: list[str]
    steps: list[HeldStep]
    change: Mapping[str, object]
    retention: KeptRetention
    nodes: int
    articles: int
    request_threads: int
    requests_per_set: int
    executions: int
    warmup_s: float
    # Measurements; of earlier versions.
    warm_up: int


def is_shared(plan: KeptPlan) -> bool:
    """Whether load generators shared a run: then the operations that started are not all those before a number."""
    return "generators" in plan


# The operations themselves are long, and follow from schema and seed.
_KEPT = ("phases", "concurrency", "threads", "timeout_s", "spin", "log_every", "answers_every", "answers_whole")


def kept_of(plan: EnginePlan) -> KeptPlan:
    """What a manifest keeps of a plan, as far as it is there."""
    return cast("KeptPlan", {key: value for key, value in plan.items() if key in _KEPT})
