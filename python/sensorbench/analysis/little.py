"""Little's law as a check of a closed loop: the requests in flight are the throughput times the mean latency (Little, "A proof for the
queuing formula L = λW", Operations Research 9, 1961). Where they are not, a figure of the run does not mean what it seems to.
"""

from dataclasses import dataclass

# Requests in flight may be this much above or below the concurrency, as a share of it.
TOLERANCE = 0.1


@dataclass(frozen=True)
class ClosedLoop:
    """What was measured of a closed loop: its concurrency, the operations of a run that ended well and those that did not, and per second
    and in seconds what those that ended well had for throughput and mean latency.
    """

    concurrency: int
    succeeded: float
    failed: float
    per_s: float
    mean_s: float

    @property
    def in_flight(self) -> float:
        """Throughput times mean latency: how many requests were in flight on average, by Little's law."""
        return self.per_s * self.mean_s

    @property
    def deviation(self) -> float:
        """By how much they differ from the concurrency, as a share of it."""
        return self.in_flight / self.concurrency - 1.0

    @property
    def violation(self) -> str | None:
        """The likely cause where the deviation is beyond the tolerance; None if it is not."""
        missing = -self.deviation
        if abs(missing) <= TOLERANCE:
            return None
        rounds = self.succeeded / self.concurrency
        few = f"the run has {rounds:.1f} operations per client: its beginning and its end are most of it"
        if missing < 0.0:
            # A phase ends when its last operation starts, so that what the last round takes is in the latencies and not in the time.
            if rounds <= 1.0 or 1.0 / (rounds - 1.0) >= -missing / 2:
                return few
            return (
                "latencies and throughput are of different operations: not all were logged, or the clock was set while they ran"
            )
        failed = self.failed / max(1.0, self.succeeded + self.failed)
        if failed >= missing / 2:
            return f"{failed:.0%} of the operations failed or timed out: they were in flight, and have no latency here"
        # While the last operations of a run end, clients that have nothing more to do wait for them: about one latency of all.
        if 1.0 / max(rounds, 1.0) >= missing / 2:
            return few
        return "the client needs that time between two operations, so that it is the limit, and not the database"
