"""Markers of freshness on disk: of each, when it was acknowledged, and between which two moments it became visible."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sensorbench.results.manifest import MEASURE
from sensorbench.results.reader import RunResult
from sensorbench.results.stored import is_stored, read_parquet
from sensorbench.results.writer import write_table

FRESHNESS_FILE = "freshness.parquet"
# Beside these columns are the parameters of each marker. Times are on the clock of the run.
MARKER_COLUMNS = (
    "marker",
    "intended_start_ns",
    "start_ns",
    "end_ns",
    "outcome",
    "missed_ns",
    "found_ns",
    "reads",
    "failed_reads",
)

Floats = NDArray[np.float64]


def write_markers(folder: Path, markers: pa.Table) -> None:
    """Writes what became of the markers of a run into its folder."""
    write_table(folder / FRESHNESS_FILE, markers)


def read_markers(folder: Path) -> pa.Table | None:
    """The markers of a run; None if there were none. Raises DamagedResultsError."""
    path = folder / FRESHNESS_FILE
    return read_parquet(path, MARKER_COLUMNS) if is_stored(path) else None


@dataclass(frozen=True)
class MeasuredMarkers:
    """The markers of one run that were written while it was measured, in the order of their numbers.

    Attributes:
        repetition: number of the run.
        time_s: when each write was to start, from the beginning of the measured phase.
        is_acknowledged: whether its write was.
        low_s: from its acknowledgement to the start of the last read that missed it; 0 where none did.
        high_s: from its acknowledgement to the end of the first read that returned it; infinite where none did.
        reads: how often it was read, and how often that failed.
        missed_none: whether no read missed it.
        lag_s: how much later than intended its write started.
        rate: the rate of the load meanwhile, in words; empty if the schedule has but one, or none.

    """

    repetition: int
    time_s: Floats
    is_acknowledged: NDArray[np.bool_]
    low_s: Floats
    high_s: Floats
    reads: NDArray[np.int64]
    failed_reads: NDArray[np.int64]
    missed_none: NDArray[np.bool_]
    lag_s: Floats
    rate: list[str]


def measured_markers(run: RunResult) -> MeasuredMarkers | None:
    """The markers of a run; None if it has none, or was not measured."""
    table, phases = read_markers(run.folder), run.manifest.measured
    if table is None or not phases or phases[0].start_ns is None:
        return None
    start_ns = phases[0].start_ns
    end_ns = phases[0].end_ns if phases[0].end_ns is not None else np.iinfo(np.int64).max
    begun = table["start_ns"].to_numpy()
    table = table.filter(pa.array((begun >= start_ns) & (begun <= end_ns)))
    ended = _floats(table, "end_ns")
    missed, found = _floats(table, "missed_ns"), _floats(table, "found_ns")
    time_s = (_floats(table, "start_ns") - start_ns) / 1e9
    return MeasuredMarkers(
        repetition=run.manifest.repetition,
        time_s=time_s,
        is_acknowledged=np.array([outcome == "ok" for outcome in table["outcome"].to_pylist()], dtype=np.bool_),
        low_s=np.where(np.isnan(missed), 0.0, np.maximum(missed - ended, 0.0) / 1e9),
        high_s=np.where(np.isnan(found), np.inf, (found - ended) / 1e9),
        reads=table["reads"].to_numpy().astype(np.int64),
        failed_reads=table["failed_reads"].to_numpy().astype(np.int64),
        missed_none=np.isnan(missed),
        lag_s=(_floats(table, "start_ns") - _floats(table, "intended_start_ns")) / 1e9,
        rate=list(_rates(run, time_s)),
    )


def _floats(table: pa.Table, name: str) -> Floats:
    """A column as floats; NaN where there is no value. Times of runs have fewer digits than a double keeps."""
    return np.asarray(table[name].to_numpy().astype(np.float64))


def _rates(run: RunResult, time_s: Floats) -> Iterator[str]:
    """The rate of the schedule at each time, in words; empty if it has but one, or none."""
    planned = next(phase for phase in run.manifest.plan["phases"] if phase["name"] == MEASURE)
    pace = planned.get("pace")
    segments = pace["segments"] if pace else []
    if len(segments) < 2:
        yield from ("" for _ in time_s)
        return
    lengths = [segment.get("length_s") or np.inf for segment in segments]
    ends = np.cumsum(lengths)
    for place in np.minimum(np.searchsorted(ends, time_s, side="right"), len(segments) - 1):
        segment = segments[int(place)]
        start, end = segment["from_per_s"], segment.get("to_per_s")
        yield f"{start:g}" if end is None or end == start else f"{start:g} to {end:g}"
