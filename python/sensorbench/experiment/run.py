"""One run: start it, write down what comes, hear Ctrl-C."""

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import psutil
import pyarrow as pa

from sensorbench._engine import Run, Target
from sensorbench.experiment.plan import as_json
from sensorbench.results import RunWriter

SLICE_S = 0.25
SEGMENT_S = 1.0


def run_and_write(
    target: Target,
    plan: dict[str, Any],
    tables: Sequence[pa.RecordBatchReader],
    writer: RunWriter,
    tell: Callable[[dict[str, Any]], None],
) -> dict[str, Any]:
    """Runs a plan on a target to its end and writes it down. Returns the run as a whole.

    Whatever ends it early (Ctrl-C, a full disk, a lost database) leaves the segments that were written, and a manifest that
    says how it ended.
    """
    run = target.run(as_json(plan), tables)
    client = _Client()
    try:
        written_s = time.monotonic()
        while not run.wait(SLICE_S):
            tell(json.loads(run.snapshot()))
            if time.monotonic() - written_s >= SEGMENT_S:
                written_s = time.monotonic()
                writer.write(run.take(), [client.resources(run.now_ns())])
        whole = _end(run, writer, client)
        writer.finish("complete", whole)
    except KeyboardInterrupt:
        run.cancel()
        writer.finish("interrupted", _end(run, writer, client), "interrupted by the user")
        raise
    except BaseException:
        run.cancel()
        raise
    return whole


def _end(run: Run, writer: RunWriter, client: "_Client") -> dict[str, Any]:
    segment, whole = run.end()
    writer.write(segment, [client.resources(run.now_ns())])
    result: dict[str, Any] = json.loads(whole)
    return result


class _Client:
    """The process that makes the load; with an embedded database, the database too."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._start_cpu_s = self._cpu_s()

    def _cpu_s(self) -> float:
        times = self._process.cpu_times()
        return float(times.user + times.system)

    def resources(self, time_ns: int) -> dict[str, Any]:
        """Processor time since the start, memory, threads; at a time on the run's clock."""
        memory = self._process.memory_info().rss
        return {
            "time_ns": time_ns,
            "process": "client",
            "cpu_s": self._cpu_s() - self._start_cpu_s,
            "memory_bytes": memory,
            "threads": self._process.num_threads(),
        }
