"""Where a series changes its level.

E-divisive (Matteson and James, "A nonparametric approach for multiple change point analysis of multivariate data", Journal of
the American Statistical Association 109, 2014), as used on performance tests by Daly et al. ("The use of change point
detection to identify software performance regressions in a continuous integration system", ICPE 2020): the series is cut
where the energy distance between the two sides is greatest, if shuffled series nearly never reach it, and each side is
searched again. Changed here: blocks of neighbouring values are shuffled, not single values, because latencies next to each
other are alike, and distances are between ranks, so that a single spike is not a change.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sensorbench.analysis.sample import Floats, automatic_block_length

MIN_SEGMENT = 5
PERMUTATIONS = 199
SIGNIFICANCE = 0.01
# Shuffled blocks are this many times as long as the bootstrap's: by simulation, series with an autocorrelation of 0.7 then show a
# change that is not there in 4% of cases, independent ones in 1%.
BLOCK_LENGTHS = 4
RUNNING_MEDIAN = 21
# Longer series are averaged down to this many values first: the search is quadratic.
MAX_VALUES = 400


@dataclass(frozen=True)
class ChangePoint:
    """A change: the place of the first value after it, and the medians before and after."""

    place: int
    before: float
    after: float


def change_points(series: Floats, *, seed: int = 0) -> list[ChangePoint]:
    """The changes of a series, in order."""
    series = np.asarray(series, dtype=np.float64)
    width = max(1, int(np.ceil(len(series) / MAX_VALUES)))
    averaged = np.array([series[start : start + width].mean() for start in range(0, len(series), width)])
    places = sorted(_search(averaged, 0, np.random.default_rng(seed)))
    ends = [0, *places, len(averaged)]
    medians = [float(np.median(averaged[start:end])) for start, end in pairwise(ends)] if len(averaged) else []
    return [ChangePoint(place * width, medians[number], medians[number + 1]) for number, place in enumerate(places)]


def _search(series: Floats, offset: int, generator: np.random.Generator) -> list[int]:
    if len(series) < 2 * MIN_SEGMENT:
        return []
    ranks = np.argsort(np.argsort(series, kind="stable"), kind="stable").astype(np.float64)
    place, greatest = _greatest_divergence(ranks)
    # How long neighbours are alike is seen around a running median: the changes themselves would make them look alike.
    from scipy.ndimage import median_filter

    block = BLOCK_LENGTHS * automatic_block_length(series - median_filter(series, RUNNING_MEDIAN, mode="nearest"))
    shuffled = (_greatest_divergence(_shuffled(ranks, block, generator))[1] for _ in range(PERMUTATIONS))
    if _is_reached_too_often(shuffled, greatest):
        return []
    return [*_search(series[:place], offset, generator), offset + place, *_search(series[place:], offset + place, generator)]


def _is_reached_too_often(shuffled: Iterable[float], greatest: float) -> bool:
    """Whether the share of shuffled series that reach it is above the significance. No more are shuffled than it takes to know."""
    reaching = (divergence for divergence in shuffled if divergence >= greatest)
    return any((reached + 1) / (PERMUTATIONS + 1) > SIGNIFICANCE for reached, _ in enumerate(reaching, 1))


def _shuffled(ranks: Floats, block: int, generator: np.random.Generator) -> Floats:
    blocks = [ranks[start : start + block] for start in range(0, len(ranks), block)]
    return np.concatenate([blocks[number] for number in generator.permutation(len(blocks))])


def _greatest_divergence(values: Floats) -> tuple[int, float]:
    """The place where the energy distance between the values before and after is greatest, and that distance."""
    n = len(values)
    distances = np.abs(values[:, None] - values[None, :])
    # Sums of distances inside the first i values, and from them to the rest, for every i.
    inside_first = np.concatenate([[0.0], np.cumsum(2.0 * np.tril(distances, -1).sum(axis=1))])
    to_all = np.concatenate([[0.0], np.cumsum(distances.sum(axis=1))])
    total = to_all[-1]
    places = np.arange(MIN_SEGMENT, n - MIN_SEGMENT + 1)
    first, second = places.astype(np.float64), (n - places).astype(np.float64)
    across = to_all[places] - inside_first[places]
    inside_second = total - 2.0 * across - inside_first[places]
    energy = 2.0 * across / (first * second) - inside_first[places] / first**2 - inside_second / second**2
    divergence = energy * first * second / n
    best = int(np.argmax(divergence))
    return int(places[best]), float(divergence[best])
