"""What trials say beside the default that was measured around them: a machine is faster at one time than at another."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Drift:
    """How far repetitions of the default were apart: the highest over the lowest, and the last over the first."""

    repetitions: int
    max_to_min: float
    last_to_first: float


def default_at(defaults: Mapping[int, float], place: int) -> float:
    """What the default would have been at a place in the order of trials, by its repetitions (place: value) before and after:
    between two of them along a straight line of logarithms, beyond the last as that.
    """
    places = sorted(defaults)
    return float(np.exp(np.interp(place, places, [math.log(defaults[place]) for place in places])))


def drift(values: Sequence[float]) -> Drift | None:
    """How far the default drifted; None when it was measured once."""
    if len(values) < 2:
        return None
    return Drift(len(values), max(values) / min(values), values[-1] / values[0])
