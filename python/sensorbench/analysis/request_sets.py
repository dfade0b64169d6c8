"""Request sets out of a run's record of its operations: this many requests one after the other, several times, are one measurement."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sensorbench.analysis.elasticity import Sets

Times = NDArray[np.int64]


@dataclass(frozen=True)
class Requests:
    """Requests in the order in which they were due: when each was due, was started and had ended, in ns on the run's clock."""

    intended_ns: Times
    start_ns: Times
    end_ns: Times


def request_sets(requests: Requests, per_set: int, executions: int, threads: int | None = None) -> Sets:
    """Sets of `per_set` requests, each measurement being the mean and the standard deviation of `executions` of them. What does not
    fill the last measurement is left out.

    In a closed loop a set takes from its first start to its last end. In an open loop the rate alone would decide on that: with
    `threads` it takes what this many threads would take for its requests one after the other, by the mean time from due to end.
    """
    count = len(requests.start_ns) // (per_set * executions) * executions
    intended, start, end = (
        times[: count * per_set].reshape(count, per_set) for times in (requests.intended_ns, requests.start_ns, requests.end_ns)
    )
    begin_ns = start.min(axis=1, initial=np.iinfo(np.int64).max)
    took_ns = end.max(axis=1, initial=0) - begin_ns if threads is None else (end - intended).mean(axis=1) * (per_set / threads)
    took_s = (took_ns / 1e9).reshape(-1, executions)
    deviations_s = took_s.std(axis=1, ddof=1) if executions > 1 else np.zeros(len(took_s))
    return Sets(begin_ns[::executions] / 1e9, took_s.mean(axis=1), deviations_s)
