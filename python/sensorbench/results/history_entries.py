"""What a history of results keeps of each, and what is read out of it: series of figures and their changes."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from sensorbench.results.summary.part import SummaryPart

# What a figure counts: seconds, things per second, bytes, or a share of something.
Unit = Literal["s", "per s", "bytes", "share"]
# How figures of several machines come together: a series for each machine, or one of figures as multiples of what the client could do there.
Machines = Literal["split", "normalised"]
Direction = Literal["slower", "faster", "more", "less"]
# What may differ between two results of one experiment, in the order in which it is named.
VERSIONED = ("label", "database_version", "schema_digest", "server_settings", "sensorbench", "kernel", "machine")


class DoctorFigures(SummaryPart):
    """How fit to measure the machine was when a result was measured, by the doctor's figures; null if nobody knows."""

    timer_lag_s: float | None = Field(
        default=None, description="How late the client's timer was, at the 99th percentile, on a database that does nothing."
    )
    null_ops_per_s: float | None = Field(default=None, description="What one thread of the client did on such a database.")
    aa_variation: float | None = Field(
        default=None, description="Coefficient of variation between repetitions of the same variant (A/A), over all operations."
    )

    def with_known(self, other: "DoctorFigures") -> "DoctorFigures":
        """These figures, with those that another knows in their place."""
        return self.model_copy(update=other.model_dump(exclude_none=True))


class HistoryFigure(SummaryPart):
    """A figure of an operation at a variant; `low` and `high` are null if no interval is known."""

    variant: str
    operation: str
    metric: str
    unit: Unit
    higher_is_better: bool
    value: float
    low: float | None
    high: float | None
    confidence: float | None = None
    runs: int
    is_main: bool = Field(description="Whether results of this experiment are ranked by it.")


class HistoryHistogram(SummaryPart):
    """The response times of one run, in ns, and how often each was counted."""

    variant: str
    operation: str
    repetition: int
    values_ns: list[int]
    counts: list[int]


class HistoryVariant(SummaryPart):
    """A variant as it was measured."""

    id: str
    target: str
    database: str
    database_version: str
    schema_name: str
    schema_digest: str
    parameters: dict[str, str]
    distinct: str = Field(description="What distinguishes it from variants of the same target, schema and parameters.")
    server_settings: dict[str, str]
    no_op_per_s: float | None = Field(description="What the client could do with this driver when the result was measured.")


class HistoryResult(SummaryPart):
    """A result that goes into a history."""

    id: str = Field(description="SHA-256 of its content.")
    folder: str
    kind: str
    title: str
    experiment: str = Field(description="SHA-256 of what was measured: dataset, operations and workload.")
    name: str = Field(description="What its experiment calls itself.")
    measured: datetime
    label: str = Field(description="What the user calls the version that was measured; empty if nothing was said.")
    machine: str = Field(description="Fingerprint of the machine.")
    machine_words: str
    sensorbench: str
    kernel: str
    doctor: DoctorFigures
    variants: list[HistoryVariant]
    figures: list[HistoryFigure]
    histograms: list[HistoryHistogram]


class StoredFigure(DoctorFigures):
    """A figure of a history with its result and variant: a row of the table that `history export` writes."""

    experiment: str
    name: str
    variant: str = Field(description="What the variant is called in series.")
    operation: str
    metric: str
    unit: Unit
    higher_is_better: bool
    is_main: bool
    value: float
    low: float | None
    high: float | None
    confidence: float | None
    runs: int
    measured: datetime
    label: str
    database: str
    database_version: str
    schema_name: str
    schema_digest: str
    server_settings: str = Field(description="As JSON.")
    no_op_per_s: float | None
    machine: str
    machine_words: str
    sensorbench: str
    kernel: str
    folder: str
    result: str

    @property
    def doctor(self) -> DoctorFigures:
        """The doctor's figures of that day."""
        return DoctorFigures.model_validate({name: getattr(self, name) for name in DoctorFigures.model_fields})


class ListedResult(SummaryPart):
    """A result of a history, without its figures."""

    id: str
    folder: str
    kind: str
    title: str
    experiment: str
    name: str
    measured: datetime
    added: datetime
    label: str
    machine: str
    machine_words: str
    figures: int


class HistoryPoint(SummaryPart):
    """One value of a series, and the versions that it was measured with."""

    result: str
    folder: str
    measured: datetime
    value: float
    low: float | None
    high: float | None
    runs: int
    doctor: DoctorFigures
    versions: dict[str, str] = Field(description="By the words of VERSIONED.")


class VersionChange(SummaryPart):
    """What was another version after a change than before it, or a figure of the doctor that was far from what it was."""

    what: str
    before: str
    after: str


class HistoryChange(SummaryPart):
    """A change of a series: the first point after it, how large it is, and what else changed there."""

    place: int = Field(description="Number of the first point after it, from 0.")
    measured: datetime
    direction: Direction
    is_worse: bool
    ratio: float = Field(description="Level after it, divided by the level before it.")
    low: float | None
    high: float | None
    before: int = Field(description="Points before it, until the change before that.")
    after: int = Field(description="Points after it, until the next change.")
    versions: list[VersionChange]


class HistorySeries(SummaryPart):
    """A figure of an operation at a variant over time."""

    experiment: str
    name: str
    variant: str
    operation: str
    metric: str
    unit: Unit
    higher_is_better: bool
    machine: str = Field(description="Fingerprint of the machine; empty if figures of several are normalised.")
    machine_words: str
    points: list[HistoryPoint]
    changes: list[HistoryChange]
    variation: float | None = Field(
        description="Coefficient of variation between its points, within the levels; null with fewer than three."
    )
    detectable: float | None = Field(
        description="The smallest step, as a share, that simulation finds within five points in nine of ten cases at this variation; null if none is known."
    )
