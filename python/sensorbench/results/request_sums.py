"""What a bundle keeps of each run of `elasticity` in the place of its log: the measurements of its request sets, and how many operations ended in each
second around the change of the cluster. All figures of the run follow from these as from the log.
"""

from sensorbench.results.summary.elasticity import RequestSets
from sensorbench.results.summary.part import SummaryPart

REQUEST_SUMS_FILE = "request_sums.json"


class EndedPerSecond(SummaryPart):
    """Operations that ended, by seconds counted from the begin of the change: `before` it those that succeeded; from it on those that succeeded (`ok`)
    and those that did not (`failed`). `last_failed_s` is the time from the begin of the change to the last failure; null if there was none.
    """

    begun_at_s: float
    before: list[int]
    ok: list[int]
    failed: list[int]
    last_failed_s: float | None


class RequestSums(SummaryPart):
    """The measurements of a run, those of its warm-up included, and what ended in each second; null if nothing changed."""

    sets: RequestSets
    ended: EndedPerSecond | None
