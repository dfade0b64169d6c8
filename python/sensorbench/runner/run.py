"""One run: start it, write down what comes, hear Ctrl-C."""

import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from sensorbench import lab
from sensorbench._engine import Run, Target
from sensorbench.errors import FailedError, LostGeneratorError
from sensorbench.interrupts import check, held_back, let_through, take_pending
from sensorbench.results import RunManifest, RunWriter
from sensorbench.results.engine_plan import EnginePlan, KeptPlan, kept_of
from sensorbench.results.engine_report import EngineRun, ErrorReport, Snapshot, snapshot_of
from sensorbench.results.manifest import Process, RunTotals, now
from sensorbench.runner.live import LiveRun, live_run
from sensorbench.runner.monitor import Watcher
from sensorbench.runner.plan import as_json
from sensorbench.runner.variants import Variant

if TYPE_CHECKING:
    from sensorbench._engine import Segment

# A server that is restarted by whoever watches over it is back by then.
LOST_S = 5.0
# Fewer failures may be slow questions that one database cannot answer: it is there and continues with the next.
MIN_FAILURES = 20
# Why a run was interrupted that did not end by itself.
BY_USER = "interrupted by the user"

# Called some times per second with a run and its snapshot.
Observer = Callable[[EngineRun, Snapshot], None]


def run_manifest(
    target: Target,
    variant: Variant,
    plan: EnginePlan,
    *,
    repetition: int,
    temperature: Literal["cold", "warm", "hot"] = "warm",
    created: datetime | None = None,
    described: KeptPlan | None = None,
) -> RunManifest:
    """The manifest of a run that begins now: the one place where one is made.

    Args:
        target: Where it runs; it describes itself.
        variant: What is measured.
        plan: The plan for the engine.
        repetition: Number of the repetition, from 1.
        temperature: Whether caches were filled before.
        created: When it began, if that was needed before.
        described: What the manifest says of the plan besides.

    """
    return RunManifest(
        process=Process.this(),
        created=created or now(),
        variant=variant.manifest({}),
        repetition=repetition,
        temperature=temperature,
        seed=plan["seed"],
        operations=[operation["operation"]["name"] for operation in plan["operations"]],
        phases=[phase["name"] for phase in plan["phases"]],
        plan={**kept_of(plan), **(described or {})},
        description=json.loads(target.describe()),
    )


class LostServerDetector:
    """Watches the outcomes of operations during a run."""

    def __init__(self) -> None:
        self._served = 0
        self._failed = 0
        self._failing_since_s: float | None = None
        self._failed_before = 0

    def is_lost(self, snapshot: Snapshot) -> bool:
        """Whether operations, MIN_FAILURES or more, have done nothing but fail for LOST_S seconds. Time-outs are answers of a kind:
        a slow database.
        """
        counts = [operation["counts"] for phase in snapshot["phases"] for operation in phase["operations"].values()]
        served = sum(count["ok"] + count["timeout"] for count in counts)
        failed = sum(count["error"] for count in counts)
        only_failed = served == self._served and failed > self._failed
        if served > self._served:
            self._failing_since_s = None
        elif only_failed and self._failing_since_s is None:
            self._failing_since_s, self._failed_before = time.monotonic(), self._failed
        self._served, self._failed = served, failed
        if self._failing_since_s is None or failed - self._failed_before < MIN_FAILURES:
            return False
        return time.monotonic() - self._failing_since_s >= LOST_S


def lost_generators(totals: RunTotals) -> str:
    """Which load generators were lost, how, and what is not known of their operations; empty if none was."""
    return "; ".join(
        f"{generator.lost}; at least {generator.unknown:,} operations that it had started are unknown"
        for generator in totals.generators
        if generator.lost is not None
    )


def why_lost(errors: Iterable[ErrorReport]) -> str:
    """The message for a run that was given up: of its errors the one that came most often."""
    often = max((error for error in errors if error["kind"] != "cancelled"), key=lambda error: error["count"], default=None)
    if often is None:
        return "the database no longer answers"
    return f"the run was given up after {LOST_S:g} s without an answer: {often['first_message']}"


SLICE_S = 0.25
# A segment is this long, or this share of the run so far: a run of hours does not become a hundred thousand files, and what a crash
# can lose stays a small part of it.
SEGMENT_S = 1.0
SEGMENT_SHARE = 1 / 600
_log = logging.getLogger(__name__)


