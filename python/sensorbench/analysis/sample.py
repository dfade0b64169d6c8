"""Latencies of one kind of operation in one variant, and figures of them.

A sample knows of each latency in which run and in which block it was measured. Blocks are stretches of consecutive
operations, long enough to be nearly independent of one another; latencies next to each other are not.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# An estimate from fewer latencies beyond a quantile is a guess.
MIN_BEYOND_QUANTILE = 10
# From this many means on, each of a run, Student's t knows how far they may be off, however few latencies they are of.
MIN_MEANS = 3

# Weighted latencies that are held in memory at a time: what a processor's cache holds.
MAX_CELLS = 65_536

# More blocks in a run say no more about their spread; longer blocks are as good.
MAX_BLOCKS = 200

# A series is transformed in parts of at least this size: what a processor's cache holds.
MIN_TRANSFORMED = 1 << 14

# Longer samples are drawn again from a table of this many bins.
BINS = 4096

METRICS = ("mean", "median", "sd", "p75", "p95", "p99", "mean_to_p95")
_QUANTILES = {"median": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
# Each run gives one, whatever lies beyond a quantile.
_MOMENTS = ("mean", "sd")


@dataclass(frozen=True)
class Sample:
    """Latencies in ascending order; `counts` of each, and the number of the block it is from. Blocks belong to runs; what counts as one run may be
    several that are resampled together.
    """

    values: Floats
    counts: Floats
    blocks: Integers
    run_of_block: Integers

    @classmethod
    def of_runs(cls, runs: Sequence[Floats], block_length: int | None = None, *, units: Sequence[int] | None = None) -> "Sample":
        """Latencies of each run in the order of time; blocks are cut by `block_length`, or by what the data ask for. `units`: of each run, which of
        those it counts as, from 0; those of equal number are resampled together.
        """
        values, blocks = [], []
        run_of_block: list[int] = []
        for number, run in enumerate(runs):
            of_run = blocks_of(run, block_length)
            block_count = int(of_run[-1]) + 1 if len(of_run) else 1
            blocks.append(of_run + len(run_of_block))
            run_of_block += [units[number] if units else number] * block_count
            values.append(np.asarray(run, dtype=np.float64))
        all_values, all_blocks = np.concatenate(values), np.concatenate(blocks).astype(np.int64)
        order = np.argsort(all_values, kind="stable")
        return cls(all_values[order], np.ones(len(order)), all_blocks[order], np.asarray(run_of_block, dtype=np.int64))

    @classmethod
    def of_histograms(cls, runs: Sequence[Sequence[tuple[Floats, Floats]]], *, units: Sequence[int] | None = None) -> "Sample":
        """Histograms (values, counts) of the intervals of each run; an interval is a block. `units` as above."""
        values, counts, blocks = [], [], []
        run_of_block: list[int] = []
        for number, run in enumerate(runs):
            for interval_values, interval_counts in run:
                values.append(interval_values)
                counts.append(interval_counts)
                blocks.append(np.full(len(interval_values), len(run_of_block)))
                run_of_block.append(units[number] if units else number)
        all_values = np.concatenate(values).astype(np.float64)
        order = np.argsort(all_values, kind="stable")
        all_counts = np.concatenate(counts).astype(np.float64)[order]
        return cls(
            all_values[order],
            all_counts,
            np.concatenate(blocks).astype(np.int64)[order],
            np.asarray(run_of_block, dtype=np.int64),
        )

    @property
    def runs(self) -> int:
        """Number of runs."""
        return int(self.run_of_block.max()) + 1 if len(self.run_of_block) else 0

    @property
    def block_count(self) -> int:
        """Number of blocks."""
        return len(self.run_of_block)

    @cached_property
    def count(self) -> float:
        """Number of latencies."""
        return float(self.counts.sum())

    def figure(self, metric: str) -> float:
        """A figure of all latencies. NaN when there is none."""
        return float(figures(metric, self.values, self.counts[None, :])[0])

    def figures(self, metric: str, block_weights: Floats) -> Floats:
        """The same figure once for each row of weights, which say how often each block counts."""
        if len(self.values) > 2 * BINS:
            bin_values, counts = self._table
            return figures(metric, bin_values, (block_weights.astype(np.float32) @ counts).astype(np.float64))
        rows_at_once = max(1, MAX_CELLS // max(1, len(self.values)))
        chunks = [block_weights[start : start + rows_at_once] for start in range(0, len(block_weights), rows_at_once)]
        return np.concatenate([figures(metric, self.values, self._weights(chunk)) for chunk in chunks])

    def _weights(self, block_weights: Floats) -> Floats:
        """How often each latency counts, for each row of weights of blocks."""
        weights = np.take(block_weights, self.blocks, axis=1)
        weights *= self.counts
        return weights

    @cached_property
    def _table(self) -> tuple[Floats, NDArray[np.float32]]:
        """The mean value of each bin, and how many latencies of each block are in each bin.

        Bins are equally wide in arcsin √share, in which all quantiles of a sample are equally uncertain (Anscombe, "The
        transformation of Poisson, binomial and negative-binomial data", Biometrika 35, 1948): by 1/(2 √n), which is wider than
        a bin up to a million latencies.
        """
        cumulated = np.cumsum(self.counts)
        share = (cumulated - self.counts / 2) / cumulated[-1]
        bins = np.minimum((np.arcsin(np.sqrt(share)) * (2 / np.pi * BINS)).astype(np.int64), BINS - 1)
        cells = np.bincount(self.blocks * BINS + bins, weights=self.counts, minlength=self.block_count * BINS)
        of_bin = np.bincount(bins, weights=self.counts, minlength=BINS)
        is_filled = of_bin > 0.0
        sums = np.bincount(bins, weights=self.counts * self.values, minlength=BINS)
        counts = cells.reshape(self.block_count, BINS)[:, is_filled].astype(np.float32)
        return sums[is_filled] / of_bin[is_filled], counts

    def supports(self, metric: str) -> bool:
        """Whether there are enough latencies for an interval to mean something: beyond the metric's quantile; for a mean or a standard
        deviation, as many runs, each of which gives one.
        """
        if metric in _MOMENTS and self.runs >= MIN_MEANS:
            return True
        quantile = _QUANTILES.get(metric, 0.0)
        return self.count * (1.0 - quantile) >= MIN_BEYOND_QUANTILE


def figures(metric: str, values: Floats, weights: Floats) -> Floats:
    """A figure of ascending values, once for each row of weights; NaN where all weights are zero.

    `mean_to_p95` is the mean of the values up to the 95th percentile, which is how the building-sensor study's "mean latency
    at the 95th percentile" is read here. `sd` is the standard deviation.
    """
    if len(values) == 0:
        return np.full(len(weights), np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        if metric == "mean":
            return np.asarray(weights @ values / weights.sum(axis=1))
        if metric == "sd":
            return _deviations(values, weights)
        cumulated = np.cumsum(weights, axis=1)
        total = cumulated[:, -1]
        # The smallest value with at least that share at or below it, as HdrHistogram has it.
        share = 0.95 if metric == "mean_to_p95" else _QUANTILES[metric]
        places = np.minimum((cumulated < (share * total * (1 - 1e-12))[:, None]).sum(axis=1), len(values) - 1)
        if metric == "mean_to_p95":
            rows = np.arange(len(weights))
            return np.asarray(np.cumsum(weights * values, axis=1)[rows, places] / cumulated[rows, places])
        return np.where(total > 0.0, values[places], np.nan)


def _deviations(values: Floats, weights: Floats) -> Floats:
    """The standard deviation for each row of weights. Values are taken from their mean first: squares of large ones would hide it."""
    total = weights.sum(axis=1)
    centred = values - values.mean()
    means = weights @ centred / total
    return np.asarray(np.sqrt(np.maximum(weights @ centred**2 / total - means**2, 0.0)))


def _covariances(centred: Floats, max_lags: int) -> Floats:
    """Covariances of a series, whose mean is 0, with itself at lags of 0 to `max_lags`; shape (max_lags + 1,).

    Products of Fourier transforms, of a part of the series and of the same part with what follows it, summed over the parts.
    """
    size = 1 << max(MIN_TRANSFORMED.bit_length() - 1, (4 * max_lags).bit_length())
    part = size - max_lags
    products = np.zeros(size // 2 + 1, dtype=np.complex128)
    for start in range(0, len(centred), part):
        alone = np.fft.rfft(centred[start : start + part], size)
        products += np.conj(alone) * np.fft.rfft(centred[start : start + size], size)
    return np.asarray(np.fft.irfft(products, size)[: max_lags + 1] / len(centred))


def blocks_of(series: Floats, block_length: int | None = None) -> Integers:
    """The number of the block of each latency of a run, from 0; shape (len(series),).

    Args:
        series: latencies in the order of time.
        block_length: about how many latencies a block has; None for what the data ask for.

    """
    count = min(max(1, round(len(series) / (block_length or automatic_block_length(series)))), MAX_BLOCKS)
    return np.asarray(np.arange(len(series)) * count // max(1, len(series)), dtype=np.int64)


def automatic_block_length(series: Floats) -> int:
    """Length of blocks of a stationary series after Politis and White, "Automatic block-length selection for the dependent
    bootstrap", Econometric Reviews 23, 2004 (with the correction of Patton, Politis and White, 2009), for the circular block
    bootstrap; at most a tenth of the series, so that there are blocks to choose from.
    """
    n = len(series)
    if n < 20:
        return 1
    # Ranks of the values have autocorrelations that single spikes do not hide.
    centred = np.empty(n)
    centred[np.argsort(series)] = np.arange(n) - (n - 1) / 2
    max_lags = min(n - 1, int(np.ceil(np.sqrt(n))) + max(5, int(np.log10(n))))
    covariances = _covariances(centred, max_lags)
    if covariances[0] <= 0.0:
        return 1
    correlations = covariances / covariances[0]
    threshold = 2.0 * np.sqrt(np.log10(n) / n)
    run_length = max(5, int(np.sqrt(np.log10(n))))
    insignificant = np.abs(correlations[1:]) < threshold
    last_significant = max_lags
    for lag in range(max_lags - run_length + 1):
        if insignificant[lag : lag + run_length].all():
            last_significant = lag
            break
    if last_significant == 0:
        return 1
    window = min(2 * last_significant, max_lags)
    lags = np.arange(-window, window + 1)
    flat_top = np.clip(2.0 * (1.0 - np.abs(lags) / window), 0.0, 1.0)
    weighted = flat_top * covariances[np.abs(lags)]
    g = float(np.abs(lags) @ weighted)
    d = 4.0 / 3.0 * float(weighted.sum()) ** 2
    if g <= 0.0 or d <= 0.0:
        return 1
    length = (2.0 * g * g / d) ** (1 / 3) * n ** (1 / 3)
    return int(np.clip(np.ceil(length), 1, max(1, n // 10)))
