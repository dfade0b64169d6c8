"""Logged operations of results as Arrow record batches."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sensorbench.results import RunResult
from sensorbench.results.manifest import OUTCOMES

_NAME = pa.dictionary(pa.int32(), pa.string())
SCHEMA = pa.schema(
    [
        ("variant", _NAME),
        ("repetition", pa.int32()),
        ("phase", _NAME),
        ("operation", _NAME),
        ("k", pa.int64()),
        ("outcome", _NAME),
        ("intended_start_ns", pa.int64()),
        ("start_ns", pa.int64()),
        ("end_ns", pa.int64()),
        ("response_time_s", pa.float64()),
        ("service_time_s", pa.float64()),
        ("rows", pa.int64()),
    ]
)


@dataclass(frozen=True)
class MeasuredRun:
    """One run of results, of one variant."""

    variant: str
    repetition: int
    result: RunResult


def operation_batches(
    runs: Sequence[MeasuredRun], operations: Collection[str] | None, phase: str | None, rows: int
) -> Iterator[pa.RecordBatch]:
    """Yields the logged operations of runs, with the columns of SCHEMA.

    Args:
        runs: the runs to read.
        operations: names of the operations to include; all if None.
        phase: name of the phase to include; all if None.
        rows: maximum number of rows per batch.

    Raises:
        DamagedResultsError: if a file is damaged.

    """
    names = _Names.of(runs)
    for run in runs:
        manifest = run.result.manifest
        wanted = {
            "phase": [number for number, name in enumerate(manifest.phases) if phase in (None, name)],
            "operation": [number for number, name in enumerate(manifest.operations) if operations is None or name in operations],
        }
        for batch in run.result.operation_batches(rows):
            chosen = batch
            for column, numbers in wanted.items():
                chosen = chosen.filter(pc.is_in(chosen[column], pa.array(numbers, chosen[column].type)))
            if chosen.num_rows:
                yield _named(chosen, run, names)


@dataclass(frozen=True)
class _Names:
    """All names that occur in the runs. They share one dictionary, so that batches of several runs form one table."""

    variants: list[str]
    phases: list[str]
    operations: list[str]

    @classmethod
    def of(cls, runs: Sequence[MeasuredRun]) -> "_Names":
        return cls(
            _distinct(run.variant for run in runs),
            _distinct(name for run in runs for name in run.result.manifest.phases),
            _distinct(name for run in runs for name in run.result.manifest.operations),
        )


def _distinct(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _named(batch: pa.RecordBatch, run: MeasuredRun, names: _Names) -> pa.RecordBatch:
    """A batch of a run's log with the columns of SCHEMA: numbers become names, and latencies are added."""
    manifest, count = run.result.manifest, batch.num_rows
    intended, start, end = (batch[name].cast(pa.int64()) for name in ("intended_start_ns", "start_ns", "end_ns"))
    columns = [
        _in(names.variants, pa.array(np.full(count, names.variants.index(run.variant), np.int32))),
        pa.array(np.full(count, run.repetition, np.int32)),
        _renumbered(batch["phase"], manifest.phases, names.phases),
        _renumbered(batch["operation"], manifest.operations, names.operations),
        batch["k"].cast(pa.int64()),
        _in(OUTCOMES, pc.index_in(batch["outcome"], pa.array(OUTCOMES, pa.string()))),
        intended,
        start,
        end,
        _seconds(intended, end),
        _seconds(start, end),
        batch["rows"].cast(pa.int64()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _in(names: Sequence[str], numbers: pa.Array) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(numbers, pa.array(names, pa.string()))


def _renumbered(numbers: pa.Array, own: Sequence[str], names: Sequence[str]) -> pa.DictionaryArray:
    """Indices into a run's own names, as indices into the names of all runs."""
    return _in(names, pa.array([names.index(name) for name in own], pa.int32()).take(numbers))


def _seconds(start: pa.Array, end: pa.Array) -> pa.Array:
    return pc.divide(pc.subtract(end, start).cast(pa.float64()), 1e9)
