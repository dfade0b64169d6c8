"""How long after their acknowledgement readings were visible, by markers beside the load."""

from pydantic import Field

from sensorbench.results.summary.part import SummaryPart


class FreshnessBounds(SummaryPart):
    """A quantile of the time from acknowledgement to visibility, in s: the true one lies between these."""

    low_s: float
    high_s: float | None = Field(description="Null if the markers beyond the quantile were not seen before they were given up.")


class FreshnessFigures(SummaryPart):
    """Some markers of a variant. A marker became visible after the start of the last read that missed it, and before the end of the first that
    returned it; one that the first read returned, from its acknowledgement on.
    """

    rate: str | None = Field(description="The load's rate while they were written, per second; null if it has one, or none.")
    markers: int = Field(description="Markers that were acknowledged.")
    seen: int = Field(description="Of these, markers that a read returned before they were given up.")
    at_once: int = Field(description="Of these, markers that the first read returned.")
    failed: int = Field(description="Markers whose write failed, or had an unknown outcome; they are not among the others.")
    late: int = Field(
        description="Markers that were written later than intended by more than the time between two, since all that may be watched at a time were. They began "
        "when another one was found, and so are not a fair sample."
    )
    reads: int
    failed_reads: int
    quantiles_s: dict[str, FreshnessBounds] = Field(description="p50, p90, p99 and max; empty if nothing was acknowledged.")
    max_width_s: float | None = Field(description="The widest interval between the two bounds of a marker that was seen.")


class VariantFreshness(SummaryPart):
    """The markers of a variant in its measured phases, all and by rate."""

    poll_s: float = Field(
        description="Time from the start of one read of a marker to that of the next, where reads are not slower."
    )
    within_s: float = Field(description="How long a marker was read before it was given up.")
    whole: FreshnessFigures
    by_rate: list[FreshnessFigures] = Field(default=[], description="By the rates of the schedule, where it has several.")
