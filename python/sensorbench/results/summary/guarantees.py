"""What clients of registers saw, beside what the database promises them."""

from typing import Any

from pydantic import Field

from sensorbench.results.summary.part import SummaryPart


class RegisterCounts(SummaryPart):
    """What a history of registers holds."""

    operations: int
    reads: int
    writes: int
    answered_reads: int
    acknowledged_writes: int
    failed: int
    unknown: int
    processes: int
    keys: int
    keys_of_several_writers: int


class RegisterFinding(SummaryPart):
    """One kind of finding: how many, and among how many that could have been one."""

    count: int
    of: int
    share: float | None = Field(description="`count` over `of`; null if there was none that could have been one.")
    age_ns: dict[str, int] | None = Field(description="Quantiles of the age of what was read; null if nothing has an age.")
    examples: list[dict[str, Any]] = Field(description="The first of them, with the operations that show it.")


class RegisterPromise(SummaryPart):
    """Whether the database promises that a finding does not occur."""

    is_made: bool
    why: str
    source: str


class RegisterGuarantees(SummaryPart):
    """What a history of registers shows, by finding, and which promise it broke."""

    counts: RegisterCounts
    seen: dict[str, RegisterFinding]
    promised: dict[str, RegisterPromise] | None = Field(description="By finding; null if nothing is known of the database.")
    broken: list[str] = Field(description="Findings that were promised not to occur, and did.")