def run_and_write(
    target: Target,
    start: Callable[[], EngineRun],
    writer: RunWriter,
    servers: Mapping[str, lab.WatchedProcess],
    on_snapshot: Observer,
    at_end: Callable[[EngineRun, bool], None],
    insight: Callable[[], Mapping[str, float]] | None = None,
) -> RunTotals:
    """Has `start` begin a run on a target, follows it to its end and writes it down. Returns the run as a whole.

    While it runs, `on_snapshot` is called with the run and its snapshot, to report progress, or to steer it. When all that was recorded is
    written, `at_end` is called with the run, and whether it is complete. Whatever ends it early
    (Ctrl-C, a full disk, a lost database) leaves the segments that were written, and a manifest that says how it ended.
    """
    # What is interrupted in the middle of its ending would be neither whole nor known to be cut short.
    with held_back():
        with let_through():
            watcher = Watcher(target, servers, insight)
        _log.info("run %s: %s", writer.folder.name, ", ".join(writer.manifest.phases))
        run = start()
        recording = _Recording(writer, watcher)
        run_end = _RunEnd(run, recording)
        with watcher.watching(run), recording.published():
            try:
                is_lost = _follow(run, recording, on_snapshot)
                totals = run_end.write(asks=not is_lost)
                if lost := lost_generators(totals):
                    raise LostGeneratorError(lost)
                with let_through():
                    at_end(run, not is_lost)
                why = why_lost(totals.errors) if is_lost else run.failure()
                writer.finish("failed" if why else "complete", totals, why)
            except (LostGeneratorError, KeyboardInterrupt) as error:
                # Who interrupts does not wait long for what does not answer, so that it counts as lost.
                is_by_user = isinstance(error, KeyboardInterrupt) or take_pending()
                run.cancel()
                totals = run_end.write(asks=False)
                at_end(run, False)
                lost = lost_generators(totals)
                reasons = [BY_USER, lost] if is_by_user else [lost]
                writer.finish("interrupted", totals, "; ".join(filter(None, reasons)))
                raise (KeyboardInterrupt(lost) if is_by_user else LostGeneratorError(lost)) from None
            except BaseException:
                run.cancel()
                raise
    if why is not None:
        raise FailedError(why)
    return totals


def _nothing(run: EngineRun, segment: "Segment") -> None:
    """What was recorded is not looked at."""


def run_to_end(
    target: Target,
    plan: EnginePlan,
    tables: Sequence[pa.RecordBatchReader] = (),
    on_segment: "Callable[[Run, Segment], None]" = _nothing,
) -> tuple[Run, RunTotals]:
    """Runs a plan that is not a measurement of its own, or a very short one: nothing is watched or written. What was recorded is given to
    `on_segment` piece by piece. Returns the run, which is over, and what was counted.
    """
    run = target.run(as_json(plan), tables)
    while not run.wait(SLICE_S):
        on_segment(run, run.take())
    segment, totals = run.end()
    on_segment(run, segment)
    return run, RunTotals.model_validate_json(totals)


class _Recording:
    """Where segments of a run go: to its folder, and to whoever follows it."""

    def __init__(self, writer: RunWriter, watcher: Watcher) -> None:
        self.watcher = watcher
        self._writer = writer
        self._live: LiveRun | None = None

    @contextmanager
    def published(self) -> Iterator[None]:
        """Lets others follow the run, if someone asks for it, until the context ends."""
        self._live = live_run(self._writer.folder, self._writer.manifest)
        try:
            yield
        finally:
            if self._live is not None:
                status = self._writer.manifest.status
                self._live.end("failed" if status == "running" else status)

    def write(self, segment: "Segment", snapshot: Snapshot) -> None:
        """Writes a segment, and what the watcher has seen meanwhile; `snapshot`: the last one before it was taken."""
        resources, status = self.watcher.take()
        self._writer.write(segment, resources, status)
        if self._live is not None:
            self._live.add_segment(segment, resources, snapshot)


def _follow(run: EngineRun, recording: _Recording, on_snapshot: Observer) -> bool:
    """Writes segments during a run. Returns whether it was given up, its database being lost. Raises KeyboardInterrupt."""
    started_s = written_s = time.monotonic()
    detector = LostServerDetector()
    while not run.wait(SLICE_S):
        check()
        snapshot = snapshot_of(run)
        on_snapshot(run, snapshot)
        if detector.is_lost(snapshot):
            run.cancel()
            return True
        if time.monotonic() - written_s >= max(SEGMENT_S, SEGMENT_SHARE * (written_s - started_s)):
            written_s = time.monotonic()
            recording.write(run.take(), snapshot)
    check()
    return False


class _RunEnd:
    """The last segment of a run, and the run as a whole. Both are taken once, however often the run is brought to its end."""

    def __init__(self, run: EngineRun, recording: _Recording) -> None:
        self._run = run
        self._recording = recording
        self._totals: RunTotals | None = None

    def write(self, *, asks: bool) -> RunTotals:
        """Writes the last segment, unless that was done before. With `asks`, the server says what it has counted until now."""
        if self._totals is None:
            snapshot = snapshot_of(self._run)
            segment, whole = self._run.end()
            # Who lost its server, or is interrupted, does not wait for answers.
            self._recording.watcher.read_once_more(asks=asks)
            self._recording.write(segment, snapshot)
            self._totals = RunTotals.model_validate_json(whole)
        return self._totals
