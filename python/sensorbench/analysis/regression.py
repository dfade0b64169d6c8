"""Whether a new run is slower than those before it."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sensorbench.analysis.intervals import CONFIDENCE, MIN_RUNS, t_quantile
from sensorbench.analysis.verdicts import EQUIVALENCE_MARGIN


@dataclass(frozen=True)
class Regression:
    """A new figure against earlier ones: between which values another such run was to be expected."""

    word: Literal["slower", "faster", "as before", "inconclusive"]
    new: float
    expected: float
    low: float | None
    high: float | None
    earlier: int


def regression(
    earlier: list[float], new: float, *, margin: float = EQUIVALENCE_MARGIN, confidence: float = CONFIDENCE
) -> Regression:
    """Compares a figure with the same figure of earlier runs, by the prediction interval of a normal sample of logarithms
    (Hahn and Meeker, "Statistical Intervals", 1991, section 4.7). What is within the margin is as before in any case.
    """
    known = [figure for figure in earlier if figure > 0.0 and math.isfinite(figure)]
    expected = math.exp(float(np.mean(np.log(known)))) if known else float("nan")
    if len(known) < MIN_RUNS or not new > 0.0:
        return Regression("inconclusive", new, expected, None, None, len(known))
    logs = np.log(known)
    half = t_quantile(len(known) - 1, 0.5 + confidence / 2) * float(np.std(logs, ddof=1)) * math.sqrt(1.0 + 1.0 / len(known))
    low, high = expected * math.exp(-half), expected * math.exp(half)
    is_equivalent = abs(math.log(new / expected)) <= math.log1p(margin)
    if is_equivalent or low <= new <= high:
        return Regression("as before", new, expected, low, high, len(known))
    return Regression("slower" if new > high else "faster", new, expected, low, high, len(known))
