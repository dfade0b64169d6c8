"""The latencies of one kind of operation in one variant: what its figures and intervals are computed from."""

from collections.abc import Sequence

import numpy as np

from sensorbench.analysis.sample import Sample, automatic_block_length, blocks_of
from sensorbench.benchmarks.comparison.units import UnitOf, each_run, units_of
from sensorbench.results import RunResult
from sensorbench.results.block_sums import Blocks
from sensorbench.results.latencies import interval_histograms, is_exact, is_logged_whole, logged_latencies


def that_had(runs: Sequence[RunResult], operation: str) -> list[RunResult]:
    """Of some runs, those that asked an operation: a schema may be able to answer a part of them."""
    return [run for run in runs if operation in run.manifest.operations]


def sample_of(runs: Sequence[RunResult], operation: str, unit: UnitOf = each_run) -> Sample | None:
    """The latencies of one kind of operation over all runs that had it.

    Of each operation where all were logged, in blocks of runs where these are many, else from the histograms of intervals.

    Args:
        runs: the runs of a variant.
        operation: the name of the kind of operation.
        unit: which runs are resampled together.

    Returns:
        None if some run has no latency.

    """
    runs = that_had(runs, operation)
    if not runs:
        return None
    units = units_of(runs, unit)
    sums = [run.block_sums for run in runs]
    if all(of_run is not None for of_run in sums):
        kept = [(of_run or {}).get(operation, []) for of_run in sums]
        return Sample.of_histograms(kept, units=units) if all(kept) else None
    blocks_of_run = _blocks_of if all(is_logged_whole(run) for run in runs) else interval_histograms
    histograms = [blocks_of_run(run, operation) for run in runs]
    return Sample.of_histograms(histograms, units=units) if all(histograms) else None


def block_sums_of(run: RunResult) -> dict[str, Blocks]:
    """The latencies of each kind of operation of a run by block, from which `sample_of` makes the same sample as from the log of the run.

    Args:
        run: one of which every operation was logged.

    Returns:
        By kind of operation, of each block the latencies in s and how many of each there were; nothing of a kind that has none.

    Raises:
        DamagedResultsError: the log is damaged.

    """
    sums = {operation: _blocks_of(run, operation) for operation in run.manifest.operations}
    return {operation: blocks for operation, blocks in sums.items() if blocks}


def _blocks_of(run: RunResult, operation: str) -> Blocks:
    """The latencies of one kind of operation of a run by block, each counted once where the run is short."""
    if not is_exact(run):
        return _summed_up(run, operation)
    latencies = logged_latencies(run, operation)[1]
    if not len(latencies):
        return []
    ends = np.flatnonzero(np.diff(blocks_of(latencies))) + 1
    return [(values, np.ones(len(values))) for values in np.split(latencies, ends)]


def _summed_up(run: RunResult, operation: str, end: int | None = None) -> Blocks:
    """The same of a long run, in blocks that are nearly independent of one another; of the operations before a number, if there is one."""
    found = run.latency_blocks(end).get(operation)
    return found.joined(automatic_block_length(found.beginning)) if found else []


def sample_before(runs: Sequence[RunResult], operation: str, units: Sequence[int], ends: Sequence[int]) -> Sample | None:
    """The same sample of the first operations of long runs.

    Args:
        runs: runs of which every operation was logged.
        operation: the name of the kind of operation.
        units: of each run, what it is resampled as.
        ends: of each run, the number of the first operation that is left out.

    Returns:
        None if some run has no latency.

    """
    histograms = [_summed_up(run, operation, end) for run, end in zip(runs, ends, strict=True)]
    return Sample.of_histograms(histograms, units=units) if all(histograms) else None
