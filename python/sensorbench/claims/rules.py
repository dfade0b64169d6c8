"""Rules of judgement: what an interval says of a claim."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from sensorbench.analysis.intervals import CONFIDENCE, MIN_RUNS, Interval, spread_over_runs
from sensorbench.analysis.verdicts import EQUIVALENCE_MARGIN, judge
from sensorbench.claims.claim import NOT_MEASURED, Judgement, Word, untested_for

# "About as much" means within this factor of what was published: machines, versions and scales differ.
ABOUT = 3.0
# "Near 1" means within this share of it.
NEAR = 0.25


def greater_than_one(interval: Interval | None) -> Judgement:
    """Judges "this ratio is above 1"."""
    if interval is None:
        return _not_measured()
    verdict = judge(interval)
    words: dict[str, Word] = {
        "slower": "holds",
        "faster": "does not hold",
        "equivalent": "no difference seen",
        "no difference seen": "no difference seen",
        "inconclusive": "inconclusive",
    }
    return Judgement(words[verdict.word], _shown(interval), verdict.reason)


def at_least_one(interval: Interval | None) -> Judgement:
    """Judges "this ratio is 1 or above"."""
    judgement = greater_than_one(interval)
    is_equivalent = interval is not None and judge(interval).word == "equivalent"
    return Judgement("holds", judgement.measured, judgement.reason) if is_equivalent else judgement


def near_one(interval: Interval | None) -> Judgement:
    """Judges "this ratio is near 1"."""
    return _within(interval, 1.0 / (1.0 + NEAR), 1.0 + NEAR, f"near 1 means within {NEAR:.0%}")


def near_or_above_one(interval: Interval | None) -> Judgement:
    """Judges "this ratio is near 1 or above"."""
    return _within(interval, 1.0 / (1.0 + NEAR), math.inf, f"near 1 means within {NEAR:.0%}")


def at_most(interval: Interval | None, limit: float, rule: str) -> Judgement:
    """Judges "this figure is not above a limit"."""
    return _within(interval, 0.0, limit, rule)


def about(interval: Interval | None, published: float) -> Judgement:
    """Judges "this ratio is about as large as published"."""
    return _within(interval, published / ABOUT, published * ABOUT, f"about means within a factor of {ABOUT:g} of {published:g}")


def _within(interval: Interval | None, low: float, high: float, rule: str) -> Judgement:
    if interval is None:
        return _not_measured()
    if interval.low is None or interval.high is None or interval.runs < MIN_RUNS:
        return Judgement("inconclusive", _shown(interval), f"{interval.runs} runs and no interval between runs; {rule}")
    if low <= interval.low and interval.high <= high:
        return Judgement("holds", _shown(interval), rule)
    if interval.high < low or interval.low > high:
        return Judgement("does not hold", _shown(interval), rule)
    return Judgement("inconclusive", _shown(interval), f"the interval reaches over the limit; {rule}")


def single_ratio(ratio: float | None, what: str) -> Judgement:
    """Judges "this ratio is above 1" of something that was measured once and has no interval."""
    if ratio is None or not math.isfinite(ratio):
        return _not_measured()
    measured = {"value": ratio, "low": None, "high": None}
    if abs(ratio - 1.0) <= EQUIVALENCE_MARGIN:
        return Judgement("no difference seen", measured, f"{what}; measured once, no interval")
    return Judgement("holds" if ratio > 1.0 else "does not hold", measured, f"{what}; measured once, no interval")


def ratio_over_runs(ratios: Sequence[float]) -> Interval | None:
    """The interval of a ratio that each run gives once."""
    known = [ratio for ratio in ratios if ratio > 0.0 and math.isfinite(ratio)]
    return spread_over_runs(np.array(known), CONFIDENCE) if known else None


def _not_measured() -> Judgement:
    return untested_for(NOT_MEASURED)


def _shown(interval: Interval) -> dict[str, Any]:
    return {
        key: value if not isinstance(value, float) or math.isfinite(value) else None for key, value in asdict(interval).items()
    }
