"""Latencies of a run, as they were recorded: of each operation where all were logged, else in histograms."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sensorbench.results.latency_blocks import SERVED
from sensorbench.results.manifest import MEASURE
from sensorbench.results.reader import RunResult

Floats = NDArray[np.float64]

# Operations of longer runs are not looked at one by one, so that time and memory do not grow with them.
MAX_HELD = 500_000
# Latencies of longer runs are summed up in blocks (`RunResult.latency_blocks`): bins of 0.1% say as much of this many, in a fraction of the space.
MAX_EXACT = 10_000


def is_logged_whole(run: RunResult) -> bool:
    """Whether there is a record of every operation."""
    return bool(run.manifest.plan["log_every"] == 1)


def is_held_whole(run: RunResult) -> bool:
    """Whether there is a record of every operation, and they are few enough to analyse each by itself."""
    return is_logged_whole(run) and run.operation_count <= MAX_HELD


def is_exact(run: RunResult) -> bool:
    """Whether figures are computed from each latency as it was recorded."""
    return is_logged_whole(run) and run.operation_count <= MAX_EXACT


def of_kind(table: pa.Table, phase: int, operation: int) -> pa.Table:
    """The rows of one of a run's tables that are about one kind of operation in one phase, by their numbers."""
    wanted = {"phase": phase, "operation": operation}
    is_wanted = (pc.equal(table[name], pa.scalar(number, table[name].type)) for name, number in wanted.items())
    return table.filter(pc.and_(*is_wanted))


def logged_latencies(run: RunResult, operation: str, min_rows: float = 0.0) -> tuple[Floats, Floats]:
    """Numbers and response times (s) of the logged operations of one kind, in the order in which they were due; of those alone
    that returned this many rows, if so asked.
    """
    table = run.table("operations")
    if table is None or operation not in run.manifest.operations or MEASURE not in run.manifest.phases:
        return np.empty(0), np.empty(0)
    phase, number = run.manifest.phases.index(MEASURE), run.manifest.operations.index(operation)
    wanted = of_kind(table, phase, number)
    is_enough = pc.greater_equal(wanted["rows"], pa.scalar(min_rows, pa.float64()))
    served = wanted.filter(pc.and_(pc.is_in(wanted["outcome"], SERVED), is_enough)).sort_by("k")
    nanoseconds = pc.subtract(served["end_ns"].cast(pa.int64()), served["intended_start_ns"].cast(pa.int64()))
    return served["k"].to_numpy().astype(np.float64), np.maximum(nanoseconds.to_numpy().astype(np.float64), 1.0) / 1e9


def interval_histograms(run: RunResult, operation: str, kind: str = "response") -> list[tuple[Floats, Floats]]:
    """For each interval the counted latencies (s) of one kind of operation, and their counts."""
    table = run.histograms()
    return [] if table is None else tagged_histograms(table, MEASURE, operation, kind)


def tagged_histograms(table: pa.Table, phase: str, operation: str, kind: str) -> list[tuple[Floats, Floats]]:
    """Of a run's histograms, for each interval of a phase the counted latencies (s) of one kind of operation, and their counts."""
    wanted = table.filter(pc.equal(table["tag"], f"{phase}.{operation}.{kind}"))
    if not wanted.num_rows:
        return []
    values, counts = (wanted[name].combine_chunks() for name in ("value_ns", "count"))
    ends = np.cumsum(pc.list_value_length(values).to_numpy(zero_copy_only=False))[:-1]
    seconds, weights = values.flatten().to_numpy() / 1e9, counts.flatten().to_numpy().astype(np.float64)
    return list(zip(np.split(seconds, ends), np.split(weights, ends), strict=True))


def weighted_latencies(run: RunResult, operation: str) -> tuple[Floats, Floats]:
    """All latencies (s) of one kind of operation and how often each was counted."""
    if run.block_sums is not None:
        histograms = run.block_sums.get(operation, [])
    elif is_exact(run):
        latencies = logged_latencies(run, operation)[1]
        return latencies, np.ones(len(latencies))
    elif is_logged_whole(run):
        blocks = run.latency_blocks().get(operation)
        histograms = blocks.blocks if blocks else []
    else:
        histograms = interval_histograms(run, operation)
    values = np.concatenate([np.empty(0), *(values for values, _ in histograms)])
    return values, np.concatenate([np.empty(0), *(counts for _, counts in histograms)])
