"""Loading in batches that are acknowledged one by one: how long each takes, how far behind its intended start it is, and what the data take meanwhile."""

import json
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

import pyarrow as pa

from sensorbench._engine import Target
from sensorbench.results.described import BatchedLoad, BatchInterval, LoadedPart, LoadedTable, LoadSizeSample
from sensorbench.runner.prepare import PreparedTable
from sensorbench.runner.write_batches import WriteBatches

_SLICE_S = 0.1
# The size is measured so often, and at most one part in this many of the time: some databases read all of their files for it.
_SAMPLE_S = 1.0
_SIZE_SHARE = 20
# Results keep this many intervals of a load, which have about as many batches each.
MAX_INTERVALS = 100


def in_batches(rows: pa.RecordBatchReader, batch_rows: int) -> Iterator[pa.Table]:
    """The same rows in batches of exactly this many, but for the last one. Each is one piece of memory, since drivers send pieces as they come."""
    held: list[pa.RecordBatch] = []
    wanted = batch_rows
    for batch in rows:
        first = 0
        while first < batch.num_rows:
            part = batch.slice(first, wanted)
            held.append(part)
            first, wanted = first + part.num_rows, wanted - part.num_rows
            if wanted == 0:
                yield pa.Table.from_batches(held).combine_chunks()
                held, wanted = [], batch_rows
    if held:
        yield pa.Table.from_batches(held).combine_chunks()


@dataclass(frozen=True)
class _Sent:
    """A batch that was acknowledged, in s since the load began: `rows` are those of all batches that were acknowledged until then."""

    start_s: float
    end_s: float
    lag_s: float
    service_s: float
    rows: int
    retries: int


