"""One measurement: a fresh server with a configuration, the data, and the goal's figure."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sensorbench.benchmarks.stress import Load, StressPlan, Work, attempted, stress, summarise_stress
from sensorbench.benchmarks.tune.configured import ConfiguredWork
from sensorbench.benchmarks.tune.goal import Goal, PercentileGoal
from sensorbench.benchmarks.tune.space import Choice
from sensorbench.progress import ProgressReporter
from sensorbench.results.engine_report import EngineRun, Snapshot
from sensorbench.results.tune import Measurement, Role
from sensorbench.results.writer import write_typed_summary

# This much longer than the best is far worse; and for this share of its time a trial is held before it is judged.
FAR_WORSE = 3.0
FIRST_WINDOW = 0.2
# What snapshots know that is at most the percentile in question.
_Known = Literal["p50", "p95", "p99", "p999"]
_KNOWN: dict[str, _Known] = {"p50": "p50", "p90": "p50", "p95": "p95", "p99": "p99", "p999": "p999"}


class Pruner:
    """Stops a run whose last phase has, after a first stretch, a percentile FAR_WORSE than the best so far (s) in each of its
    operations: then the percentile of all of them is so, too.
    """

    def __init__(self, percentile: str, best_s: float, held_s: float) -> None:
        self.is_so = False
        self._key = _KNOWN[percentile]
        self._limit_s = best_s * FAR_WORSE
        self._first_s = held_s * FIRST_WINDOW

    def on_snapshot(self, run: EngineRun, snapshot: Snapshot) -> None:
        """Stops the run, if it is."""
        phase = snapshot["phases"][-1]
        if self.is_so or phase["start_ns"] is None or (snapshot["now_ns"] - phase["start_ns"]) / 1e9 < self._first_s:
            return
        latencies = [operation["response_ns"] for operation in phase["operations"].values() if operation["response_ns"]]
        if latencies and min(latency[self._key] for latency in latencies) / 1e9 > self._limit_s:
            self.is_so = True
            run.stop()


MakeWork = Callable[[Path, int], Work]


@dataclass(frozen=True)
class Bench:
    """What is measured, whatever the configuration. `make_work` makes the work of a folder and a seed."""

    make_work: MakeWork
    load: Load
    goal: Goal


@dataclass(frozen=True)
class Order:
    """What is to be measured: a configuration, what the search chose of it, its part, and the seed."""

    role: Role
    configuration: Mapping[str, str]
    choices: Mapping[str, Choice]
    seed: int


def measure(bench: Bench, order: Order, folder: Path, best: float | None) -> Measurement:
    """Measures a configuration; `best` is the best figure so far, where pruner ones are to be given up. A server that
    does not start with it, or ends, is an outcome.

    Raises InterruptedRunError and DiskFullError.
    """
    start_s = time.monotonic()
    work = ConfiguredWork(bench.make_work(folder, order.seed), order.configuration)
    pruner = _pruner(bench.goal, best)
    plan = StressPlan(work, bench.load, bench.goal.steps, [pruner.on_snapshot] if pruner else [])

    def value_of_goal() -> float | None:
        with work.cleared():
            result = stress(plan, folder, ProgressReporter(quiet=True))
        summary = summarise_stress(result)
        write_typed_summary(folder, summary)
        return bench.goal.value(result, summary, work.loaded) if work.loaded else None

    value, reason = attempted(value_of_goal)
    if not value:
        reason = reason or "there is no such figure"
    is_stopped = value is not None and pruner is not None and pruner.is_so
    return Measurement(
        role=order.role,
        choices=dict(order.choices),
        configuration=dict(order.configuration),
        outcome="stopped" if is_stopped else "measured" if value else "failed",
        value=value,
        reason=f"more than {FAR_WORSE:g} times the best at its beginning" if is_stopped else reason,
        load_s=work.loaded.load_s if work.loaded else None,
        size_bytes=work.loaded.size_bytes if work.loaded else None,
        seed=order.seed,
        took_s=time.monotonic() - start_s,
    )


def _pruner(goal: Goal, best: float | None) -> Pruner | None:
    if best is None or not isinstance(goal, PercentileGoal):
        return None
    return Pruner(goal.percentile, best, goal.step.held_s)
