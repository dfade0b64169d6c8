"""What retention cost during a run: its actions, the size on disk, and the latency of operations meanwhile."""

from pydantic import Field

from sensorbench.results.summary.part import SummaryPart


class RetentionActions(SummaryPart):
    """The actions of one kind during the run."""

    kind: str = Field(description="`rollup` or `expire`.")
    count: int
    failed: int
    first_error: str | None
    duration_s: dict[str, float] = Field(description="p50 and max; empty if there was none.")
    total_s: float
    removed: int | None = Field(description="Rows that were removed; null if the database does not say so.")
    last_s: float | None = Field(description="Duration of the action after the run, when everything had arrived.")


class LatencyBeside(SummaryPart):
    """Response times of one kind of operation, in s: of those that overlapped an action in time, and of the others."""

    operation: str
    beside: int = Field(description="Operations that overlapped an action.")
    others: int
    beside_s: dict[str, float] = Field(description="p50 and p99; empty if there were none.")
    others_s: dict[str, float]


class VariantRetention(SummaryPart):
    """Retention in the run of a variant."""

    expires_by: str = Field(description="How readings expire, in the words of the schema.")
    rolls_up_by: str | None = Field(description="How the rollup is kept; null if there is none.")
    is_kept_by_database: bool = Field(
        description="Whether the database keeps the rollup itself, without a statement of the client."
    )
    actions: list[RetentionActions]
    latency: list[LatencyBeside]
    first_bytes: int | None
    max_bytes: int | None
    last_bytes: int | None = Field(description="After the last action.")
