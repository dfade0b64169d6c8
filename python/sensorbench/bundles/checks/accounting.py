"""Whether nothing is missing: runs, arrivals, operations by outcome, answers, rows."""

from collections.abc import Iterator

import pyarrow.compute as pc

from sensorbench.bundles.checks.problem import Problem, run_name
from sensorbench.results import ComparisonResult, RunResult
from sensorbench.results.latencies import of_kind
from sensorbench.results.manifest import MEASURE, OUTCOMES, PhaseFigures

RUNS, ACCOUNTING, ANSWERS, ROWS = "runs", "accounting", "answers", "rows"
# A loop that ends by time may have begun an arrival more or less.
_ARRIVALS_OFF = 2


def check_runs(result: ComparisonResult) -> Iterator[Problem]:
    """Every repetition of every variant is there and complete, where the work says that it is complete."""
    if result.state != "complete":
        return
    wanted = set(range(1, result.manifest.plan.workload["repetitions"] + 1))
    order = result.manifest.plan.order
    for variant in result.manifest.variants:
        if variant.only_loads or variant.id in result.failures:
            continue
        found = {run.manifest.repetition: run for run in result.runs[variant.id]}
        for number in sorted(wanted - found.keys()):
            yield Problem(
                RUNS, variant.id, f"run {number} of {len(wanted)} is missing, though the benchmark says that it is complete"
            )
        for number in sorted(found.keys() - wanted):
            yield Problem(RUNS, variant.id, f"there is a run {number}, but the plan has {len(wanted)}")
        for run in result.runs[variant.id]:
            if run.manifest.status != "complete":
                yield Problem(RUNS, run_name(run), f"it is {run.manifest.status}, though the benchmark says that it is complete")
    if result.manifest.plan.one_at_a_time is None and len(order) > len(wanted):
        yield Problem(RUNS, "plan", f"{len(order)} repetitions were run, but the plan says {len(wanted)}")


def check_accounting(result: ComparisonResult) -> Iterator[Problem]:
    """Arrivals add up: offered = started + dropped, started = ok + error + timeout + cancelled, with the same counts everywhere."""
    for runs in result.runs.values():
        for run in runs:
            yield from check_counts(run)
            for number, phase in enumerate(run.manifest.phase_figures):
                yield from _offered(run, number, phase)


def check_counts(run: RunResult) -> Iterator[Problem]:
    """Of a run of any kind: started = ok + error + timeout + cancelled, with the same counts in the series per second."""
    for number, phase in enumerate(run.manifest.phase_figures):
        ended = sum(sum(operation["counts"][outcome] for outcome in OUTCOMES) for operation in phase.operations.values())
        if ended != phase.started:
            text = f"{phase.started:,} operations started, but {ended:,} ended (ok, error, timeout, cancelled)"
            yield Problem(ACCOUNTING, f"{run_name(run)}, {phase.name}", text)
        yield from _intervals(run, number, phase)


def check_answers(result: ComparisonResult) -> Iterator[Problem]:
    """There is an answer to each operation that ended well, as far as answers were kept."""
    for runs in result.runs.values():
        for run in runs:
            answers, plan = run.table("answers"), run.manifest.plan
            if plan.get("answers_every") is None or MEASURE not in run.manifest.phases:
                continue
            for phase in run.manifest.measured:
                if _last_number(run, phase) > plan.get("answers_whole", 0):
                    continue
                for kind, name in enumerate(run.manifest.operations):
                    ok = phase.operations[name]["counts"]["ok"]
                    place = run.manifest.phases.index(MEASURE)
                    found = 0 if answers is None else of_kind(answers, place, kind).num_rows
                    if found != ok:
                        yield Problem(
                            ANSWERS, f"{run_name(run)}, {name}", f"{ok:,} operations ended well, but {found:,} answers are there"
                        )


def _last_number(run: RunResult, phase: PhaseFigures) -> int:
    """A number that no operation of a phase is beyond: of load generators that share a run, one may be ahead of the others."""
    generators = run.manifest.totals.generators if run.manifest.totals else []
    return max([phase.started, *(generator.started * len(generators) for generator in generators)])


def check_rows(result: ComparisonResult) -> Iterator[Problem]:
    """Each variant has all rows that went in, and as many readings as the others."""
    for variant, load in result.loads.items():
        of_tables = sum(table["rows"] for table in load.tables)
        sent = load.rows if load.rows_sent is None else load.rows_sent
        if load.tables and of_tables != sent:
            yield Problem(ROWS, variant, f"{of_tables:,} rows went into its tables, but {sent:,} are said to be there")
        if load.rows_sent is not None and load.rows > load.rows_sent:
            yield Problem(ROWS, variant, f"{load.rows:,} rows are there of {load.rows_sent:,} that went in")
    whole = {variant: load.readings for variant, load in result.loads.items() if load.rows_sent is None}
    if whole and min(whole.values()) != max(whole.values()):
        lowest, highest = min(whole, key=whole.__getitem__), max(whole, key=whole.__getitem__)
        yield Problem(ROWS, lowest, f"it has {whole[lowest]:,} readings, but {highest} has {whole[highest]:,}")


def _offered(run: RunResult, number: int, phase: PhaseFigures) -> Iterator[Problem]:
    """Offered = started + dropped is what the plan has."""
    where = f"{run_name(run)}, {phase.name}"
    planned = run.manifest.plan["phases"][number]
    operations, pace = planned.get("operations"), planned.get("pace")
    if operations is not None and phase.started + phase.dropped > operations:
        yield Problem(
            ACCOUNTING, where, f"{phase.started + phase.dropped:,} operations were offered, but the plan has {operations:,}"
        )
    is_by_count = operations is not None and planned.get("duration_s") is None
    if is_by_count and run.manifest.status == "complete" and phase.started + phase.dropped != operations:
        yield Problem(ACCOUNTING, where, f"{phase.started + phase.dropped:,} of {operations:,} operations were offered")
    if pace is None and phase.dropped:
        yield Problem(ACCOUNTING, where, f"{phase.dropped:,} arrivals were dropped, but a closed loop drops none")
    duration_s = planned.get("duration_s")
    if pace is None or len(pace["segments"]) > 1 or pace.get("arrival", "constant") != "constant":
        return
    if duration_s is not None and operations is None and run.manifest.status == "complete":
        offered, expected = phase.started + phase.dropped, pace["segments"][0]["from_per_s"] * duration_s
        if abs(offered - expected) > _ARRIVALS_OFF:
            text = f"{offered:,} arrivals were offered (started and dropped), but the schedule has {expected:,.0f}"
            yield Problem(ACCOUNTING, where, text)


def _intervals(run: RunResult, number: int, phase: PhaseFigures) -> Iterator[Problem]:
    """The series per second has the same operations."""
    intervals = run.table("intervals")
    for kind, name in enumerate(run.manifest.operations):
        rows = None if intervals is None else of_kind(intervals, number, kind)
        for outcome in OUTCOMES:
            counted = phase.operations[name]["counts"][outcome]
            found = 0 if rows is None else pc.sum(rows[outcome]).as_py() or 0
            if found != counted:
                yield Problem(
                    ACCOUNTING,
                    f"{run_name(run)}, {phase.name}, {name}",
                    f"{counted:,} operations ended with {outcome}, but the series per second has {found:,}",
                )
