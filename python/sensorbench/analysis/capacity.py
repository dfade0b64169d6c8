"""The highest rate that meets an objective: which rate to try next, and what the trials say. Pure: trials in, a rate or an answer out.

The search, in this order, until one step asks for no more trials:

1. doubt: a rate that missed once is tried again at once, so that a hiccup does not lead astray. A rate that met in some of its trials and
   missed in others bounds nothing; one that missed in all of at least two bounds the search from above;
2. bracket: double the rate until one is missed for good, or halve it until one meets;
3. narrow: try the geometric middle of the highest rate that met and the next above it that did not always, and of the lowest that was
   missed for good and the next below it that was not, until each two are no further apart than `precision`;
4. confirm: repeat both ends until each has `confirm` trials. A lower end that misses, or an upper end that meets, is an end no more, and
   the search continues.

So the lower end of the answer, the capacity, met in each of its trials, and the upper end in none; between them lies where it is a matter
of chance. At a rate that is met in half of all trials, n trials agree with a chance of 2 · 2⁻ⁿ: with three, an end is on the wrong side of
such a rate once in eight times, with five once in 32.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

# The percentiles that an objective may be of, and the share of operations that each means.
PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
# A search that needs more is not searching any more: the rate at which the objective is met changes all the time.
MAX_TRIALS = 60


@dataclass(frozen=True)
class Trial:
    """A rate that was held, in operations per second, and whether the objective was met."""

    rate_per_s: float
    met: bool


@dataclass(frozen=True)
class Search:
    """Where a search begins, how near the two ends of its answer must be (as a ratio, 0.03 for 3%), how many trials each end needs,
    and between which rates it stays (without an upper end if `max_per_s` is None).
    """

    first_per_s: float
    precision: float = 0.03
    confirm: int = 3
    min_per_s: float = 1.0
    max_per_s: float | None = None

    @property
    def top_per_s(self) -> float:
        """The highest rate that may be tried."""
        return math.inf if self.max_per_s is None else self.max_per_s


@dataclass(frozen=True)
class Capacity:
    """The highest rate that met in each of its trials, and the lowest above that met in none. None if there is none: nothing met
    (`met_per_s`), or nothing was missed for good (`missed_per_s`). `is_confirmed`: whether the ends that there are had all trials that
    were asked for.
    """

    met_per_s: float | None
    missed_per_s: float | None
    is_confirmed: bool


def next_rate(trials: Sequence[Trial], search: Search) -> float | None:
    """The rate to try next; None when the search is over."""
    if len(trials) >= MAX_TRIALS:
        return None
    if not trials:
        return min(max(search.first_per_s, search.min_per_s), search.top_per_s)
    rates = _Rates(trials, search)
    steps = (rates.doubtful, rates.outside, rates.between, rates.unconfirmed)
    return next((rate for step in steps if (rate := step()) is not None), None)


def capacity(trials: Sequence[Trial], search: Search) -> Capacity:
    """What the trials say."""
    rates = _Rates(trials, search)
    is_over = bool(trials) and len(trials) < MAX_TRIALS and next_rate(trials, search) is None
    return Capacity(rates.low, rates.high, is_over)


class _Rates:
    """The rates that were tried, and the next one by each step of the search."""

    def __init__(self, trials: Sequence[Trial], search: Search) -> None:
        self._search = search
        self._outcomes: dict[float, list[bool]] = {}
        for trial in sorted(trials, key=lambda trial: trial.rate_per_s):
            self._outcomes.setdefault(trial.rate_per_s, []).append(trial.met)
        missed = [rate for rate, outcomes in self._outcomes.items() if self._is_missed_for_good(outcomes)]
        self.high = min(missed, default=None)
        met = [rate for rate, outcomes in self._outcomes.items() if all(outcomes) and rate < self._ceiling]
        self.low = max(met, default=None)

    @property
    def _ceiling(self) -> float:
        return math.inf if self.high is None else self.high

    def _is_missed_for_good(self, outcomes: Sequence[bool]) -> bool:
        return not any(outcomes) and len(outcomes) >= min(2, self._search.confirm)

    def doubtful(self) -> float | None:
        """A rate that missed once and was not tried again."""
        once = [rate for rate, outcomes in self._outcomes.items() if outcomes == [False]]
        return next((rate for rate in once if self._search.confirm > 1), None)

    def outside(self) -> float | None:
        """A rate beyond all that were tried, where an end is missing and there is room."""
        lowest, highest = min(self._outcomes), max(self._outcomes)
        if self.low is None:
            return max(lowest / 2.0, self._search.min_per_s) if lowest > self._search.min_per_s else None
        if self.high is None:
            return min(highest * 2.0, self._search.top_per_s) if highest < self._search.top_per_s else None
        return None

    def between(self) -> float | None:
        """A rate between an end and what is next to it, where those are too far apart."""
        if self.low is None:
            return None
        by_chance = [rate for rate in self._outcomes if self.low < rate < self._ceiling]
        pairs = [(self.low, min(by_chance, default=self.high)), (max(by_chance, default=self.low), self.high)]
        wide = (
            math.sqrt(below * above)
            for below, above in pairs
            if above is not None and above / below > 1.0 + self._search.precision
        )
        return next(wide, None)

    def unconfirmed(self) -> float | None:
        """An end that has not had all its trials; where nothing meets, the lowest rate."""
        ends = [end for end in (self.low, self.high) if end is not None]
        return next((end for end in ends if len(self._outcomes[end]) < self._search.confirm), None)
