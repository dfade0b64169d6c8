"""Fits a schedule to arrivals: steps of the rate, and how arrivals are spaced within a step.

Rates are followed from coarse to fine. At each length of windows, the counts vary around those of the coarser windows: as much as chance
makes independent arrivals vary (their mean), or more. Only what is more is a change of the rate; what is seen of it is shrunk by the share
that chance has (James and Stein 1961), so that the arrivals of the schedule, which bring chance of their own, are as bursty as those that
were recorded.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sensorbench.results.traffic_fit import FittedSchedule, FittedStep

Counts = NDArray[np.float64]

WINDOWS_S = (0.1, 1.0, 10.0, 60.0, 600.0, 3600.0)
# Steps of a schedule, at most: an experiment file has them all.
_MAX_STEPS = 3000
_MIN_GROUPS = 8
# Arrivals that vary less than half as much as independent ones are evenly spaced rather than independent.
_EVEN = 0.5
_DEVIATIONS = 3.0


@dataclass(frozen=True)
class Arrivals:
    """How many operations arrived in each window of a length, and how long the whole was."""

    counts: Counts
    window_s: float
    length_s: float


def finest_window_s(length_s: float) -> float:
    """The length of the shortest windows that a schedule of this length may follow."""
    return next((window for window in WINDOWS_S if length_s / window <= _MAX_STEPS), WINDOWS_S[-1])


def dispersion(counts: Counts) -> float:
    """The variance of counts over their mean; 1 for independent arrivals."""
    mean = float(counts.mean())
    return float(counts.var(ddof=1)) / mean if len(counts) > 1 and mean else 0.0


def in_windows(counts: Counts, times: int) -> Counts:
    """The counts of windows that are this many times as long; what does not fill one is left out."""
    whole = len(counts) // times * times
    summed: Counts = counts[:whole].reshape(-1, times).sum(axis=1)
    return summed


def fit_schedule(arrivals: Arrivals, concurrency: int) -> FittedSchedule:
    """The schedule of some arrivals.

    Args:
        arrivals: of the operations that the experiment has.
        concurrency: how many may be in flight.

    """
    counts = arrivals.counts
    levels = [1, *(round(window / arrivals.window_s) for window in WINDOWS_S if window > arrivals.window_s)]
    levels = [level for level in levels if len(counts) // level >= _MIN_GROUPS] or [1]
    noise = _noise(counts, levels)
    rates = np.full(len(counts), counts.mean())
    coarse = len(counts)
    finest = len(counts)
    for level in reversed(levels):
        share = _kept_share(counts, level, coarse, noise)
        if share > 0.0:
            # As shares of the coarser window, so that what is left of its chance makes no rate negative.
            around = _spread(counts, coarse)
            rates = rates * (1 + share * (_spread(counts, level) / np.where(around > 0, around, 1.0) - (around > 0)))
            finest = level
        coarse = level
    rates *= counts.sum() / max(rates.sum(), 1e-300)
    return FittedSchedule(
        arrival="constant" if noise < 1.0 else "poisson",
        concurrency=concurrency,
        steps=_steps(rates, finest, arrivals),
    )


def _noise(counts: Counts, levels: Sequence[int]) -> float:
    """How much arrivals vary by themselves, as a share of what independent ones do: 1, or less where they are evenly spaced."""
    coarse = next((level for level in levels if level > 1), len(counts))
    around = counts - _spread(counts, coarse)
    freedom = max(1, len(counts) - -(-len(counts) // coarse))
    found = float((around**2).sum()) / freedom / max(float(counts.mean()), 1e-300)
    return min(found, _EVEN) if found < _EVEN else 1.0


def _spread(counts: Counts, level: int) -> Counts:
    """For each window, the mean of the counts of the coarser window that it lies in."""
    groups = np.arange(len(counts)) // level
    sums, sizes = np.bincount(groups, weights=counts), np.bincount(groups)
    spread: Counts = (sums / sizes)[groups]
    return spread


def _kept_share(counts: Counts, level: int, coarse: int, noise: float) -> float:
    """Which share of the deviations at a level is a change of the rate; 0 where chance alone could make them."""
    summed = in_windows(counts, level)
    inside = coarse // level
    if coarse == level:
        return 0.0
    groups = np.arange(len(summed)) // inside
    sums, sizes = np.bincount(groups, weights=summed), np.bincount(groups)
    freedom = int((sizes - 1).sum())
    if freedom < 1:
        return 0.0
    variance = float(((summed - (sums / sizes)[groups]) ** 2).sum()) / freedom
    # The sum of several evenly spaced windows varies no more than one of them.
    by_chance = float(summed.mean()) * noise if noise == 1.0 else float(counts.mean()) * noise
    if variance <= by_chance * (1 + _DEVIATIONS * (2 / freedom) ** 0.5) or variance <= 0.0:
        return 0.0
    return float(((variance - by_chance) / variance) ** 0.5)


def _steps(rates: Counts, level: int, arrivals: Arrivals) -> list[FittedStep]:
    """Steps of windows of a level; neighbours of one rate are one step, and the last continues to the end."""
    steps: list[FittedStep] = []
    for start in range(0, len(rates), level):
        windows = len(rates[start : start + level])
        rate = round(float(rates[start]) / arrivals.window_s, 4)
        length_s = windows * arrivals.window_s
        if steps and steps[-1].rate_per_s == rate:
            length_s += steps.pop().length_s
        steps.append(FittedStep(length_s=length_s, rate_per_s=rate))
    last = steps.pop()
    rest_s = max(0.0, arrivals.length_s - len(rates) * arrivals.window_s)
    return [*steps, FittedStep(length_s=round(last.length_s + rest_s, 6), rate_per_s=last.rate_per_s)]


def expected_counts(schedule: FittedSchedule, window_s: float) -> Counts:
    """How many operations of a schedule come in each whole window, on average, shape (windows,)."""
    ends = np.cumsum([step.length_s for step in schedule.steps])
    areas = np.cumsum([step.length_s * step.rate_per_s for step in schedule.steps])
    edges = np.arange(int(ends[-1] / window_s + 1e-9) + 1) * window_s
    expected: Counts = np.diff(np.interp(edges, np.concatenate([[0.0], ends]), np.concatenate([[0.0], areas])))
    return expected


def drawn_arrivals(schedule: FittedSchedule, window_s: float, seed: int) -> Counts:
    """How many operations of a schedule come in each whole window, in one run with this seed."""
    expected = expected_counts(schedule, window_s)
    if schedule.arrival == "constant":
        whole = np.floor(np.concatenate([[0.0], np.cumsum(expected)]) + 1e-9)
        counts: Counts = np.diff(whole)
        return counts
    return np.random.default_rng(seed).poisson(expected).astype(np.float64)
