"""Giving up a trial that is hopeless: in its first stretch far worse than the best so far."""

from typing import Any

from sensorbench._engine import Run

# So much longer than the best is far worse; and for this share of its time a trial is held before it is judged.
FAR_WORSE = 3.0
FIRST_STRETCH = 0.2
# What snapshots know that is at most the percentile in question.
_KNOWN = {"p50": "p50", "p90": "p50", "p95": "p95", "p99": "p99", "p999": "p999"}


class Hopeless:
    """Stops a run whose last phase has, after a first stretch, a percentile FAR_WORSE than the best so far (s) in each of its
    operations: then the percentile of all of them is so, too.
    """

    def __init__(self, percentile: str, best_s: float, held_s: float) -> None:
        self.is_so = False
        self._key = _KNOWN[percentile]
        self._limit_s = best_s * FAR_WORSE
        self._first_s = held_s * FIRST_STRETCH

    def look(self, run: Run, snapshot: dict[str, Any]) -> None:
        """Stops the run, if it is."""
        phase = snapshot["phases"][-1]
        if self.is_so or phase["start_ns"] is None or (snapshot["now_ns"] - phase["start_ns"]) / 1e9 < self._first_s:
            return
        latencies = [one["response_ns"] for one in phase["operations"].values() if one["response_ns"]]
        if latencies and min(one[self._key] for one in latencies) / 1e9 > self._limit_s:
            self.is_so = True
            run.stop()
