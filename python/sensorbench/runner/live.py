"""What a run does while it is running, second by second: for a page that follows it, and of a stored run for the same page again."""

import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict, cast

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from sensorbench.results import RunManifest, RunResult
from sensorbench.results.engine_report import Snapshot, in_flight
from sensorbench.results.writer import ResourceRow

if TYPE_CHECKING:
    from sensorbench._engine import Segment


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True)


class IntervalPoint(_Message):
    """What became of one kind of operation in an interval; times in s, None if no operation ended that has one."""

    time_s: float
    length_s: float
    phase: str
    operation: str
    ok: int
    failed: int
    late: int
    p50_s: float | None
    p95_s: float | None
    p99_s: float | None


class CpuPoint(_Message):
    """How many CPUs a process kept busy between two readings, the later of which was at `time_s`."""

    time_s: float
    process: str
    cpus: float


class EventPoint(_Message):
    """Something that happened at a moment of the run."""

    time_s: float
    name: str


class RunBegin(_Message):
    """A run of the engine begins. `run` names it within the results folder."""

    kind: Literal["begin"] = "begin"
    run: str
    variant: str
    repetition: int
    threads: int
    is_embedded: bool


class RunProgress(_Message):
    """What was recorded since the message before; counts of the run until now, None if nobody can say them any more."""

    kind: Literal["progress"] = "progress"
    run: str
    intervals: list[IntervalPoint]
    cpu: list[CpuPoint]
    events: list[EventPoint]
    dropped: int | None
    in_flight: int | None


class RunEnd(_Message):
    """A run is over."""

    kind: Literal["end"] = "end"
    run: str
    status: str


class FeedEnd(_Message):
    """Nothing more comes."""

    kind: Literal["over"] = "over"


LiveMessage = RunBegin | RunProgress | RunEnd | FeedEnd


class _IntervalRow(TypedDict):
    start_ns: int
    length_ns: int
    phase: int
    operation: int
    ok: int
    error: int
    timeout: int
    late: int
    response_p50_ns: int | None
    response_p95_ns: int | None
    response_p99_ns: int | None


class LiveFeed:
    """Messages in their order, kept so that a page that is opened late sees all of them. Many threads may wait for the next."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Distinguishes this feed from others that the same address served before.
        self.token = secrets.token_hex(4)
        self._messages: list[str] = []
        self._is_over = False
        self._changed = threading.Condition()

    def publish(self, message: LiveMessage) -> None:
        """Adds a message."""
        with self._changed:
            self._messages.append(message.model_dump_json())
            self._is_over = isinstance(message, FeedEnd)
            self._changed.notify_all()

    def messages_from(self, number: int) -> list[str]:
        """The messages from a number on, as JSON. Waits for the first of them; none when the feed is over before it."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_over or len(self._messages) > number)
            return self._messages[number:]


