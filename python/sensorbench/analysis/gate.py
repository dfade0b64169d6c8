"""Whether a change makes something slower, decided as early as the noise of the session allows.

Base, base again and head are measured in interleaved repetitions. After some of them (looks), intervals of head over base decide, each so confident
that all looks together err as often as one (`sequential.py`). A slowdown is found where the interval lies above 1 and the ratio beyond the margin;
that there is none where the interval ends below the margin. Several operations share the error of finding a slowdown (Bonferroni), so that a gate
with many of them cries wolf no more often than a gate with one; to say that none of them is slower, each must be found to be so, which needs no
correction (Berger, "Multiparameter hypothesis testing and acceptance sampling", Technometrics 24, 1982).

Base against itself is the control: where it differs from itself, the session says nothing of head.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sensorbench.analysis.intervals import CONFIDENCE, Interval, t_quantile
from sensorbench.analysis.sequential import confidences

Word = Literal["slower", "not slower", "undecided"]

# Looks come after this many repetitions. With fewer than four, Student's t says next to nothing.
LOOKS = (4, 6, 9, 13, 20)
# A difference is detectable where it is found in this share of sessions.
POWER = 0.8
# Variance of head over the geometric mean of two bases, as a share of that of one base over the other.
_CONTRAST_SHARE = (1.0 + 0.5) / 2.0


@dataclass(frozen=True)
class LookLevels:
    """How confident intervals are at a look.

    Attributes:
        runs: repetitions of each side that the look has.
        slower: of the interval that may show a slowdown.
        not_slower: of the interval that may show that there is none, and of the control's.

    """

    runs: int
    slower: float
    not_slower: float


@dataclass(frozen=True)
class GateLook:
    """What one look has of an operation: head over base for each of the two levels, and base again over base."""

    slower: Interval
    not_slower: Interval
    control: Interval


def looks_until(repetitions: int) -> tuple[int, ...]:
    """The repetitions after which looks come, if there are this many at most.

    Raises:
        ValueError: with fewer than the first look needs.

    """
    if repetitions < LOOKS[0]:
        raise ValueError(f"{repetitions}: a gate needs at least {LOOKS[0]} repetitions")
    return (*(look for look in LOOKS if look < repetitions), repetitions)


def look_levels(looks: Sequence[int], operations: int) -> list[LookLevels]:
    """How confident intervals are at each look.

    Args:
        looks: numbers of repetitions, rising; the last is all of them.
        operations: how many operations are judged.

    """
    slower = confidences(tuple(looks), 1.0 - (1.0 - CONFIDENCE) / operations)
    not_slower = confidences(tuple(looks), CONFIDENCE)
    return [LookLevels(*of_look) for of_look in zip(looks, slower, not_slower, strict=True)]


def decide(look: GateLook, margin: float) -> Word:
    """What one look says of an operation; `margin` is the share by which it may be slower."""
    if control_differs(look.control, margin):
        return "undecided"
    if look.slower.low is not None and look.slower.low > 1.0 and look.slower.value > 1.0 + margin:
        return "slower"
    if look.not_slower.high is not None and look.not_slower.high < 1.0 + margin:
        return "not slower"
    return "undecided"


def control_differs(control: Interval, margin: float) -> bool:
    """Whether base is faster or slower than itself, by more than the margin."""
    if control.low is None or control.high is None:
        return False
    is_apart = control.low > 1.0 or control.high < 1.0
    return is_apart and abs(math.log(control.value)) > math.log1p(margin)


def detectable(control_deviation: float, level: LookLevels, margin: float) -> float:
    """The slowdown that is found in four of five sessions.

    Args:
        control_deviation: standard deviation of the logarithm of base again over base, between repetitions.
        level: the look that finds it.
        margin: share by which head may be slower.

    Returns:
        As a share: 0.05 for 5%.

    """
    error, power = _error(control_deviation, level.runs), t_quantile(level.runs - 1, POWER)
    bound = max(t_quantile(level.runs - 1, 0.5 + level.slower / 2) * error, math.log1p(margin))
    return math.expm1(bound + power * error)


def decidable_margin(control_deviation: float, level: LookLevels) -> float:
    """The smallest margin below which a head that is as fast as base is found to be, in four of five sessions.

    Args:
        control_deviation: standard deviation of the logarithm of base again over base, between repetitions.
        level: the look that finds it.

    Returns:
        As a share: 0.05 for 5%.

    """
    quantiles = t_quantile(level.runs - 1, 0.5 + level.not_slower / 2) + t_quantile(level.runs - 1, POWER)
    return math.expm1(quantiles * _error(control_deviation, level.runs))


def _error(control_deviation: float, runs: int) -> float:
    """The standard error of the logarithm of head over base."""
    return control_deviation * math.sqrt(_CONTRAST_SHARE / runs)
