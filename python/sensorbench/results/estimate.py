"""What a benchmark would do, and what it would take: printed by --dry-run, and stored with results that a budget was chosen for."""

from typing import Literal

from pydantic import Field

from sensorbench.results.blocks import DataBetweenBlocks
from sensorbench.results.summary.part import SummaryPart

Place = Literal["embedded", "lab", "yours"]


class VariantEstimate(SummaryPart):
    """One variant: what it loads and executes, and what that takes. Null is what is not known without a pilot."""

    variant: str
    place: Place = Field(
        description="Where it runs: embedded, at a server that the lab starts, or at a server of yours, which a dry run does not touch."
    )
    rows: int | None = Field(default=None, description="Rows of all its tables.")
    operations: int | None = Field(default=None, description="Operations of a run; null if a run ends by time.")
    repetitions: int
    expected: int | None = Field(default=None, description="Operations of a run that end before the time of a run is over.")
    load_s: float | None = Field(default=None, description="Loading and settling.")
    run_s: float | None = Field(default=None, description="A run, with its warm-up.")
    disk_bytes: int | None = None
    memory_bytes: int | None = Field(default=None, description="Of databases that keep their data in memory.")
    measured_as: str | None = Field(default=None, description="The variant of the pilot whose costs were used; null: its own.")
    start_s: float | None = Field(
        default=None, description="Starting its server, which each block does where variants are measured one at a time."
    )
    server_bytes: int | None = Field(
        default=None, description="Memory of its server, which is one of the lab's, with hardly any data."
    )
    loads: int = Field(default=1, description="How often it is loaded.")
    refused: str | None = Field(default=None, description="Why it would not fit, with the arithmetic.")


class PartEstimate(SummaryPart):
    """One comparison, or the one run of another kind."""

    name: str = Field(default="", description="The part of a study or its dataset; empty if there is but one.")
    data: str = Field(description="What is loaded, in words.")
    readings: int | None = None
    variants: list[VariantEstimate]
    order: list[list[str]] = Field(
        default=[], description="For each repetition, or each round of blocks, the variants in the order in which they run."
    )
    data_between_blocks: DataBetweenBlocks | None = Field(
        default=None, description="Where data are kept between blocks, where variants are measured one at a time."
    )
    prepare_s: float | None = Field(default=None, description="Generating the data, and running the load queries.")
    reference_s: float | None = Field(default=None, description="Computing the reference answers.")
    time_s: float | None = None


class Room(SummaryPart):
    """Bytes that are needed, and those that are free."""

    needed: int | None
    free: int


class Estimate(SummaryPart):
    """What a benchmark would do, and what it would take."""

    title: str
    kind: str
    scale: float | None = None
    parts: list[PartEstimate]
    steps: list[str] = Field(default=[], description="What it does in order, in words, for kinds that are not comparisons.")
    disk: Room
    memory: Room
    start_s: float | None = Field(default=None, description="Starting servers of the lab, all together.")
    pilot_s: float | None = Field(default=None, description="How long the pilot took; null: there was none.")
    time_s: float | None = Field(description="All of it, without the pilot.")
    notes: list[str] = []
    commands: list[str] = Field(default=[], description="Commands that it would run on nodes of the user's, in order.")


class Budget(SummaryPart):
    """What a budget of time was turned into. Results of other choices are not comparable with these."""

    budget_s: float
    is_default: bool = Field(description="Whether it is the default.")
    scale: float
    operations: int | None = Field(description="Null: as the study says at this scale.")
    repetitions: int
    max_variant_time_s: float | None = Field(
        description="How long a run of a variant may take; null: as long as its operations do."
    )
    parts: list[str] = Field(default=[], description="The parts of the study that fit, where not all of them do.")
    left_out: list[str] = Field(default=[], description="The parts that do not: the last ones of the study.")
    command: list[str] = Field(description="The command that makes the same choice without a pilot.")
    estimate: Estimate
