"""Where a history of figures changes its level, found as early as its noise allows.

E-divisive (Matteson and James, "A nonparametric approach for multiple change point analysis of multivariate data", Journal of the American
Statistical Association 109, 2014) with the exponent 2, by which the energy distance is that of means, as performance histories use it (Daly
et al., "The use of change point detection to identify software performance regressions in a continuous integration system", ICPE 2020;
Fleming et al., "Hunter: using change point detection to hunt for performance regressions", ICPE 2023). A place is a change when the divergence
of its two sides is one that permutations of the same values seldom reach.

Changed here: a history grows by one value at a time, and each is looked at when it comes. So only the last few places are tried at each value,
not all of them again, which would have each place compete with all others for ever. A test at each value errs in at most `SIGNIFICANCE` of
them, whatever the distribution of the values, as long as they are exchangeable. What is found begins a new level. Values far from the median
are drawn in before they are compared, so that one spike is not a change. Values may have weights, by which those of noisy days count less:
permutations move each value with its weight, so that the test errs no more often.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from sensorbench.analysis.intervals import CONFIDENCE, t_quantile
from sensorbench.analysis.sample import Floats, Integers

# A level has this many values before a change of it can be seen, and a change this many after it.
MIN_BEFORE = 8
MIN_AFTER = 2
# This many values back a change may lie that is found when a value comes.
MAX_AFTER = 5
# A level is known by this many of its last values.
WINDOW = 100
PERMUTATIONS = 999
# By simulation (docs/reference/history-simulation.md), this gives less than one false alarm in 100 values.
SIGNIFICANCE = 0.015
# Values further from the median than this many standard deviations, by the median absolute deviation, count as if they were that far.
MAX_DEVIATIONS = 3.0
_DEVIATION_OF_NORMAL = 1.4826
# Permutations are made this many at a time: most histories do not change, which few of them show.
_BATCHES = (19, 80, 900)


@dataclass(frozen=True)
class LevelShift:
    """A change of level.

    Attributes:
        place: number of the first value after it, from 0.
        found_at: how many values there were when it was found.
        ratio: geometric mean of the values after it, up to the next change, divided by that of those before it, from the last change on.
        low: lower end of the ratio's confidence interval.
        high: upper end of the ratio's confidence interval.
        before: how many values the level before it has.
        after: how many values the level after it has.

    """

    place: int
    found_at: int
    ratio: float
    low: float
    high: float
    before: int
    after: int


def level_shifts(values: Floats, *, weights: Floats | None = None, seed: int = 0, from_value: int = 0) -> list[LevelShift]:
    """The changes of level of a history.

    Args:
        values: figures above zero in the order of time; shape (values,).
        weights: how much each counts, above zero; shape (values,). All alike if None.
        seed: of the permutations. Equal values and seeds give equal changes.
        from_value: values before this number are taken to be of one level.

    Returns:
        The changes, in order. Their intervals are not widened for having been chosen as the largest.

    Raises:
        ValueError: for a value or a weight that is not above zero and finite.

    """
    logs = _logs(values)
    weights = np.ones(len(logs)) if weights is None else _above_zero(weights)
    found: list[tuple[int, int]] = []
    start = 0
    for count in range(max(from_value + 1, MIN_BEFORE + MIN_AFTER), len(logs) + 1):
        window = slice(max(start, count - WINDOW), count)
        after = _after(logs[window], weights[window], np.random.default_rng([seed, count]))
        if after:
            start = count - after
            found.append((start, count))
    places = _settled(logs, weights, [place for place, _ in found])
    ends = [0, *places, len(logs)]
    levels = [(logs[begin:end], weights[begin:end]) for begin, end in pairwise(ends)]
    return [
        _shift(place, found_at, before, after)
        for place, (_, found_at), (before, after) in zip(places, found, pairwise(levels), strict=True)
    ]


def variation_within(values: Floats, places: Sequence[int]) -> float | None:
    """The coefficient of variation between the values of a history, within its levels; None if no level has three values.

    Args:
        values: figures above zero; shape (values,).
        places: where levels begin, but the first.

    Raises:
        ValueError: for a value that is not above zero and finite.

    """
    levels = [level for begin, end in pairwise([0, *places, len(values)]) if len(level := _logs(values)[begin:end]) > MIN_AFTER]
    degrees = sum(len(level) - 1 for level in levels)
    if not degrees:
        return None
    return math.expm1(math.sqrt(sum(float(level.var()) * len(level) for level in levels) / degrees))


def _logs(values: Floats) -> Floats:
    return np.asarray(np.log(_above_zero(values)))


def _above_zero(values: Floats) -> Floats:
    values = np.asarray(values, dtype=np.float64)
    if not (np.isfinite(values) & (values > 0.0)).all():
        raise ValueError("a history has figures and weights above zero alone")
    return values


def _after(window: Floats, weights: Floats, generator: np.random.Generator) -> int:
    """How many of the last values are of another level than those before them; 0 where that is not seen."""
    length = len(window)
    max_after = min(MAX_AFTER, length - MIN_BEFORE)
    if max_after < MIN_AFTER:
        return 0
    values = _drawn_in(window)
    # The mean of all values is the same however they are permuted.
    parts = weights * (values - np.average(values, weights=weights))
    order = np.arange(length)
    divergences = _divergences(parts, weights, order[None, :], max_after)[0]
    greatest = float(divergences.max())
    if greatest <= 0.0:
        return 0
    reached = 0
    for size in _BATCHES:
        shuffled = generator.permuted(np.tile(order, (size, 1)), axis=1)
        # Sums of the same numbers in another order may differ in their last digit.
        reached += int((_divergences(parts, weights, shuffled, max_after).max(axis=1) >= greatest * (1.0 - 1e-9)).sum())
        if (reached + 1) / (PERMUTATIONS + 1) > SIGNIFICANCE:
            return 0
    return int(np.argmax(divergences)) + MIN_AFTER


def _drawn_in(values: Floats) -> Floats:
    """Values, those far from their median drawn in."""
    median = float(np.median(values))
    deviation = _DEVIATION_OF_NORMAL * float(np.median(np.abs(values - median)))
    if deviation == 0.0:
        return values
    return np.clip(values, median - MAX_DEVIATIONS * deviation, median + MAX_DEVIATIONS * deviation)


def _divergences(parts: Floats, weights: Floats, orders: Integers, max_after: int) -> Floats:
    """For each order, the divergence between its last values and those before, for `MIN_AFTER` to `max_after` of them; `parts` are weighted
    distances from the mean.
    """
    last = orders[:, -max_after:][:, ::-1]
    sums, after = (np.cumsum(each[last], axis=1)[:, MIN_AFTER - 1 :] for each in (parts, weights))
    total = float(weights.sum())
    return np.asarray(sums**2 * total / (after * (total - after)))


def _settled(logs: Floats, weights: Floats, places: Sequence[int]) -> list[int]:
    """Each place where the divergence between its neighbouring levels is greatest, now that what came after it is known."""
    settled: list[int] = []
    for number, place in enumerate(places):
        begin = settled[-1] if settled else 0
        end = places[number + 1] if number + 1 < len(places) else len(logs)
        low, high = max(begin + MIN_AFTER, place - MAX_AFTER), min(end - MIN_AFTER, place + MAX_AFTER)
        values, of_values = logs[begin:end], weights[begin:end]
        divergence = partial(_divergence, values, of_values)
        settled.append(begin + max(range(low - begin, high - begin + 1), key=divergence))
    return settled


def _divergence(values: Floats, weights: Floats, place: int) -> float:
    difference = np.average(values[place:], weights=weights[place:]) - np.average(values[:place], weights=weights[:place])
    return float(difference**2 * weights[:place].sum() * weights[place:].sum() / weights.sum())


def _shift(place: int, found_at: int, before: tuple[Floats, Floats], after: tuple[Floats, Floats]) -> LevelShift:
    """A change with its interval, by Student's t with the spread that both levels share; levels are values and their weights."""
    means = [float(np.average(values, weights=weights)) for values, weights in (before, after)]
    squares = sum(
        float((weights * (values - mean) ** 2).sum()) for (values, weights), mean in zip((before, after), means, strict=True)
    )
    degrees = len(before[0]) + len(after[0]) - 2
    error = math.sqrt(squares / degrees * sum(1.0 / float(weights.sum()) for _, weights in (before, after)))
    half = t_quantile(degrees, 0.5 + CONFIDENCE / 2) * error
    difference = means[1] - means[0]
    low, ratio, high = (math.exp(difference + each) for each in (-half, 0.0, half))
    return LevelShift(place, found_at, ratio, low, high, len(before[0]), len(after[0]))
