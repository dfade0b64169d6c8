"""What a summary says of load generators that shared runs."""

from pydantic import Field

from sensorbench.results.summary.part import SummaryPart


class GeneratorFigures(SummaryPart):
    """A load generator over all runs that it shared."""

    number: int = Field(description="From 1; `operations` have it as their column `generator`.")
    host: str = Field(description="The name of its host; `local`: a process of the controller's machine.")
    started: int
    cpus: float | None = Field(description="CPUs that it kept busy, on average.")
    timer_lag_p99_s: float | None = Field(description="How late it was where it waited for an intended start, in the worst run.")
    wall_offset_s: float | None = Field(
        default=None,
        description="How far the host's time of day was ahead of the controller's in the last run; null if both are one.",
    )
    corrected_by_s: float | None = Field(
        default=None,
        description="By how much times were corrected in the last run: CLOCK_MONOTONIC of the host minus that of the controller.",
    )
    drift_s: float | None = Field(
        default=None, description="How far that was from what it was at the start, at the end of the run, at most."
    )
    bound_s: float | None = Field(default=None, description="No time of this load generator is wrong by more, in the worst run.")
