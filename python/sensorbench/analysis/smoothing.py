"""A line through noisy latencies."""

import numpy as np

from sensorbench.analysis.sample import Floats

# Each value moves the line by this share of the way to it.
FACTOR = 0.1
# This many values are smoothed at once, by a matrix.
_BLOCK = 128


def exponentially_smoothed(values: Floats, factor: float = FACTOR) -> Floats:
    """Exponential smoothing (Brown, "Smoothing, Forecasting and Prediction", 1963) started at the median of the first values,
    so that one slow first request does not bend the whole line.
    """
    level = float(np.median(values[:10])) if len(values) else 0.0
    ages = np.subtract.outer(np.arange(_BLOCK), np.arange(_BLOCK))
    weights = np.where(ages >= 0, factor * (1.0 - factor) ** np.maximum(ages, 0), 0.0)
    remaining = (1.0 - factor) ** np.arange(1, _BLOCK + 1)
    smoothed = np.empty(len(values))
    for start in range(0, len(values), _BLOCK):
        block = values[start : start + _BLOCK]
        size = len(block)
        smoothed[start : start + size] = weights[:size, :size] @ block + remaining[:size] * level
        level = smoothed[start + size - 1]
    return smoothed
