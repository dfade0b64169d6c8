"""The actions of retention beside one run of a variant: statements on a thread of their own, with connections of their own."""

import json
import threading
import time
from dataclasses import dataclass, replace

import pyarrow as pa

from sensorbench._engine import Target
from sensorbench.errors import EngineError, FailedError
from sensorbench.results.engine_report import EngineRun, Snapshot, snapshot_of
from sensorbench.results.retention import CLOCK, EXPIRE, ROLLUP, SIZE, RetentionEvent
from sensorbench.runner.comparison import Comparison
from sensorbench.runner.lengths import seconds
from sensorbench.runner.plan import Parameters, columns_of
from sensorbench.runner.retention import AcceleratedTime, Retention, RetentionAction, microseconds, pace_of
from sensorbench.runner.streams import checked_time_to_live_s, retained_write
from sensorbench.runner.variants import Variant
from sensorbench.schemas.arrow_types import arrow_schema
from sensorbench.schemas.engine_types import DriverStatement
from sensorbench.schemas.retention import PARAMETERS, RetentionStatements, retention_statements

# How often it is looked whether an action has come, in s.
_LOOK_S = 0.02
# Measuring the size takes at most one part in this many of the time: some databases read all of their files for it.
_SIZE_SHARE = 10
_EPOCH = RetentionAction(0, 0, 0, 0)


@dataclass(frozen=True)
class RetainedStream:
    """A variant whose readings expire: the statements for that, and the time of its readings."""

    target: Target
    statements: RetentionStatements
    time: AcceleratedTime
    retention: Retention
    ttl_s: int | None


def retained_stream(
    target: Target, comparison: Comparison, variant: Variant, parameters: Parameters, retention: Retention
) -> RetainedStream:
    """What expires of a variant, and how.

    Args:
        target: of the variant, with its data loaded.
        comparison: what is measured.
        variant: which variant.
        parameters: of the run.
        retention: what is wanted.

    """
    write = comparison.operations.operation[retained_write(comparison)]
    number = columns_of(write, parameters)[1][write.time]
    pace = pace_of(comparison.workload.delivery)
    readings = AcceleratedTime(retention, number["start"], number["step"], pace)
    ttl_s = checked_time_to_live_s(comparison, variant)
    return RetainedStream(target, retention_statements(variant.schema, write, ttl_s), readings, retention, ttl_s)


def execute_retention(stream: RetainedStream, statement: DriverStatement, action: RetentionAction) -> list[list[object]]:
    """Executes a statement with the times of an action. Returns its rows; times in µs. Raises EngineError."""
    age_us = time.time_ns() // 1000 - action.before_us + stream.statements.grace_us
    values = {
        "from": action.from_us,
        "to": action.to_us,
        "before": action.before_us,
        "width": stream.time.width_us,
        "age": age_us // 1000,
    }
    row = pa.table({name: pa.array([values[name]], pa.int64()) for name in PARAMETERS}).cast(arrow_schema(PARAMETERS))
    rows: list[list[object]] = json.loads(stream.target.execute_once(json.dumps(statement), row.to_reader()))
    return rows


