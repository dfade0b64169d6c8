"""Group-sequential designs: how confident an interval must be at each of several looks, so that stopping early errs no more often.

The error is spent by the function of Pocock's type of Lan and DeMets ("Discrete sequential boundaries for clinical trials", Biometrika 70, 1983),
alpha * ln(1 + (e - 1) * t), where t is the share of the runs that a look has. The levels of the looks follow by the numerical integration of
Armitage, McPherson and Rowe ("Repeated significance tests on accumulating data", Journal of the Royal Statistical Society A 132, 1969). They are
levels of a normal statistic, and are used for Student's t as Pocock does ("Group sequential methods", Biometrika 64, 1977); the simulation of
claims shows how often that errs with few runs.
"""

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

_STEPS = 801
# Beyond this many standard deviations nothing happens.
_FAR = 9.0


def spent(share: float, alpha: float) -> float:
    """How much of a one-sided error may be spent when a share of the runs is there."""
    return alpha * math.log(1.0 + (math.e - 1.0) * share)


@cache
def confidences(looks: tuple[int, ...], confidence: float) -> tuple[float, ...]:
    """The confidence of the interval at each look, of which all together err as often as one interval of `confidence`.

    Args:
        looks: the numbers of runs at which results are looked at, rising; the last is all of them.
        confidence: of a single interval, two-sided.

    """
    return tuple(1.0 - 2.0 * level for level in _one_sided_levels(looks, (1.0 - confidence) / 2))


def _one_sided_levels(looks: Sequence[int], alpha: float) -> list[float]:
    """The nominal one-sided level of each look. Between looks, the score process has independent normal increments."""
    from scipy.special import ndtr

    grid: NDArray[np.float64] = np.array([0.0])
    # The measure of sums that have not crossed a bound yet, at the points of the grid.
    weights: NDArray[np.float64] = np.array([1.0])
    levels, before, at = [], 0.0, 0.0
    for runs in looks:
        share = runs / looks[-1]
        step, to_spend = math.sqrt(share - at), spent(share, alpha) - before

        def crossing(bound: float, step: float = step) -> float:
            return float(weights @ ndtr((grid - bound) / step))  # noqa: B023 - it is called within this turn of the loop

        low, high = 0.0, _FAR
        while high - low > 1e-10:
            middle = (low + high) / 2
            low, high = (middle, high) if crossing(middle) > to_spend else (low, middle)
        levels.append(float(ndtr(-high / math.sqrt(share))))
        points = np.linspace(-_FAR * math.sqrt(share), high, _STEPS)
        density = (weights @ np.exp(-0.5 * ((points - grid[:, None]) / step) ** 2)) / (step * math.sqrt(2 * math.pi))
        grid, weights = points, density * _simpson(points)
        before, at = spent(share, alpha), share
    return levels


def _simpson(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weights of Simpson's rule for an odd number of points."""
    weights = np.full(len(points), 2.0)
    weights[1::2] = 4.0
    weights[[0, -1]] = 1.0
    weights *= (points[1] - points[0]) / 3.0
    return weights
