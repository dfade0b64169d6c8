"""Fewer points for a chart than there are values."""

import numpy as np
from numpy.typing import NDArray

from sensorbench.analysis.sample import Floats


def extremes(values: Floats, max_points: int) -> NDArray[np.intp]:
    """Places of the values that a chart of this many points shows, in order: all of them if there is room, else the least and the greatest
    of each of equally long parts, so that no spike is lost. Equal values give equal places.
    """
    count = len(values)
    if count <= max_points:
        return np.arange(count)
    parts = max(1, max_points // 2)
    part = np.arange(count) * parts // count
    order = np.lexsort((values, part))
    first = np.searchsorted(part, np.arange(parts))
    last = np.append(first[1:], count) - 1
    return np.unique(np.concatenate([order[first], order[last]]))
