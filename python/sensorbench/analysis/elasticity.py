"""How elastic a cluster is that grows under load: when it is stable again, and what the change cost, in the definitions of the study of
distributed databases (its sections are named below). Set times in s over time in s; the score has no unit, and 0 is perfect.

Where the study leaves something open, this is what is done here. Both axes are in seconds (its charts have minutes; `minutes` is
the score with those). The response time of one request is the set's time divided by the requests of a *thread*. A set is stable
from the beginning of the five sets on that are; a difference of zero is small, even where the median is zero, too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from sensorbench.analysis.sample import Floats

if TYPE_CHECKING:
    from scipy.interpolate import PPoly

# As many sets in a row are stable (7.2), and as many at least are to lie between bootstrap and stability, or the spline overshoots (7.3).
IN_A_ROW = 5
MIN_SETS = 10
# How far sets may be from the level at the end, by the band rule: this many standard deviations of set times before the bootstrap, or this
# share of that level where they hardly vary.
BAND_DEVIATIONS = 2.0
BAND_SHARE = 0.05
MINUTE_S = 60.0


@dataclass(frozen=True)
class Sets:
    """Request sets in the order of their begin: when each began (s, rising), how long it took (s), and the standard deviation (s) of that."""

    times_s: Floats
    durations_s: Floats
    deviations_s: Floats

    def between(self, from_s: float, to_s: float) -> "Sets":
        """The sets that began at `from_s` or later, and before `to_s`."""
        return self.only((self.times_s >= from_s) & (self.times_s < to_s))

    def only(self, chosen: slice | np.ndarray) -> "Sets":
        """Some of the sets."""
        return Sets(self.times_s[chosen], self.durations_s[chosen], self.deviations_s[chosen])

    def __len__(self) -> int:
        return len(self.times_s)


@dataclass(frozen=True)
class Stability:
    """When sets are stable again (s): by the source's rule of five small differences; by the same when they must be near the level at
    the end, too; and by the band alone: from then on the median of any five is near that level, however they differ.
    `median_difference_s` is what is small. Of sets that vary by chance alone, five small differences come only once in some sixty.
    """

    at_s: float | None
    in_band_at_s: float | None
    by_band_at_s: float | None
    median_difference_s: float


@dataclass(frozen=True)
class Elasticity:
    """The score and its parts: areas in s², levels and response times in s.

    `definitions` are scores by other readings of the definition:

    - `above_ramp`: where the curve is below the ramp counts as nothing
    - `excess_deviation`: only deviation beyond that of the stable sets before counts
    - `above_level`: the triangle is above the ramp, so that area A is that above the level before the bootstrap
    - `trapezoid`: straight lines between the sets instead of splines
    - `minutes`: time is in minutes, set times are in seconds.
    """

    elasticity: float
    definitions: Mapping[str, float]
    area_a: float
    area_b: float
    bootstrap_at_s: float
    stable_at_s: float
    av1_s: float
    av2_s: float
    rt1_s: float
    rt2_s: float
    sets_between: int


def stability(sets: Sets, bootstrap_at_s: float, not_before_s: float | None = None) -> Stability:
    """When a cluster is stable again after its bootstrap (7.2), and not before another moment, if one is given: that at which its data
    are where they belong. Raises ValueError if fewer than two sets came before the bootstrap.
    """
    before = sets.between(-np.inf, bootstrap_at_s).durations_s
    if len(before) < 2:
        raise ValueError(f"{len(before)} sets began before the bootstrap at {bootstrap_at_s:g} s: expected at least two")
    median_s = float(np.median(np.abs(np.diff(before))))
    later = sets.times_s >= (bootstrap_at_s if not_before_s is None else not_before_s)
    times_s, durations_s = sets.times_s[later], sets.durations_s[later]
    if len(times_s) < IN_A_ROW:
        return Stability(None, None, None, median_s)
    differences = np.abs(np.diff(sets.durations_s, prepend=np.nan))[later]
    small = (differences < median_s) | (differences == 0.0)
    level_s = float(durations_s[-max(IN_A_ROW, len(durations_s) // 4) :].mean())
    band_s = max(BAND_DEVIATIONS * float(before.std(ddof=1)), BAND_SHARE * level_s)
    near = np.abs(durations_s - level_s) <= band_s
    first = _first_five(small), _first_five(small & near)
    away = np.flatnonzero(np.abs(np.median(_fives(durations_s), axis=1) - level_s) > band_s)
    # The middle of the first five whose median is near, and whose successors' are.
    by_band = int(away[-1]) + 1 + IN_A_ROW // 2 if len(away) else 0
    places = (*first, by_band if by_band <= len(times_s) - IN_A_ROW // 2 - 1 else None)
    at_s, in_band_at_s, by_band_at_s = (None if place is None else float(times_s[place]) for place in places)
    return Stability(at_s, in_band_at_s, by_band_at_s, median_s)


def _fives(values: np.ndarray) -> np.ndarray:
    """Each five values in a row."""
    return np.lib.stride_tricks.sliding_window_view(values, IN_A_ROW)


def _first_five(holds: np.ndarray) -> int | None:
    """The first place from which something holds five times in a row."""
    places = np.flatnonzero(_fives(holds).sum(axis=1) == IN_A_ROW)
    return int(places[0]) if len(places) else None


def elasticity(sets: Sets, bootstrap_at_s: float, stable_at_s: float, requests_per_thread: float) -> Elasticity:
    """The score (7.3). The levels are the means of the sets that began before the bootstrap, and of those from stability on.

    Raises ValueError if no set came before the bootstrap, between the two, or after.
    """
    from scipy.interpolate import CubicSpline

    before, after = sets.between(-np.inf, bootstrap_at_s), sets.between(stable_at_s, np.inf)
    inside = sets.between(bootstrap_at_s, stable_at_s)
    named = {"before the bootstrap": before, "between bootstrap and stability": inside, "after stability": after}
    if missing := [where for where, part in named.items() if not len(part)]:
        raise ValueError(f"no set began {missing[0]} (bootstrap at {bootstrap_at_s:g} s, stable at {stable_at_s:g} s)")
    av1_s, av2_s = float(before.durations_s.mean()), float(after.durations_s.mean())
    around = _around(sets, bootstrap_at_s, stable_at_s)
    curve = CubicSpline(around.times_s, around.durations_s)
    over_ramp = _minus_line(curve, bootstrap_at_s, av1_s, stable_at_s, av2_s)
    deviation = CubicSpline(around.times_s, around.deviations_s)
    area_a, area_b = (_integral(item, bootstrap_at_s, stable_at_s) for item in (over_ramp, deviation))
    length_s = stable_at_s - bootstrap_at_s
    rt1_s, rt2_s = av1_s / requests_per_thread, av2_s / requests_per_thread
    unit = (rt1_s + rt2_s) * (av1_s + av2_s)
    excess_b = area_b - float(before.deviations_s.mean()) * length_s
    triangle = length_s * (av1_s - av2_s) / 2.0
    straight_y, straight_s = (
        _trapezoid(around.times_s, values, bootstrap_at_s, stable_at_s) for values in (around.durations_s, around.deviations_s)
    )
    areas = {
        "above_ramp": _positive_integral(over_ramp, bootstrap_at_s, stable_at_s) + area_b,
        "excess_deviation": area_a + excess_b,
        "above_level": area_a - triangle + area_b,
        "trapezoid": straight_y - length_s * (av1_s + av2_s) / 2.0 + straight_s,
        "minutes": (area_a + area_b) / MINUTE_S,
    }
    return Elasticity(
        elasticity=(area_a + area_b) / unit,
        definitions={name: area / unit for name, area in areas.items()},
        area_a=area_a,
        area_b=area_b,
        bootstrap_at_s=bootstrap_at_s,
        stable_at_s=stable_at_s,
        av1_s=av1_s,
        av2_s=av2_s,
        rt1_s=rt1_s,
        rt2_s=rt2_s,
        sets_between=len(inside),
    )


def scalability(av_s: float, av_doubled_s: float) -> float:
    """How much longer sets take on twice the nodes with twice the data and load (7.4); below 0 is better than in proportion."""
    return (av_doubled_s - av_s) / av_s


def _around(sets: Sets, from_s: float, to_s: float) -> Sets:
    """The sets between two moments, both included, and the next one beyond a moment at which no set began: the curve is known there then,
    and what is further away, where it may have a kink, does not bend it.
    """
    first = int(np.searchsorted(sets.times_s, from_s, side="right")) - 1
    last = int(np.searchsorted(sets.times_s, to_s, side="left"))
    return sets.only(slice(max(0, first), last + 1))


def _minus_line(curve: "PPoly", from_s: float, from_value: float, to_s: float, to_value: float) -> "PPoly":
    """A curve without the straight line between two points."""
    slope = (to_value - from_value) / (to_s - from_s)
    coefficients = curve.c.copy()
    # Of the polynomials of each piece, which begin at their knots, the last two are the slope and the value there.
    coefficients[-2] -= slope
    coefficients[-1] -= from_value + slope * (curve.x[:-1] - from_s)
    from scipy.interpolate import PPoly

    return PPoly(coefficients, curve.x)


def _integral(curve: "PPoly", from_s: float, to_s: float) -> float:
    """Exact: a spline is made of polynomials."""
    return float(curve.integrate(from_s, to_s))


def _positive_integral(curve: "PPoly", from_s: float, to_s: float) -> float:
    """The integral of what of a curve is above zero: between its roots it has one sign."""
    roots = curve.roots(extrapolate=False)
    edges = [from_s, *sorted(root for root in roots if from_s < root < to_s), to_s]
    return sum(max(0.0, _integral(curve, start, end)) for start, end in pairwise(edges))


def _trapezoid(times_s: Floats, values: Floats, from_s: float, to_s: float) -> float:
    """The area under straight lines between values."""
    within = (times_s > from_s) & (times_s < to_s)
    edges_s = np.concatenate([[from_s], times_s[within], [to_s]])
    return float(np.trapezoid(np.interp(edges_s, times_s, values), edges_s))
