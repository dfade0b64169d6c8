"""One run: start it, write down what comes, hear Ctrl-C."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import psutil
import pyarrow as pa

from sensorbench._engine import Run, Target
from sensorbench.errors import FailedError
from sensorbench.experiment.lifeline import Lifeline, why_lost
from sensorbench.experiment.plan import as_json
from sensorbench.experiment.watch import Watcher
from sensorbench.results import RunWriter

SLICE_S = 0.25
# A segment is this long, or this share of the run so far: a run of hours does not become a hundred thousand files, and what a crash
# can lose stays a small part of it.
SEGMENT_S = 1.0
SEGMENT_SHARE = 1 / 600


def run_and_write(
    target: Target,
    plan: dict[str, Any],
    tables: Sequence[pa.RecordBatchReader],
    writer: RunWriter,
    servers: Mapping[str, psutil.Process],
    look: Callable[[Run, dict[str, Any]], None],
    at_end: Callable[[Run, bool], None],
) -> dict[str, Any]:
    """Runs a plan on a target to its end and writes it down. Returns the run as a whole.

    While it goes on, `look` is called with the run and its snapshot, to tell people, or to steer it. When all that was recorded is
    written, `at_end` is called with the run, and whether it is complete. Whatever ends it early
    (Ctrl-C, a full disk, a lost database) leaves the segments that were written, and a manifest that says how it ended.
    """
    watcher = Watcher(target, servers)
    run = target.run(as_json(plan), tables)
    with watcher.watching(run):
        try:
            started_s = written_s = time.monotonic()
            lifeline = Lifeline()
            while not run.wait(SLICE_S):
                snapshot = json.loads(run.snapshot())
                look(run, snapshot)
                if lifeline.is_lost(snapshot):
                    run.cancel()
                    whole = _end(run, writer, watcher)
                    at_end(run, False)
                    writer.finish("failed", whole, why_lost(whole))
                    raise FailedError(why_lost(whole))
                if time.monotonic() - written_s >= max(SEGMENT_S, SEGMENT_SHARE * (written_s - started_s)):
                    written_s = time.monotonic()
                    writer.write(run.take(), *watcher.take())
            whole = _end(run, writer, watcher, is_complete=True)
            at_end(run, True)
            writer.finish("complete", whole)
        except KeyboardInterrupt:
            run.cancel()
            whole = _end(run, writer, watcher)
            at_end(run, False)
            writer.finish("interrupted", whole, "interrupted by the user")
            raise
        except BaseException:
            run.cancel()
            raise
    return whole


def _end(run: Run, writer: RunWriter, watcher: Watcher, *, is_complete: bool = False) -> dict[str, Any]:
    segment, whole = run.end()
    # Who lost its server, or is interrupted, does not wait for answers.
    watcher.look_once_more(asks=is_complete)
    writer.write(segment, *watcher.take())
    result: dict[str, Any] = json.loads(whole)
    return result
