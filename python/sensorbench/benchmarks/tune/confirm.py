"""The held-out confirmation: the default and the best of the search, each on fresh servers, in turn, with seeds that the
search never had.

The best of many trials is partly the luckiest; what it is worth, only runs can say that did not choose it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sensorbench.analysis.intervals import Interval, spread_over_runs
from sensorbench.benchmarks.tune.judging import Best
from sensorbench.benchmarks.tune.measure import Order
from sensorbench.results.tune import Measurement


@dataclass(frozen=True)
class Verdict:
    """Whether there is a gain, why (not), and the ratio of the best to the default with its interval, where that was
    measured.
    """

    is_gain: bool
    why: str
    ratio: Interval | None = None


def orders(start: Mapping[str, str], best: Best, pairs: int, seed: int) -> list[Order]:
    """What is to be measured: A B, B A, A B and so on, each pair with a seed of its own."""
    found = []
    for pair in range(pairs):
        sides = [Order("default", start, {}, seed + 1 + pair), Order("best", best.configuration, best.choices, seed + 1 + pair)]
        found += sides if pair % 2 == 0 else sides[::-1]
    return found


def why_not_worth_it(start: Mapping[str, str], best: Best | None, *, smaller_is_better: bool) -> str | None:
    """Why there is nothing to confirm; None if there is."""
    if best is None:
        return "no configuration of the search could be measured"
    if best.configuration == dict(start):
        return "the best configuration that was found is the default"
    if (best.ratio >= 1.0) if smaller_is_better else (best.ratio <= 1.0):
        return "no configuration of the search was better than the default"
    return None


def ratios_of(measured: Sequence[Measurement]) -> list[float]:
    """The ratio of the best to the default of each pair that was measured whole."""
    found = []
    for pair in (measured[place : place + 2] for place in range(0, len(measured) - 1, 2)):
        values = {measurement.role: measurement.value for measurement in pair if measurement.outcome == "measured"}
        if (best := values.get("best")) and (default := values.get("default")):
            found.append(best / default)
    return found


def verdict(measured: Sequence[Measurement], pairs: int, *, smaller_is_better: bool) -> Verdict:
    """What the confirmation says: a gain only if all of its pairs were measured and the interval of their ratio leaves out
    1 on the better side.
    """
    ratios = ratios_of(measured)
    if not ratios:
        return Verdict(False, "the confirmation could not be measured")
    interval = spread_over_runs(np.array(ratios))
    if len(ratios) < pairs:
        return Verdict(False, f"{pairs - len(ratios)} of {pairs} pairs of the confirmation could not be measured", interval)
    if interval.low is None or interval.high is None:
        return Verdict(False, "too few pairs for an interval", interval)
    if interval.high < 1.0 if smaller_is_better else interval.low > 1.0:
        return Verdict(True, "the interval of the confirmation leaves out 1", interval)
    return Verdict(False, "the interval of the confirmation does not leave out 1 on the better side", interval)
