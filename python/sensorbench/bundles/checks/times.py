"""Whether times are in order: of each operation, of the schedule, of runs among one another."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sensorbench.bundles.checks.generator import arrivals
from sensorbench.bundles.checks.problem import Problem, run_name
from sensorbench.results import ComparisonResult, RunResult
from sensorbench.results.engine_plan import PlannedPhase

TIMES, SCHEDULE = "order of times", "schedule"
# Clocks of a timer and of a phase are rounded apart.
_OFF_NS = 20_000
# This many intended starts may lie elsewhere: what started before its time has that as its intended start.
_ODD_SHARE = 0.02


def check_times(result: ComparisonResult) -> Iterator[Problem]:
    """Operations start when they were due or later and end afterwards, inside of their phase; runs come in the order of the plan."""
    for runs in result.runs.values():
        for run in runs:
            table = run.sampled_operations()
            if table is not None:
                yield from _operations(run, table)
    yield from _order_of_runs(result)


def check_schedule(result: ComparisonResult) -> Iterator[Problem]:
    """Arrivals of an open loop follow its schedule, and the plans of runs are those of the workload."""
    schedule = result.manifest.plan.workload["schedule"]
    is_open = schedule.get("rate") is not None or bool(schedule.get("segments"))
    for runs in result.runs.values():
        for run in runs:
            for number, planned in enumerate(run.manifest.plan["phases"]):
                if (planned.get("pace") is not None) != is_open:
                    said, was = ("open", "closed") if is_open else ("closed", "open")
                    text = f"the workload says {said} loop, but the run was planned as a {was} loop"
                    yield Problem(SCHEDULE, f"{run_name(run)}, {planned['name']}", text)
                else:
                    yield from _arrivals(run, number, planned)


def _operations(run: RunResult, table: pa.Table) -> Iterator[Problem]:
    intended, start, end = (table[name].cast(pa.int64()) for name in ("intended_start_ns", "start_ns", "end_ns"))
    for text, found in (
        ("started before their intended start", pc.less(start, intended)),
        ("ended before their start", pc.less(end, start)),
    ):
        if count := pc.sum(found).as_py():
            yield Problem(TIMES, run_name(run), f"{count:,} operations {text}")
    for number, phase in enumerate(run.manifest.phase_figures):
        is_of_phase = pc.equal(table["phase"], pa.scalar(number, table["phase"].type))
        if phase.start_ns is None or not pc.any(is_of_phase).as_py():
            continue
        own = table.filter(is_of_phase).sort_by("k")
        intended_ns = own["intended_start_ns"].cast(pa.int64()).to_numpy()
        if (intended_ns < phase.start_ns).any():
            yield Problem(TIMES, f"{run_name(run)}, {phase.name}", "operations started before their phase")
        if not run.manifest.plan["phases"][number].get("pace"):
            continue
        if phase.end_ns is not None and (intended_ns > phase.end_ns).any():
            yield Problem(TIMES, f"{run_name(run)}, {phase.name}", "operations were to start after the end of their phase")
        if (np.diff(intended_ns) < 0).any():
            yield Problem(TIMES, f"{run_name(run)}, {phase.name}", "later operations were to start before earlier ones")


def _order_of_runs(result: ComparisonResult) -> Iterator[Problem]:
    """Runs began in the order that the plan noted; a run that was measured again later may stand out, but not most of them."""
    created = {
        (run.manifest.variant.id, run.manifest.repetition): run.manifest.created for runs in result.runs.values() for run in runs
    }
    if result.manifest.finished is not None:
        for (variant, number), began in created.items():
            if began > result.manifest.finished:
                yield Problem(TIMES, f"{variant}, run {number}", "it began after the benchmark was finished")
    if result.manifest.plan.one_at_a_time is not None:
        return
    pairs = [
        (created[before, number], created[after, number])
        for number, order in enumerate(result.manifest.plan.order, start=1)
        for before, after in pairwise(order)
        if (before, number) in created and (after, number) in created
    ]
    odd = sum(left > right for left, right in pairs)
    if odd > len(pairs) / 2:
        yield Problem(
            TIMES, "runs", f"{odd} of {len(pairs)} runs began before those that the plan has before them: variants may be swapped"
        )


def _arrivals(run: RunResult, number: int, planned: PlannedPhase) -> Iterator[Problem]:
    """Intended starts of sampled operations, against the schedule as the seed makes it."""
    table, pace = run.sampled_operations(), planned.get("pace")
    figures = run.manifest.phase_figures
    if pace is None or table is None or number >= len(figures) or figures[number].start_ns is None or len(pace["segments"]) != 1:
        return
    own = table.filter(pc.equal(table["phase"], pa.scalar(number, table["phase"].type))).sort_by("k")
    if not own.num_rows:
        return
    numbers = own["k"].to_numpy().astype(np.uint64)
    start_ns = figures[number].start_ns or 0
    expected = start_ns + arrivals(pace, run.manifest.seed, number, numbers)
    recorded = own["intended_start_ns"].to_numpy().astype(np.float64)
    odd = float(np.mean(np.abs(recorded - expected) > _OFF_NS))
    if odd > _ODD_SHARE:
        text = f"{odd:.0%} of its intended starts are not those of the schedule with seed {run.manifest.seed}: a closed loop, or another seed"
        yield Problem(SCHEDULE, f"{run_name(run)}, {planned['name']}", text)
