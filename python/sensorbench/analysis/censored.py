"""Quantiles of values of which only intervals are known: interval-censored data."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def quantile_bounds(low: Floats, high: Floats, shares: Mapping[str, float]) -> dict[str, tuple[float, float]]:
    """Between which values each quantile lies.

    With each value inside its interval, the k-th smallest of the values lies between the k-th smallest lower and the k-th smallest upper
    bound. So these bounds hold whatever the distribution is, and are reached: nothing is assumed about where in its interval a value lies,
    as maximum likelihood would have to (Turnbull, "The empirical distribution function with arbitrarily grouped, censored and truncated
    data", Journal of the Royal Statistical Society B 38(3), 1976).

    Args:
        low: lower bounds, at least one.
        high: upper bounds, each not below its lower one; infinite where there is none.
        shares: the quantiles by name, above 0 and at most 1.

    Returns:
        The bounds by name: the smallest value that at least so large a share of all is not above.

    """
    lows, highs = np.sort(low), np.sort(high)
    places = {name: max(0, int(np.ceil(share * len(lows) - 1e-9)) - 1) for name, share in shares.items()}
    return {name: (float(lows[place]), float(highs[place])) for name, place in places.items()}
