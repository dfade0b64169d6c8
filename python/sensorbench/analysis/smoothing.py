"""A line through noisy latencies."""

import numpy as np

from sensorbench.analysis.sample import Floats


def exponentially_smoothed(values: Floats, weight: float = 0.1) -> Floats:
    """Exponential smoothing (Brown, "Smoothing, Forecasting and Prediction", 1963) started at the median of the first values,
    so that one slow first request does not bend the whole line.
    """
    smoothed = np.empty(len(values))
    level = float(np.median(values[:10])) if len(values) else 0.0
    for place, value in enumerate(values):
        level += weight * (value - level)
        smoothed[place] = level
    return smoothed
