"""Coordinated omission, to be seen: one stall of a database, measured by a closed loop and by an open loop.

The stall is real: another process holds the write lock of the SQLite file. In the closed loop the one request in flight waits, and no
other is sent; in the open loop requests arrive as before, and each of them waits (Tene 2015; Schroeder, Wierman, Harchol-Balter 2006).
"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sensorbench.benchmarks.comparison import write_lock
from sensorbench.errors import FailedError
from sensorbench.paths import remove_results
from sensorbench.progress import ProgressReporter
from sensorbench.results import ComparisonWriter
from sensorbench.results.engine_report import EngineRun, Snapshot, elapsed_s
from sensorbench.results.files import release_reserve, write_result
from sensorbench.results.stall import STALL_FILE, Loop, StallRecord, stall_folder
from sensorbench.runner import ConnectedComparison, Schedule, StallTest, Workload, build_plan, parameters_of, run_plan

# How long the process that holds the lock may take for what it does besides.
_PATIENCE_S = 20.0
_TIMEOUT = "60s"


def measure_stall(connected: ConnectedComparison, test: StallTest, writer: ComparisonWriter, reporter: ProgressReporter) -> None:
    """Measures the stall by each loop. Raises FailedError when the database could not be stalled."""
    comparison = connected.comparison
    variant = next(variant for variant in comparison.variants if variant.id == test.variant)
    if variant.temporary is None:
        raise FailedError(f"{variant.id} is not a file of these results, and is not stalled")
    parameters = parameters_of(comparison.operations, [test.operation], connected.workbench, "the stall")
    schedules: dict[Loop, Schedule] = {"closed": Schedule(concurrency=1), "open": Schedule(rate=test.rate_per_s, concurrency=1)}
    folder, held_s = stall_folder(writer.folder), dict[Loop, float]()
    for number, (loop, schedule) in enumerate(schedules.items()):
        workload = Workload(
            mix={test.operation: 1.0},
            schedule=schedule,
            duration=test.duration,
            repetitions=len(schedules),
            timeout=_TIMEOUT,
            seed=comparison.workload.seed,
            answers="none",
        )
        plan = build_plan(comparison.operations, variant.schema, parameters, workload, number)
        remove_results(folder / loop)
        with reporter.task(f"a stall, {loop} loop") as task, _lock_holder(variant.temporary, test.stall_s) as holder:
            run_plan(
                connected.targets[variant.id],
                variant,
                plan,
                list(parameters.tables.values()),
                folder / loop,
                connected.servers,
                _trigger(holder, test.stall_after_s),
                number=number + 1,
                on_full_disk=lambda: release_reserve(writer.folder),
            )
            held_s[loop] = _held_s(holder)
            task.end(f"the database stalled for {held_s[loop] * 1e3:.0f} ms")
    record = StallRecord(
        variant=variant.id,
        operation=test.operation,
        title=comparison.operations.operation[test.operation].title,
        rate_per_s=test.rate_per_s,
        held_s=held_s,
    )
    write_result(folder / STALL_FILE, record.model_dump_json(indent=2) + "\n")


@contextmanager
def _lock_holder(database: Path, stall_s: float) -> Iterator["subprocess.Popen[str]"]:
    """The process that holds the lock when it gets a line."""
    command = [sys.executable, "-I", write_lock.__file__, str(database), str(stall_s)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True) as holder:
        try:
            if holder.stdout is None or holder.stdout.readline().strip() != "ready":
                raise FailedError(f"{database}: no process could open it to hold its write lock")
            yield holder
        finally:
            holder.kill()


def _trigger(holder: "subprocess.Popen[str]", after_s: float) -> Callable[[EngineRun, Snapshot], None]:
    """Lets the lock be held once, this many seconds after the run began."""
    is_pending = True

    def on_snapshot(run: EngineRun, snapshot: Snapshot) -> None:
        nonlocal is_pending
        if is_pending and elapsed_s(snapshot) >= after_s and holder.stdin is not None:
            is_pending = False
            run.annotate("another process takes the write lock")
            holder.stdin.write("\n")
            holder.stdin.flush()

    return on_snapshot


def _held_s(holder: "subprocess.Popen[str]") -> float:
    try:
        printed, _ = holder.communicate(timeout=_PATIENCE_S)
    except subprocess.TimeoutExpired:
        raise FailedError("the process that was to hold the write lock did not get it") from None
    if holder.returncode:
        raise FailedError(f"the process that was to hold the write lock ended with {holder.returncode}")
    return float(printed)
