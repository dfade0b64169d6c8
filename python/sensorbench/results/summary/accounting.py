"""What became of the readings that the writes of a run delivered."""

from typing import Literal

from pydantic import Field

from sensorbench.results.summary.part import SummaryPart

# Which of several deliveries of one reading counts.
Rule = Literal["last", "first", "both", "highest", "distinct", "any"]


class Lateness(SummaryPart):
    """How far readings arrived behind the newest one of their series."""

    out_of_order: float = Field(description="Share of the deliveries that are older than one of their series that came before.")
    time_s: dict[str, float] = Field(description="Of these, how much older than the newest: p50, p99, max.")
    rows: dict[str, float] = Field(
        description="Of these, how many places behind the one that their time would give them: p50, p99, max."
    )
    late_after_s: float | None = Field(default=None, description="What the workload calls late.")
    late: float | None = Field(default=None, description="Share of the deliveries that are later than that.")


class RollupAccounting(SummaryPart):
    """The rows of a rollup beside those that DuckDB computes from the acknowledged readings. A row is one time bucket of one series."""

    rows: int = Field(description="Rows that must be there.")
    right: int = Field(description="Of these, rows that are there once with the right count, minimum, maximum and sum.")
    missing: int = Field(description="Rows that are not there.")
    differ: int = Field(description="Rows that are there with other values, or more than once.")
    extra: int = Field(description="Rows that should not be there.")
    by_late: int = Field(
        description="Of the rows that are missing or differ, those that are as an action made them, before other readings of their bucket arrived."
    )
    undecided: int = Field(description="Rows of a reading of which several values are right; they are compared with nothing.")

    @property
    def wrong(self) -> int:
        """Rows that are not as they should be."""
        return self.missing + self.differ + self.extra


class RetentionAccounting(SummaryPart):
    """Which readings have expired, which are kept, and whether the rollup has all of them."""

    before: str | None = Field(description="What is older must be gone; null if nothing was to expire by its own time.")
    ttl_s: int | None = Field(
        default=None,
        description="How long after their write readings expire, by the wall clock; null if their own time counts.",
    )
    expired: int = Field(description="Readings that must be gone, those of the dataset among them.")
    not_expired: int = Field(description="Of these, readings that are still there.")
    kept: int = Field(description="Readings that must be there. Those that are not are among the lost ones.")
    rollup: RollupAccounting | None = Field(default=None, description="Null where no rollup is kept.")


class StreamAccounting(SummaryPart):
    """What the runs of a variant delivered, and what of it was found afterwards. A reading may be delivered several times."""

    write: str
    rule: Rule | None = Field(
        description="Which of several deliveries of a reading the schema says is there; null if it does not say."
    )
    readings: int = Field(description="Readings of which a delivery was acknowledged.")
    acknowledged: int = Field(description="Deliveries that were acknowledged.")
    again: int = Field(description="Of these, deliveries of a reading that was acknowledged before.")
    unknown: int = Field(description="Deliveries whose outcome the client did not learn.")
    segments: int = Field(description="Ranges of time of a series that were read, each whole.")
    unanswered: int = Field(description="Ranges that the database did not answer.")
    lost: int = Field(description="Acknowledged readings that are not there.")
    wrong_winners: int = Field(description="Readings with the value of a delivery that should not count.")
    extra: int = Field(description="Readings that are there more often than they should be.")
    other_values: int = Field(description="Readings with a value that was never delivered.")
    undecided: int = Field(
        description="Readings of which several values are right: deliveries that overlapped, or of unknown outcome."
    )
    unknown_found: int = Field(description="Readings that are there, though no delivery of them was acknowledged.")
    unexamined: int = Field(default=0, description="Ranges that differ and were not looked into, because too many do.")
    unstable: int = Field(
        default=0,
        description="Ranges that differed when they were read whole, though each of their readings was right when it was read by itself.",
    )
    explained_by: Rule | None = Field(
        default=None, description="The rule by which what was found is right, where the schema's is not."
    )
    lateness: Lateness | None = None
    retention: RetentionAccounting | None = Field(default=None, description="Null where no reading expires.")

    @property
    def wrong(self) -> int:
        """Readings that are not as they should be; at least this many where ranges were not looked into."""
        expired = self.retention.not_expired if self.retention else 0
        return self.lost + self.wrong_winners + self.extra + self.other_values + self.unexamined + self.unstable + expired
