"""Markers beside a load: how long after its acknowledgement a reading is visible, and how the markers of a run are made."""

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pydantic import Field

from sensorbench import toml_file
from sensorbench.errors import UsageError
from sensorbench.results.engine_plan import EnginePlan, ParameterOrigin, PlannedOperation
from sensorbench.results.engine_report import EngineRun
from sensorbench.runner.lengths import Length, seconds
from sensorbench.schemas import Operation

if TYPE_CHECKING:
    import pyarrow as pa

    from sensorbench._engine import Freshness as WatchedMarkers
    from sensorbench._engine import Target

# Of a run whose length only its operations show, this many markers at the most.
_MAX_MARKERS = 100_000
# Markers lie between the readings of the load, whose times are multiples of a step: at half of it. Databases of milliseconds need two.
_MILLISECOND_US = 1_000


class Freshness(toml_file.FileModel):
    """Markers beside the load. Each is a reading of its own in the loaded table; once it is acknowledged, it is read until a read returns it."""

    rate: float = Field(default=2.0, gt=0, description="Markers per second.")
    poll: Length = Field(
        default="5ms",
        description="Time from the start of one read of a marker to that of the next: what the answer is uncertain by.",
    )
    within: Length = Field(default="30s", description="How long a marker is read before it is given up.")
    watched: int = Field(
        default=8, ge=1, le=64, description="How many markers are watched at a time, each with a read in flight."
    )

    def markers_of(self, phases_s: float | None) -> int:
        """How many markers a run has at the most.

        Args:
            phases_s: how long it takes; None if only its operations show.

        """
        return min(_MAX_MARKERS, math.ceil(phases_s * self.rate) + 1) if phases_s is not None else _MAX_MARKERS


def marker_rows(
    operation: Operation,
    candidates: "Mapping[str, pa.ChunkedArray]",
    numbers: Mapping[str, tuple[int, int]],
    count: int,
    place: "MarkerPlace",
) -> "pa.Table":
    """The parameters of markers, a row each, and the range of time in which each is read.

    Args:
        operation: the write that they are made by.
        candidates: values of parameters that come from rows; marker m takes row m, and again from the first.
        numbers: start and step of parameters that are numbers.
        count: how many markers.
        place: where their times lie among those of the load.

    Raises:
        UsageError: if the time of the write is no such number, or its steps leave no room between them.

    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if operation.time not in numbers:
        raise UsageError(
            "workload.freshness: the write has no times that are numbers used once each, between which markers could be"
        )
    start, step = numbers[operation.time]
    half = step // 2 - (step // 2) % _MILLISECOND_US if step >= 2 * _MILLISECOND_US else step // 2
    if half <= 0:
        raise UsageError("workload.freshness: the times of the write are one microsecond apart, and leave no room for markers")
    rows = pa.array(range(count), pa.int64())
    columns: dict[str, pa.Array | pa.ChunkedArray] = {}
    for name in operation.parameters:
        if name == operation.time:
            times = pa.array((start + step * place.number(marker) + half for marker in range(count)), pa.int64())
            columns[name] = times.cast(pa.timestamp("us"))
        elif name in numbers:
            first, by = numbers[name]
            columns[name] = pa.array((first + by * place.number(marker) for marker in range(count)), pa.int64())
        else:
            values = candidates[name]
            columns[name] = values.take(pa.array([row % len(values) for row in rows.to_pylist()], pa.int64()))
    until = pc.add(columns[operation.time], pa.scalar(half, pa.duration("us")))
    return pa.table({**columns, "from": columns[operation.time], "to": until})


class MarkerPlace:
    """Where markers lie among the readings of the load: near those that it writes at the same time, and apart from those of other runs.

    Args:
        readings_between: how many readings the load writes from one marker to the next; 1 or fewer where nobody knows.
        run: number of the run, from 0.
        runs: how many there are.
        before: readings of the load before this run.

    """

    def __init__(self, readings_between: float, run: int, runs: int, before: int = 0) -> None:
        self._between = readings_between
        self._run, self._runs = run, runs
        self._before = before // runs

    def number(self, marker: int) -> int:
        """The number of the reading of the load after which a marker lies: another one for each marker and run."""
        return self._runs * (max(marker, int(marker * self._between)) + self._before) + self._run


def freshness_plan(
    freshness: Freshness, write: PlannedOperation, question: PlannedOperation, rows: "pa.Table", timeout_s: float
) -> str:
    """The plan of markers for the engine (JSON).

    Args:
        freshness: what is wanted.
        write: the write of a marker, as a plan has it.
        question: the question that returns it.
        rows: their parameters.
        timeout_s: time limit of a write or read.

    """

    def of_rows(planned: PlannedOperation) -> PlannedOperation:
        names = [parameter["name"] for parameter in planned["operation"]["parameters"]]
        origins: list[ParameterOrigin] = [{"source": 0, "column": rows.column_names.index(name)} for name in names]
        return {
            "weight": 1.0,
            "operation": planned["operation"],
            "parameters": origins,
            "client_steps": planned.get("client_steps", {}),
        }

    plan: EnginePlan = {
        "seed": 0,
        "operations": [of_rows(write), of_rows(question)],
        "order": "in turn",
        "parameter_sources": [{"rows": {"table": 0, "choice": "sequential"}}],
        "phases": [{"name": "markers", "operations": 2 * rows.num_rows}],
        "concurrency": freshness.watched,
        "timeout_s": timeout_s,
    }
    times = {"every_s": 1.0 / freshness.rate, "poll_s": seconds(freshness.poll), "within_s": seconds(freshness.within)}
    return json.dumps({"plan": plan, "markers": rows.num_rows, **times})


class FreshnessWatch:
    """Markers that are written and watched from now on, beside a run that begins."""

    def __init__(self, target: "Target", plan: str, rows: "pa.Table") -> None:
        self._rows = rows
        self._watched: WatchedMarkers = target.watch_freshness(plan, [rows.to_reader()])
        self._is_over = False

    def end(self, run: EngineRun) -> "pa.Table":
        """Waits until the last marker was seen or given up. Returns what became of each, on the clock of the run, with its parameters."""
        import pyarrow as pa
        import pyarrow.compute as pc

        self._is_over = True
        self._watched.stop()
        later_ns = run.now_ns() - self._watched.now_ns()
        probed = pa.Table.from_batches([self._watched.end()])
        parameters = self._rows.drop_columns(["from", "to"]).take(probed["marker"])
        columns = {
            name: pc.add(probed[name].cast(pa.int64()), later_ns) if name.endswith("_ns") else probed[name]
            for name in probed.column_names
        }
        return pa.table({**columns, **{name: parameters[name] for name in parameters.column_names}})

    def close(self) -> None:
        """Ends what was not ended."""
        if not self._is_over:
            self._is_over = True
            self._watched.end()