class LiveRun:
    """Publishes one run as it is recorded."""

    def __init__(self, feed: LiveFeed, folder: Path, manifest: RunManifest) -> None:
        self._feed = feed
        self._manifest = manifest
        self._name = str(folder.relative_to(feed.folder)) if folder.is_relative_to(feed.folder) else folder.name
        self._last: dict[str, ResourceRow] = {}
        variant = manifest.variant
        feed.publish(
            RunBegin(
                run=self._name,
                variant=variant.id,
                repetition=manifest.repetition,
                threads=manifest.plan["threads"],
                is_embedded=variant.embedded,
            )
        )

    def add_segment(self, segment: "Segment", resources: Sequence[ResourceRow], snapshot: Snapshot) -> None:
        """Publishes a segment; `snapshot`: the last one before it was taken."""
        dropped = sum(phase["dropped"] for phase in snapshot["phases"])
        self.add(segment["intervals"], resources, segment["events"], snapshot["now_ns"], dropped, in_flight(snapshot))

    def add(
        self,
        intervals: pa.RecordBatch | pa.Table,
        resources: Sequence[ResourceRow],
        events: Sequence[tuple[int, str]],
        now_ns: int | None,
        dropped: int | None,
        waiting: int | None,
    ) -> None:
        """Publishes what was recorded.

        Args:
            intervals: rows of the table `intervals`.
            resources: rows of the table `resources`.
            events: times in ns on the clock of the run, and names.
            now_ns: time on that clock, where the last interval may end early; None if it is not known.
            dropped: arrivals that were dropped until now.
            waiting: operations in flight.

        """
        self._feed.publish(
            RunProgress(
                run=self._name,
                intervals=[self._interval(row, now_ns) for row in cast("list[_IntervalRow]", intervals.to_pylist())],
                cpu=list(self._cpu(resources)),
                events=[EventPoint(time_s=time_ns / 1e9, name=name) for time_ns, name in events],
                dropped=dropped,
                in_flight=waiting,
            )
        )

    def end(self, status: str) -> None:
        """Says that the run is over, and how it ended."""
        self._feed.publish(RunEnd(run=self._name, status=status))

    def _interval(self, row: _IntervalRow, now_ns: int | None) -> IntervalPoint:
        length_ns = row["length_ns"]
        if now_ns is not None and now_ns > row["start_ns"]:
            length_ns = min(length_ns, now_ns - row["start_ns"])
        return IntervalPoint(
            time_s=row["start_ns"] / 1e9,
            length_s=length_ns / 1e9,
            phase=self._manifest.phases[row["phase"]],
            operation=self._manifest.operations[row["operation"]],
            ok=row["ok"],
            failed=row["error"] + row["timeout"],
            late=row["late"],
            p50_s=_in_s(row["response_p50_ns"]),
            p95_s=_in_s(row["response_p95_ns"]),
            p99_s=_in_s(row["response_p99_ns"]),
        )

    def _cpu(self, resources: Sequence[ResourceRow]) -> Iterator[CpuPoint]:
        """How fast CPU time grows from one reading of a process to the next."""
        for row in resources:
            before = self._last.get(row.process)
            self._last[row.process] = row
            if before is not None and row.time_ns > before.time_ns:
                cpus = max(0.0, row.cpu_s - before.cpu_s) / ((row.time_ns - before.time_ns) / 1e9)
                yield CpuPoint(time_s=row.time_ns / 1e9, process=row.process, cpus=cpus)


def _in_s(time_ns: int | None) -> float | None:
    return None if time_ns is None else time_ns / 1e9


# The feed that runs of this context are published to.
_FEED: ContextVar[LiveFeed | None] = ContextVar("feed", default=None)


@contextmanager
def published_to(feed: LiveFeed) -> Iterator[None]:
    """Has the runs that begin in this context published to a feed."""
    token = _FEED.set(feed)
    try:
        yield
    finally:
        _FEED.reset(token)


def current_feed() -> LiveFeed | None:
    """The feed that runs of this context are published to; None if nobody follows them."""
    return _FEED.get()


def live_run(folder: Path, manifest: RunManifest) -> LiveRun | None:
    """What publishes a run that begins now; None if nobody follows it."""
    feed = current_feed()
    return None if feed is None else LiveRun(feed, folder, manifest)


def publish_stored(run: RunResult, feed: LiveFeed) -> None:
    """Publishes a run that lies on disk as if it were running. Raises DamagedResultsError."""
    live = LiveRun(feed, run.folder, run.manifest)
    intervals, resources, events = (run.table(name) for name in ("intervals", "resources", "events"))
    totals = run.manifest.totals
    live.add(
        intervals if intervals is not None else pa.table({}),
        [ResourceRow(**row) for row in resources.to_pylist()] if resources is not None else [],
        [(row["time_ns"], row["name"]) for row in events.to_pylist()] if events is not None else [],
        totals.duration_ns if totals else None,
        sum(phase.dropped for phase in totals.phases) if totals else None,
        None,
    )
    live.end(run.state)
