"""How unevenly values are spread: curves of how often the most frequent ones came, and Zipf's law."""

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

# The sum of a Zipf distribution's first terms is exact; of the others it is an integral.
_EXACT_TERMS = 20_000
_MIN_EXPONENT, _MAX_EXPONENT = 0.02, 4.0
# Kolmogorov's and Smirnov's distance that chance exceeds in 5% and in 1% of the cases, times the root of the number of values.
KOLMOGOROV_5, KOLMOGOROV_1 = 1.358, 1.628


def rank_curve(counts: Numbers) -> Numbers:
    """The share of all executions that had one of the r most frequent values, for r from 1, shape as `counts`."""
    ordered = np.sort(counts)[::-1]
    curve: Numbers = np.cumsum(ordered) / max(1.0, float(ordered.sum()))
    return curve


def curve_difference(counts: Numbers, others: Numbers) -> float:
    """The largest difference of the rank curves of two samples of equal size."""
    length = max(len(counts), len(others))
    curves = [np.pad(rank_curve(each), (0, length - len(each)), constant_values=1.0) for each in (counts, others)]
    return float(np.abs(curves[0] - curves[1]).max()) if length else 0.0


def collisions(counts: Numbers) -> float:
    """The probability that two executions have the same value, estimated without a bias: the sum of the squared probabilities."""
    total = float(counts.sum())
    return float((counts * (counts - 1)).sum()) / (total * (total - 1)) if total > 1 else 0.0


def zipf_exponent(repeats: float, values: int) -> float | None:
    """The exponent of the Zipf distribution over this many values of which two draws are equal with a probability of `repeats`.

    Returns:
        The exponent; None if no exponent from 0.02 to 4 gives that.

    """
    low, high = _MIN_EXPONENT, _MAX_EXPONENT
    if values < 2 or not _squares(low, values) <= repeats <= _squares(high, values):
        return None
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if _squares(middle, values) < repeats else (low, middle)
    return round((low + high) / 2, 4)


def _squares(exponent: float, values: int) -> float:
    return _power_sum(2 * exponent, values) / _power_sum(exponent, values) ** 2


def _power_sum(exponent: float, values: int) -> float:
    exact = float(np.power(_ranks(min(values, _EXACT_TERMS)), -exponent).sum())
    if values <= _EXACT_TERMS:
        return exact
    start, end = _EXACT_TERMS + 0.5, values + 0.5
    if abs(exponent - 1.0) < 1e-9:
        return exact + math.log(end / start)
    return exact + float((end ** (1 - exponent) - start ** (1 - exponent)) / (1 - exponent))


@cache
def _ranks(values: int) -> Numbers:
    return np.arange(1, values + 1, dtype=np.float64)


def zipf_cumulative(exponent: float, values: int) -> Numbers:
    """The probability of one of the first r ranks, for r from 1 to the number of values."""
    sums = np.cumsum(np.power(np.arange(1, values + 1, dtype=np.float64), -exponent))
    cumulative: Numbers = sums / sums[-1]
    return cumulative


def drawn_counts(cumulative: Numbers, executions: int) -> Numbers:
    """How often each rank comes in this many executions that are drawn from a distribution; ranks that do not come are left out."""
    random = np.random.default_rng(42).random(executions)
    ranks = np.minimum(np.searchsorted(cumulative, random, side="right"), len(cumulative) - 1)
    counts = np.bincount(ranks)
    return counts[counts > 0].astype(np.float64)


def positions_difference(positions: Numbers, counts: Numbers, cumulative: Numbers) -> float:
    """The largest difference between the distribution of positions (from 1), each this many times, and a cumulative one."""
    order = np.argsort(positions)
    found = np.cumsum(counts[order]) / counts.sum()
    at = np.minimum(positions[order].astype(np.int64), len(cumulative)) - 1
    expected = cumulative[at]
    before = np.concatenate([[0.0], found[:-1]])
    expected_before = np.where(at > 0, cumulative[at - 1], 0.0)
    return float(max(np.abs(found - expected).max(), np.abs(before - expected_before).max()))
