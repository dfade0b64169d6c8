"""Latencies of a long run, summed up in blocks while its log is read once: what is in memory does not grow with the run."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sensorbench.results.stored import NumberedRows

Floats = NDArray[np.float64]

# This many blocks say as much about the spread of a run as more of them.
BLOCKS = 200
# Operations whose records are in memory at a time.
AT_ONCE = 500_000
COLUMNS = ("phase", "operation", "k", "outcome", "intended_start_ns", "end_ns")

# Values that tables are compared with have their types: of others pyarrow finds out what they are, which takes longer than comparing.
SERVED = pa.array(["ok", "timeout"], pa.string())
# Latencies are counted by their first 10 binary digits, so that they are known to within 0.05%.
_DIGITS = 10


@dataclass(frozen=True)
class LatencyBlocks:
    """Latencies of one kind of operation in one run.

    Args:
        beginning: those of the first operations in seconds, in the order in which they were due, which show how far they depend on their neighbours.
        blocks: of each block of consecutive operations the latencies in seconds, and how many of each there were.

    """

    beginning: Floats
    blocks: list[tuple[Floats, Floats]]

    def joined(self, length: float) -> list[tuple[Floats, Floats]]:
        """The same in longer blocks of at least this many operations, where these are shorter; each latency is once in a block."""
        operations = sum(float(counts.sum()) for _, counts in self.blocks)
        joined = max(1, int(np.ceil(length * len(self.blocks) / operations)))
        parts = (self.blocks[start : start + joined] for start in range(0, len(self.blocks), joined))
        return [_merged(part) for part in parts]


def _merged(blocks: Sequence[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    """Blocks as one, in which each latency is once, as in the block sums of a bundle: figures of both are the same to the last digit."""
    values, places = np.unique(np.concatenate([values for values, _ in blocks]), return_inverse=True)
    counts: Floats = np.bincount(places, np.concatenate([counts for _, counts in blocks])).astype(np.float64)
    return values.astype(np.float64), counts


def latency_blocks(rows: NumberedRows, phase: int, end: int | None = None) -> dict[int, LatencyBlocks]:
    """The response times of the operations of a run that were served, by the number of the kind of operation.

    Args:
        rows: the log, with `COLUMNS`.
        phase: the number of the phase that is summed up.
        end: operations from this number on are left out; None for all.

    Raises:
        DamagedResultsError: the log is damaged.

    """
    last = rows.end if end is None else min(end, rows.end)
    length = max(1, -(-last // BLOCKS))
    # Blocks are read as a whole.
    at_once = max(1, AT_ONCE // length) * length
    beginnings: dict[int, Floats] = {}
    blocks: dict[int, list[tuple[Floats, Floats]]] = {}
    for first in range(0, last, at_once):
        part = rows.between(first, min(first + at_once, last))
        if part is None:
            continue
        is_wanted = pc.and_(pc.equal(part["phase"], pa.scalar(phase, part["phase"].type)), pc.is_in(part["outcome"], SERVED))
        served = part.filter(is_wanted)
        numbers, kinds = served["k"].to_numpy(), served["operation"].to_numpy()
        nanoseconds = pc.subtract(served["end_ns"].cast(pa.int64()), served["intended_start_ns"].cast(pa.int64())).to_numpy()
        for kind in np.unique(kinds).tolist():
            is_kind = kinds == kind
            latencies_ns, of_numbers = np.maximum(nanoseconds[is_kind], 1), numbers[is_kind]
            if kind not in beginnings:
                beginnings[kind] = latencies_ns[np.argsort(of_numbers, kind="stable")] / 1e9
            blocks.setdefault(kind, []).extend(_histograms((of_numbers // np.uint64(length)).astype(np.int64), latencies_ns))
    return {kind: LatencyBlocks(beginnings[kind], of_kind) for kind, of_kind in blocks.items()}


def _histograms(blocks: NDArray[np.int64], nanoseconds: NDArray[np.int64]) -> list[tuple[Floats, Floats]]:
    """For each block the latencies in seconds, each the middle of a bin, and how many are in it."""
    cells, counts = np.unique((blocks << 32) | bins_of(nanoseconds), return_counts=True)
    latencies_ns = middles_of(cells & 0xFFFF_FFFF)
    starts = np.flatnonzero(np.diff(cells >> 32, prepend=-1))
    ends = [*starts[1:].tolist(), len(cells)]
    return [
        (latencies_ns[start:end] / 1e9, counts[start:end].astype(np.float64))
        for start, end in zip(starts.tolist(), ends, strict=True)
    ]


def bins_of(nanoseconds: NDArray[np.number]) -> NDArray[np.int64]:
    """The bins of latencies, in their order: the power of two, and the digits after the first one. Shape as given."""
    mantissa, power = np.frexp(nanoseconds.astype(np.float64))
    digits = ((mantissa * 2 - 1) * (1 << _DIGITS)).astype(np.int64)
    return (power.astype(np.int64) << _DIGITS) | digits


def middles_of(bins: NDArray[np.int64]) -> Floats:
    """The middles of bins in nanoseconds. Shape as given."""
    digits = bins & ((1 << _DIGITS) - 1)
    middles_ns: Floats = np.ldexp((1 + (digits + 0.5) / (1 << _DIGITS)) / 2, bins >> _DIGITS)
    return middles_ns
