"""What a rate must keep to: a percentile of the response time."""

from dataclasses import dataclass

from sensorbench.analysis.capacity import PERCENTILES
from sensorbench.errors import UsageError
from sensorbench.runner import seconds


@dataclass(frozen=True)
class Objective:
    """At least this share of the operations that were due must have succeeded within `limit_s` from when they were due. Those that failed,
    timed out or never started count as too late, so that no rate meets an objective by what it left out.
    """

    percentile: str
    limit_s: float

    @property
    def share(self) -> float:
        """The share: 0.99 for p99."""
        return PERCENTILES[self.percentile]

    def is_met(self, share_within: float) -> bool:
        """Whether so large a share within the limit is enough."""
        return share_within >= self.share


def parse_objective(text: str, timeout_s: float, option: str = "--objective ") -> Objective:
    """`p99=20ms`; messages name the option. Raises UsageError."""
    percentile, equals, limit = text.partition("=")
    if not equals or percentile not in PERCENTILES:
        raise UsageError(f"{option}{text}: expected a percentile ({', '.join(PERCENTILES)}) and a limit, for example p99=20ms")
    try:
        limit_s = seconds(limit)
    except ValueError as error:
        raise UsageError(f"{option}{text}: {error}") from None
    if limit_s >= timeout_s:
        raise UsageError(f"{option}{text}: the limit must be below --timeout, at which operations are given up ({timeout_s:g} s)")
    return Objective(percentile, limit_s)
