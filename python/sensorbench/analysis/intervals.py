"""How sure a figure is: intervals by resampling runs and blocks.

Latencies next to each other are alike, and so are those of one run; an interval that treats them as independent is too
narrow. So the spread of a figure is found in two ways, and the larger one counts:

- between runs: whole runs are drawn again with replacement (a cluster bootstrap; Cameron, Gelbach and Miller,
  "Bootstrap-based improvements for inference with clustered errors", Review of Economics and Statistics 90, 2008), and the
  variance is corrected for their small number by R / (R − 1);
- within runs: the blocks of each run are drawn again (a block bootstrap; Künsch, "The jackknife and the bootstrap for general
  stationary observations", Annals of Statistics 17, 1989).

Figures are compared on a logarithmic scale, with Student's t for R − 1 degrees of freedom: with three runs that is wide, and
honestly so. With fewer than three runs only the spread within them is known, which the interval says.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from sensorbench.analysis.sample import Sample

MIN_RUNS = 3
RESAMPLES = 500
CACHED_CELLS = 16_384
CONFIDENCE = 0.95


@cache
def t_quantile(degrees: float, share: float) -> float:
    """The quantile of Student's t distribution with this many degrees of freedom, below which this share of it lies."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, share))


@dataclass(frozen=True)
class Interval:
    """A figure and between which values it lies, with the stated confidence. `low` and `high` are None when unknown."""

    value: float
    low: float | None
    high: float | None
    confidence: float
    runs: int
    between_runs: bool


@dataclass(frozen=True)
class _Spread:
    """The variance of the logarithm of a figure, and how well that is known."""

    variance: float
    degrees: float
    between_runs: bool


def interval(sample: Sample, metric: str, *, confidence: float = CONFIDENCE, seed: int = 0) -> Interval:
    """The interval of a figure."""
    value = sample.figure(metric)
    spread = _spread([(sample, 1.0)], metric, seed) if value > 0.0 and sample.supports(metric) else None
    return _interval(value, spread, confidence, sample.runs)


def ratio_interval(
    a: Sample, b: Sample, metric: str, *, paired: bool = True, confidence: float = CONFIDENCE, seed: int = 0
) -> Interval:
    """The interval of figure(a) / figure(b). `paired`: runs with equal numbers were neighbours in time, so that drift which
    both share cancels; else the two were measured at different times.
    """
    return contrast_interval([(a, 1.0), (b, -1.0)], metric, paired=paired, confidence=confidence, seed=seed)


def contrast_interval(
    terms: Sequence[tuple[Sample, float]], metric: str, *, paired: bool = True, confidence: float = CONFIDENCE, seed: int = 0
) -> Interval:
    """The interval of a product of powers of figures: figure(sample) ** weight, over all terms. A ratio has the weights 1 and
    −1, a geometric mean of n ratios 1/n and −1/n.
    """
    figures = [sample.figure(metric) for sample, _ in terms]
    runs = min(sample.runs for sample, _ in terms)
    if not all(figure > 0.0 for figure in figures):
        return Interval(math.nan, None, None, confidence, runs, between_runs=False)
    known = all(sample.supports(metric) for sample, _ in terms)
    spread = _spread(terms, metric, seed, paired=paired) if known else None
    return _interval(math.exp(_log(terms, figures)), spread, confidence, runs)


def spread_over_runs(values: NDArray[np.float64], confidence: float = CONFIDENCE) -> Interval:
    """The interval of the geometric mean of values of which each run gives one, by Student's t on their logarithms."""
    return product_over_runs([values], confidence)


def mean_over_runs(values: NDArray[np.float64], confidence: float = CONFIDENCE) -> Interval:
    """The interval of the mean of values of which each run gives one, by Student's t: for differences, which may be below 0."""
    value, runs = float(values.mean()), len(values)
    if runs < MIN_RUNS:
        return Interval(value, None, None, confidence, runs, between_runs=False)
    half = t_quantile(runs - 1, 0.5 + confidence / 2) * float(values.std(ddof=1)) / math.sqrt(runs)
    return Interval(value, value - half, value + half, confidence, runs, between_runs=True)


def product_over_runs(factors: Sequence[NDArray[np.float64]], confidence: float = CONFIDENCE) -> Interval:
    """The interval of a product of such geometric means, of factors that were measured independently of one another."""
    logs = [np.log(values) for values in factors]
    value = math.exp(sum(float(of_factor.mean()) for of_factor in logs))
    runs = min(len(of_factor) for of_factor in logs)
    if runs < MIN_RUNS:
        return Interval(value, None, None, confidence, runs, between_runs=False)
    parts = [(float(of_factor.var(ddof=1)) / len(of_factor), len(of_factor) - 1) for of_factor in logs]
    return _interval(value, _sum_of(parts), confidence, runs)


def scaled(of: Interval, factor: float) -> Interval:
    """The interval of a figure times a factor above zero."""
    low, high = (None if end is None else end * factor for end in (of.low, of.high))
    return replace(of, value=of.value * factor, low=low, high=high)


