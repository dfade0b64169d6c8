"""What was measured of the figures that claims speak of, and the interval of a formula over them."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sensorbench.analysis.intervals import CONFIDENCE, MIN_RUNS, Interval, mean_over_runs, spread_over_runs, t_quantile
from sensorbench.claims.expression import Expression, Figure, Floats

# What is measured once has no spread of its own. Between loads of one dataset into fresh tables the coefficient of variation is taken to be
# this; it is the largest of those with which rules are simulated.
LOAD_VARIATION = 0.20
# Sizes differ between loads by what the server happens to have merged.
SIZE_VARIATION = 0.05


class NotMeasuredError(Exception):
    """A figure is not known, for the reason that the message gives."""


@dataclass(frozen=True)
class RunValues:
    """A figure by run. Figures of the same `group` were measured side by side, so that what runs of equal number share cancels in their
    ratio. Where `assumed_variation` is given, the figure was measured once, and that is the coefficient of variation that is assumed.
    """

    by_run: Mapping[int, float]
    group: str = ""
    assumed_variation: float | None = None

    @classmethod
    def once(cls, value: float | None, variation: float) -> "RunValues | None":
        """A figure that was measured once, or None if it is not known."""
        return None if value is None else cls({0: value}, "once", variation)

    @classmethod
    def exactly(cls, value: float) -> "RunValues":
        """A figure that is not a measurement, and varies with nothing."""
        return cls({0: value}, "exact", 0.0)


@dataclass(frozen=True)
class WindowedSeries:
    """A series in order of time, as multiples of its level, and which of its values lie in the window that a claim speaks of. `before` has
    as many values as are known from a time without a change.
    """

    before: Floats
    window: Floats


class FigureEvidence(ABC):
    """What was measured, by the figures that claims speak of. None means that something was not measured."""

    @abstractmethod
    def values(self, figure: Figure) -> RunValues | None:
        """A figure by run.

        Raises:
            NotMeasuredError: if it is known why it was not measured.
            KeyError: if there is no such quantity, which is a mistake in a claim.

        """

    def interval(self, expression: Expression, confidence: float = CONFIDENCE, *, is_ratio: bool = True) -> Interval | None:
        """The interval of a formula. `is_ratio`: its logarithm is what varies evenly; not so of scores and differences."""
        values = [self.values(figure) for figure in expression.figures]
        known = [value for value in values if value is not None]
        return interval_of(expression, known, confidence, is_ratio=is_ratio) if len(known) == len(values) else None

    def levels(self, expressions: Sequence[Expression]) -> list[RunValues] | None:
        """Each of several figures by run, for a trend over them."""
        values = [self.values(figure) for expression in expressions for figure in expression.figures]
        known = [value for value in values if value is not None]
        return known if len(known) == len(expressions) else None

    def shares(self, figure: Figure) -> list[tuple[int, int]] | None:
        """Of each run, how many operations are meant, and of how many."""
        del figure
        return None

    def series(self, figure: Figure) -> list[WindowedSeries] | None:
        """A series of each run."""
        del figure
        return None

    def scale(self, name: str) -> float | None:
        """The value of something that findings depend on (`claim.SCALES`)."""
        del name
        return None

    def arithmetic(self, name: str) -> str:
        """What that value was computed of, in words; empty if it is as it was measured."""
        del name
        return ""


def interval_of(
    expression: Expression, values: Sequence[RunValues], confidence: float = CONFIDENCE, *, is_ratio: bool = True
) -> Interval | None:
    """The interval of a formula over figures, by run where all were measured side by side, else by Welch's t.

    Args:
        expression: a product of powers, or a sum, unless all figures were measured side by side.
        values: of each of the expression's figures.
        confidence: of the interval.
        is_ratio: whether the logarithm of a product is what varies evenly.

    Returns:
        The interval, without ends where there are fewer than three runs; None if a ratio has no positive value.

    """
    once = [value for value in values if value.assumed_variation is not None]
    if not once and len({value.group for value in values}) == 1:
        runs = sorted(set.intersection(*(set(value.by_run) for value in values)))
        by_run = np.array(expression.evaluate([np.array([value.by_run[run] for run in runs]) for value in values]), dtype=float)
        return _over_runs(by_run, confidence, is_ratio=is_ratio and expression.weights is not None) if runs else None
    if expression.weights is not None:
        return _product(expression, values, confidence)
    if expression.coefficients is not None and not once:
        return _sum(expression.coefficients, values, confidence)
    raise AssertionError(f"{expression}: figures that were measured apart are compared by a product or a sum")


def _over_runs(values: Floats, confidence: float, *, is_ratio: bool) -> Interval | None:
    if not is_ratio:
        return mean_over_runs(values, confidence)
    return spread_over_runs(values, confidence) if (values > 0.0).all() and np.isfinite(values).all() else None


def _product(expression: Expression, values: Sequence[RunValues], confidence: float) -> Interval | None:
    """Of figures that were measured apart, or once: the variance of the logarithm is the sum of those of the figures."""
    log, parts, assumed = math.log(expression.factor), [], 0.0
    for value, weight in zip(values, expression.weights or (), strict=True):
        numbers = np.array(list(value.by_run.values()), dtype=float)
        if not len(numbers) or not (numbers > 0.0).all():
            return None
        log += weight * float(np.log(numbers).mean())
        if value.assumed_variation is not None:
            assumed += (weight * value.assumed_variation) ** 2
        else:
            parts.append((weight**2 * _variance_of_mean(np.log(numbers)), len(numbers)))
    runs = min((count for _, count in parts), default=1)
    half = _half_width(parts, assumed, confidence)
    if half is None:
        return Interval(math.exp(log), None, None, confidence, runs, between_runs=False)
    return Interval(math.exp(log), math.exp(log - half), math.exp(log + half), confidence, runs, between_runs=bool(parts))


def _sum(coefficients: Sequence[float], values: Sequence[RunValues], confidence: float) -> Interval:
    arrays = [np.array(list(value.by_run.values()), dtype=float) for value in values]
    value = sum(factor * float(numbers.mean()) for factor, numbers in zip(coefficients, arrays, strict=True))
    parts = [(factor**2 * _variance_of_mean(numbers), len(numbers)) for factor, numbers in zip(coefficients, arrays, strict=True)]
    runs = min(count for _, count in parts)
    half = _half_width(parts, 0.0, confidence)
    low, high = (None, None) if half is None else (value - half, value + half)
    return Interval(value, low, high, confidence, runs, between_runs=half is not None)


def _variance_of_mean(numbers: Floats) -> float:
    return float(numbers.var(ddof=1)) / len(numbers) if len(numbers) > 1 else math.nan


def _half_width(parts: Sequence[tuple[float, int]], assumed: float, confidence: float) -> float | None:
    """Half the width of an interval by the variances of its parts (Welch, Biometrika 34, 1947) and a variance that is assumed; None
    where a part has fewer than three runs.
    """
    if any(count < MIN_RUNS for _, count in parts):
        return None
    variance = sum(part for part, _ in parts) + assumed
    degrees = math.inf
    if sum(part for part, _ in parts) > 0.0:
        degrees = variance**2 / sum(part**2 / (count - 1) for part, count in parts)
    return t_quantile(min(degrees, 1e6), 0.5 + confidence / 2) * math.sqrt(variance)