@dataclass
class BatchLoader:
    """Loads tables in batches, by as many writers as there are targets.

    Args:
        targets: the variant's target, once for each writer.
        batches: how rows are handed over.
        size: returns what the data take in bytes; None if the database does not report it.
        note: called some times per second with the number of rows that are in; what it raises ends the load.

    """

    targets: Sequence[Target]
    batches: WriteBatches
    size: Callable[[], int | None]
    note: Callable[[int], None]
    # Of the first table: measuring the size before it is not part of the load.
    _start_s: float | None = None
    _rows: int = 0
    _planned_rows: int = 0
    _sent: list[_Sent] = field(default_factory=list)
    _sizes: list[LoadSizeSample] = field(default_factory=list)
    _next_size_s: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stopped: threading.Event = field(default_factory=threading.Event)

    def load(self, table: PreparedTable) -> LoadedTable:
        """Loads a table after those before. Raises what a batch or `note` raises; then no further batch begins."""
        if self._start_s is None:
            self._measure_size()
            self._start_s = time.monotonic()
        before, start_s = len(self._sent), self._now_s()
        rows = in_batches(table.open(), self.batches.rows)
        with ThreadPoolExecutor(len(self.targets), thread_name_prefix="writers") as pool:
            writers = [pool.submit(self._write, target, table.table, rows) for target in self.targets]
            try:
                self._watch(writers)
            finally:
                # Also where it went well: then no batch is left.
                self._stopped.set()
        self._stopped.clear()
        duration_s = self._now_s() - start_s
        sent = self._sent[before:]
        return {
            "table": table.table,
            "prepare_s": table.prepare_s,
            "prepared_bytes": table.bytes,
            "rows": sent[-1].rows - (self._sent[before - 1].rows if before else 0) if sent else 0,
            "duration_s": duration_s,
            "batches": len(sent),
            "batch_s": _quantiles([batch.service_s for batch in sent]),
            "retries": sum(batch.retries for batch in sent),
        }

    def report(self, recommended_rows: int | None) -> BatchedLoad:
        """What was measured of all batches, when all tables are loaded."""
        self._measure_size()
        report: BatchedLoad = {
            "batch_rows": self.batches.rows,
            "writers": self.batches.writers,
            "rate": self.batches.rate,
            "recommended_rows": recommended_rows,
            "default_levels": [
                {"key": default.key, "basis": default.basis, "source": default.source} for default in self.batches.default_levels
            ],
            "batches": len(self._sent),
            "batch_s": _quantiles([batch.service_s for batch in self._sent]),
            "intervals": self._intervals(),
            "sizes": self._sizes,
            "retries": sum(batch.retries for batch in self._sent),
        }
        if self.batches.rate is not None:
            report["response_s"] = _quantiles([batch.lag_s + batch.end_s - batch.start_s for batch in self._sent])
            report["max_lag_s"] = max((batch.lag_s for batch in self._sent), default=0.0)
            report["last_lag_s"] = max(self._sent, key=lambda batch: batch.start_s).lag_s if self._sent else 0.0
        return report

    def _watch(self, writers: Sequence[Future[None]]) -> None:
        left = set(writers)
        while left:
            ended, left = wait(left, timeout=_SLICE_S, return_when=FIRST_EXCEPTION)
            for writer in ended:
                writer.result()
            self.note(self._rows)
            if self._now_s() >= self._next_size_s:
                self._measure_size()

    def _write(self, target: Target, table: str, rows: Iterator[pa.Table]) -> None:
        """One writer: takes a batch when its last one was acknowledged, until none is left or the load is stopped."""
        while (taken := self._take(rows)) is not None:
            batch, intended_s = taken
            self._stopped.wait(max(0.0, intended_s - self._now_s()))
            if self._stopped.is_set():
                return
            start_s = self._now_s()
            load = target.load(table, batch.to_reader())
            while not load.wait(_SLICE_S):
                if self._stopped.is_set():
                    load.stop()
            went: LoadedPart = json.loads(load.result())
            end_s = self._now_s()
            with self._lock:
                self._rows += went["rows"]
                lag_s = start_s - intended_s if self.batches.rate is not None else 0.0
                self._sent.append(_Sent(start_s, end_s, lag_s, went["duration_s"], self._rows, went.get("retries", 0)))

    def _take(self, rows: Iterator[pa.Table]) -> tuple[pa.Table, float] | None:
        """The next batch, and when it is to start, in s since the load began; at once without a rate."""
        with self._lock:
            batch = None if self._stopped.is_set() else next(rows, None)
            if batch is None:
                return None
            intended_s = 0.0 if self.batches.rate is None else self._planned_rows / self.batches.rate
            self._planned_rows += batch.num_rows
            return batch, intended_s

    def _measure_size(self) -> None:
        rows, began_s = self._rows, self._now_s()
        found = self.size()
        ended_s = self._now_s()
        self._next_size_s = ended_s + max(_SAMPLE_S, _SIZE_SHARE * (ended_s - began_s))
        if found is not None:
            self._sizes.append({"elapsed_s": began_s, "rows": rows, "bytes": found})

    def _intervals(self) -> list[BatchInterval]:
        each = max(1, math.ceil(len(self._sent) / MAX_INTERVALS))
        parts = [self._sent[first : first + each] for first in range(0, len(self._sent), each)]
        return [
            {
                "end_s": part[-1].end_s,
                "rows": part[-1].rows,
                "batches": len(part),
                "lag_s": max(batch.lag_s for batch in part),
                "batch_s": _quantiles([batch.service_s for batch in part]),
            }
            for part in parts
        ]

    def _now_s(self) -> float:
        now_s = time.monotonic()
        return now_s - (now_s if self._start_s is None else self._start_s)


def _quantiles(seconds: Sequence[float]) -> dict[str, float]:
    """Median, 99th percentile and maximum: the smallest value that this many do not exceed."""
    ordered = sorted(seconds)
    return {
        name: ordered[max(0, math.ceil(share * len(ordered)) - 1)]
        for name, share in (("p50", 0.5), ("p99", 0.99), ("max", 1.0))
        if ordered
    }