def _interval(value: float, spread: _Spread | None, confidence: float, runs: int) -> Interval:
    if spread is None or not math.isfinite(spread.variance):
        return Interval(value, None, None, confidence, runs, between_runs=False)
    half = t_quantile(spread.degrees, 0.5 + confidence / 2) * math.sqrt(spread.variance)
    return Interval(value, value * math.exp(-half), value * math.exp(half), confidence, runs, spread.between_runs)


def _spread(terms: Sequence[tuple[Sample, float]], metric: str, seed: int, *, paired: bool = True) -> _Spread | None:
    """How far the logarithm of a contrast may be off."""
    generator = np.random.default_rng(seed)
    # A sample that is there twice was measured once.
    weights: dict[int, float] = {}
    samples = {id(sample): sample for sample, _ in terms}
    for sample, weight in terms:
        weights[id(sample)] = weights.get(id(sample), 0.0) + weight
    within = {key: weights[key] ** 2 * _variance_within(sample, metric, generator) for key, sample in samples.items()}
    all_within = sum(within.values())
    run_counts = {sample.runs for sample in samples.values()}
    if min(run_counts) < MIN_RUNS:
        degrees = sum(max(1, sample.block_count - sample.runs) for sample in samples.values())
        return _Spread(all_within, degrees, between_runs=False) if math.isfinite(all_within) else None
    if paired and len(run_counts) == 1:
        return _Spread(
            _at_least(_variance_between(terms, metric, generator), all_within), run_counts.pop() - 1, between_runs=True
        )
    parts = [
        (_at_least(_variance_between([(sample, weights[key])], metric, generator), within[key]), sample.runs - 1)
        for key, sample in samples.items()
    ]
    return _sum_of(parts)


def _sum_of(parts: Sequence[tuple[float, int]]) -> _Spread:
    """The spread of a sum of independent parts between runs, by the variance and the degrees of freedom of each.

    Welch, "The generalization of 'Student's' problem when several different population variances are involved", Biometrika 34, 1947.
    """
    variance = sum(part for part, _ in parts)
    if variance == 0.0:
        return _Spread(0.0, min(degrees for _, degrees in parts), between_runs=True)
    return _Spread(variance, variance**2 / sum(part**2 / degrees for part, degrees in parts), between_runs=True)


def _at_least(between: float, within: float) -> float:
    """The larger variance; that within runs may be unknown."""
    return max(between, within) if math.isfinite(within) else between


def _log(terms: Sequence[tuple[Sample, float]], figures: Sequence[float]) -> float:
    return sum(
        weight * (math.log(figure) if figure > 0.0 else math.nan) for (_, weight), figure in zip(terms, figures, strict=True)
    )


def _variance_between(terms: Sequence[tuple[Sample, float]], metric: str, generator: np.random.Generator) -> float:
    """Variance when runs are drawn again, the same ones in all samples."""
    runs = terms[0][0].runs
    counts = _counts(_choices(runs, generator), runs)
    logs = np.asarray(sum(weight * _logs(sample.figures(metric, counts[:, sample.run_of_block])) for sample, weight in terms))
    # A run whose latencies are all the same has no standard deviation, and that no logarithm.
    return float(np.var(logs)) * runs / (runs - 1) if np.isfinite(logs).all() else math.nan


def _choices(runs: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """All ways to draw that many runs with replacement when there are few, else a random selection of them."""
    if runs**runs <= RESAMPLES:
        return np.array(list(product(range(runs), repeat=runs)))
    return generator.integers(0, runs, (RESAMPLES, runs))


def _counts(choices: NDArray[np.int64], among: int) -> NDArray[np.float64]:
    """For each row of choices, how often each number was chosen."""
    counts = np.empty((len(choices), among))
    # As many rows at once as the processor's cache holds, each of which counts in numbers of its own.
    rows_at_once = max(1, CACHED_CELLS // among)
    for start in range(0, len(choices), rows_at_once):
        rows = choices[start : start + rows_at_once]
        numbers = rows + among * np.arange(len(rows))[:, None]
        counts[start : start + rows_at_once] = np.bincount(numbers.ravel(), minlength=among * len(rows)).reshape(-1, among)
    return counts


def _logs(figures: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.log(figures)


def _variance_within(sample: Sample, metric: str, generator: np.random.Generator) -> float:
    """Variance when the blocks of each run are drawn again; NaN when no run has two."""
    blocks_of_runs = [np.flatnonzero(sample.run_of_block == run) for run in range(sample.runs)]
    if max(len(blocks) for blocks in blocks_of_runs) < 2:
        return math.nan
    counts = np.empty((RESAMPLES, sample.block_count))
    for blocks in blocks_of_runs:
        counts[:, blocks] = _counts(generator.integers(0, len(blocks), (RESAMPLES, len(blocks))), len(blocks))
    logs = _logs(sample.figures(metric, counts))
    # Drawing n blocks from n makes the variance of a mean too small by (n − 1) / n.
    drawn = sum(len(blocks) for blocks in blocks_of_runs)
    return float(np.nanvar(logs)) * drawn / max(1, drawn - sample.runs)