class RetentionWatch:
    """Does what retention brings during a run. The thread writes no file: it keeps events, which are taken at the end."""

    def __init__(self, stream: RetainedStream) -> None:
        """Executes what the schema has before the run. Raises FailedError if that fails."""
        self._stream = stream
        self._events: list[RetentionEvent] = []
        self._operations = 0
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None
        times = stream.time
        until_us = times.origin_us + microseconds(stream.retention.span) + 2 * microseconds(stream.retention.every)
        if stream.statements.begin is not None:
            try:
                execute_retention(stream, stream.statements.begin, replace(_EPOCH, from_us=times.origin_us, to_us=until_us))
            except EngineError as error:
                raise FailedError(f"retention.begin: {error}") from None

    def advance(self, run: EngineRun, snapshot: Snapshot) -> None:
        """Takes notice of how far a run is; the first time, the thread begins."""
        self._operations = _started(snapshot)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, args=(run,), name="retention", daemon=True)
            self._thread.start()

    def end(self, run: EngineRun, *, is_complete: bool) -> list[RetentionEvent]:
        """Waits until the current action is over, and does the last one. Returns what was done, in its order.

        Args:
            run: which is over; its clock continues.
            is_complete: whether it came to its end; else there is no last action.

        Raises:
            EngineError: if the database cannot be made to show what it acknowledged.

        """
        self.close()
        if self._failure is not None:
            raise self._failure
        if self._stream.ttl_s is not None:
            now_ns = run.now_ns()
            self._events.append(RetentionEvent(CLOCK, now_ns, now_ns, time.time_ns() // 1000))
        if not is_complete:
            return self._events
        self._operations = _started(snapshot_of(run))
        # What was acknowledged is rolled up where the database shows it later, too.
        self._stream.target.show()
        self._act(run, self._stream.time.last_action(self._operations), is_last=True)
        return self._events

    def close(self) -> None:
        """Ends the thread."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _work(self, run: EngineRun) -> None:
        try:
            self._follow(run)
        except BaseException as error:  # It is raised again by whoever ends the run.
            self._failure = error

    def _follow(self, run: EngineRun) -> None:
        next_size_s = 0.0
        while not self._stopped.is_set():
            if time.monotonic() >= next_size_s:
                began_s = time.monotonic()
                self._measure(run)
                took_s = time.monotonic() - began_s
                next_size_s = began_s + max(seconds(self._stream.retention.sample), _SIZE_SHARE * took_s)
            # What expires by itself needs no actions.
            action = self._stream.time.next_action(self._operations) if self._stream.ttl_s is None else None
            if action is not None:
                self._act(run, action, is_last=False)
            self._stopped.wait(_LOOK_S)

    def _act(self, run: EngineRun, action: RetentionAction, *, is_last: bool) -> None:
        """Rolls up what will expire and what came late, and then expires; measures the size before and after. What could not be rolled up does not expire."""
        self._measure(run)
        wants_rollup = self._stream.retention.rollup is not None
        rollup, expire = self._stream.statements.rollup, self._stream.statements.expire
        if expire is None:
            return
        if not wants_rollup or rollup is None:
            self._execute(run, EXPIRE, expire, action, is_last=is_last)
        elif self._execute(run, ROLLUP, rollup, action, is_last=is_last):
            self._stream.time.note_rolled_up(action)
            self._execute(run, EXPIRE, expire, action, is_last=is_last)
        self._measure(run)

    def _execute(self, run: EngineRun, kind: str, statement: DriverStatement, action: RetentionAction, *, is_last: bool) -> bool:
        """Executes a statement of an action, and notes what came of it. Returns whether it succeeded."""
        if not is_last:
            run.annotate(f"{kind} begins")
        start_ns, removed, error = run.now_ns(), None, None
        try:
            rows = execute_retention(self._stream, statement, action)
            if statement["columns"]:
                removed = sum(count for row in rows if isinstance(count := row[0], int))
        except EngineError as why:
            error = str(why)
        end_ns = run.now_ns()
        if not is_last:
            run.annotate(f"{kind} ends")
        self._events.append(
            RetentionEvent(
                kind,
                start_ns,
                end_ns,
                action.time_us,
                from_us=action.from_us if kind == ROLLUP else None,
                to_us=action.to_us if kind == ROLLUP else None,
                before_us=action.before_us if kind == EXPIRE else None,
                is_last=is_last,
                removed=removed,
                error=error,
            )
        )
        return error is None

    def _measure(self, run: EngineRun) -> None:
        start_ns, size, error = run.now_ns(), None, None
        try:
            size = int(json.loads(self._stream.target.size())["total_bytes"])
        except EngineError as why:
            error = str(why)
        self._events.append(RetentionEvent(SIZE, start_ns, run.now_ns(), bytes=size, error=error))


def _started(snapshot: Snapshot) -> int:
    """How many operations have started."""
    return sum(phase["started"] for phase in snapshot["phases"])
