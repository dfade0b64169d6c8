"""Whether the operations that ended in each second around a change of a cluster are those that the series per second has."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sensorbench.bundles.checks.problem import Problem, run_name
from sensorbench.results import RunResult
from sensorbench.results.manifest import OUTCOMES

REQUEST_SUMS = "request sums"
_OK = "ok"

Integers = NDArray[np.int64]


def check_request_sums(run: RunResult) -> Iterator[Problem]:
    """Compares both of a run in which a cluster changed. Seconds that are counted from the change lie between those of the series, so that it bounds how
    many operations had ended by the end of each.
    """
    sums, intervals = run.request_sums, run.table("intervals")
    if sums is None or sums.ended is None or intervals is None:
        return
    # Each load generator has its own clock, by which the series counts.
    slack_ns = 1_000_000_000 if run.manifest.totals and len(run.manifest.totals.generators) > 1 else 0
    before = len(sums.ended.before)
    found = {_OK: [*sums.ended.before, *sums.ended.ok], "failed": sums.ended.failed}
    for word, counts in found.items():
        outcomes = [_OK] if word == _OK else [outcome for outcome in OUTCOMES if outcome != _OK]
        from_s = sums.ended.begun_at_s - (before if word == _OK else 0)
        if (odd_s := _first_odd_s(intervals, outcomes, counts, from_s, slack_ns)) is not None:
            text = f"up to {odd_s:.1f} s, its request sums have another number of operations ({word}) than the series per second"
            yield Problem(REQUEST_SUMS, run_name(run), text)


def _first_odd_s(
    intervals: pa.Table, outcomes: Sequence[str], counts: Sequence[int], from_s: float, slack_ns: int
) -> float | None:
    """The end of the first second up to which the series cannot have this many operations."""
    ends_ns = intervals["start_ns"].to_numpy().astype(np.int64) + intervals["length_ns"].to_numpy().astype(np.int64)
    edges_ns, places = np.unique(ends_ns, return_inverse=True)
    of_rows = np.sum([intervals[outcome].to_numpy().astype(np.int64) for outcome in outcomes], axis=0)
    ended = np.cumsum(np.bincount(places, of_rows)).astype(np.int64)

    def by(moments_ns: Integers, *, at_least: bool) -> Integers:
        """How many had ended by some moments, at least or at most."""
        if at_least:
            return np.append(0, ended)[np.searchsorted(edges_ns, moments_ns - slack_ns, side="right")]
        return np.append(ended, ended[-1])[np.searchsorted(edges_ns, moments_ns + slack_ns, side="left")]

    from_ns = np.array([round(from_s * 1e9)])
    moments_ns = from_ns + np.arange(1, len(counts) + 1) * 1_000_000_000
    found = np.cumsum(counts)
    lowest = by(moments_ns, at_least=True) - by(from_ns, at_least=False)
    highest = by(moments_ns, at_least=False) - by(from_ns, at_least=True)
    odd = np.flatnonzero((found < lowest) | (found > highest))
    return float(moments_ns[odd[0]] / 1e9) if len(odd) else None
