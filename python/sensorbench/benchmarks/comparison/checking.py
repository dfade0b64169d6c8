"""What is checked of runs that were measured: contents after writes, and answers by the dataset itself."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice

import pyarrow as pa

from sensorbench.benchmarks.comparison.summary import ordinal
from sensorbench.progress import ProgressReporter, Task
from sensorbench.results import ComparisonManifest, ComparisonWriter, RunResult, has_results, read_run
from sensorbench.results.latencies import of_kind
from sensorbench.results.manifest import MEASURE
from sensorbench.results.retention import read_retention
from sensorbench.results.summary.comparison import AnswerChecks
from sensorbench.runner import (
    ConnectedComparison,
    ValidatedComparison,
    Variant,
    Workload,
    build_plan,
    execute_retention,
    is_of_registers,
    marker_write,
    planned_operations,
    retained_stream,
    retained_write,
    seconds,
    streamed_writes,
)
from sensorbench.schemas.retention import rollup_table
from sensorbench.verification import (
    REFERENCE_SAMPLE,
    Retained,
    Writes,
    account,
    check_contents,
    expired_before,
    reference_table,
    time_to_live,
    written_rows,
)


def contents_of(
    connected: ConnectedComparison, repeats: Mapping[str, Sequence[int]], writer: ComparisonWriter, reporter: ProgressReporter
) -> dict[str, AnswerChecks]:
    """Reads again what runs that wrote left behind.

    Args:
        connected: the comparison, with the servers of these variants up.
        repeats: the numbers of the runs that have written to the data which lie there, by variant.
        writer: has the runs.
        reporter: reports progress.

    """
    comparison = connected.comparison
    found: dict[str, AnswerChecks] = {}
    variants = [variant for variant in comparison.variants if variant.id in repeats]
    with reporter.task("reading back what was written", total=len(variants)) as task:
        for number, variant in enumerate(variants):
            task.advance_to(number, variant.id)
            own = variant.workload(comparison.workload)
            runs = [read_run(writer.run_folder(variant.id, repeat)) for repeat in repeats[variant.id]]
            plans = [
                build_plan(comparison.operations, variant.schema, connected.parameters, own, repeat - 1)
                for repeat in repeats[variant.id]
            ]
            writes = Writes(planned_operations(comparison.operations, own), runs, plans, connected.parameters)
            report = partial(_report, task, number, variant.id)
            checks = _NOT_QUERIED if _differ_by_rule(own) else _queried(connected, variant, writes, report)
            found[variant.id] = _with_accounts(checks, connected, variant, writes, writer)
        accounts = [of_write for check in found.values() for of_write in check.accounting]
        queried, wrong = (sum(getattr(check, name) for check in found.values()) for name in ("queried", "wrong"))
        said = [f"{queried} answers, {wrong} wrong"] if queried or not accounts else []
        if accounts:
            readings, differ = (sum(getattr(of_write, name) for of_write in accounts) for name in ("readings", "wrong"))
            said.append(f"{readings:,} readings accounted for, {differ:,} not as they should be")
        task.end("; ".join(said))
    return found


# Where readings are sent again or expire, or series come and go, what questions answer depends on the schema's rule and on what else it has of each series:
# such contents are accounted for reading by reading instead.
_NOT_QUERIED = AnswerChecks(queried=0, wrong=0, problems=[])


def _differ_by_rule(workload: Workload) -> bool:
    delivery = workload.delivery
    differs = delivery is not None and (delivery.sends_again or delivery.churn is not None)
    return differs or workload.retention is not None


def _report(task: Task, number: int, variant: str, answers: int) -> None:
    """Says how many answers of a variant, every n-th, are compared."""
    task.advance_to(number, f"{variant}, answers compared: {answers:,}")


def _queried(connected: ConnectedComparison, variant: Variant, writes: Writes, report: Callable[[int], None]) -> AnswerChecks:
    """Asks questions about old and new rows."""
    comparison = connected.comparison
    rows = written_rows(
        comparison.operations, connected.names, writes.runs, writes.plans, connected.parameters, marker_write(comparison)
    )
    return check_contents(
        connected.targets[variant.id],
        comparison.dataset,
        comparison.operations,
        variant.schema,
        rows,
        comparison.workload.seed,
        report,
    )


def _with_accounts(
    checks: AnswerChecks, connected: ConnectedComparison, variant: Variant, writes: Writes, writer: ComparisonWriter
) -> AnswerChecks:
    """The checks, with what became of every reading where the workload has a delivery or retention."""
    comparison, delivery = connected.comparison, connected.comparison.workload.delivery
    if delivery is None and comparison.workload.retention is None:
        return checks
    target = connected.targets[variant.id]
    target.show()
    marked_by = marker_write(comparison) if comparison.workload.freshness else None
    accounted = [
        account(
            target,
            comparison.dataset,
            comparison.operations,
            variant.schema,
            write,
            writes,
            writer.folder,
            has_markers=write == marked_by,
            late_after_s=seconds(delivery.late_after) if delivery and delivery.late_after else None,
            retained=_retained(connected, variant, writes),
        )
        for write in streamed_writes(comparison.operations, writes.names)
    ]
    return checks.model_copy(
        update={
            "problems": [*checks.problems, *(problem for of_write in accounted for problem in of_write.problems)],
            "accounting": [of_write.accounting for of_write in accounted],
        }
    )


def _retained(connected: ConnectedComparison, variant: Variant, writes: Writes) -> Retained | None:
    """What was done with the readings of the only run, and the rollup that is there; None if no reading expires."""
    comparison, wanted = connected.comparison, connected.comparison.workload.retention
    if wanted is None:
        return None
    stream = retained_stream(connected.targets[variant.id], comparison, variant, connected.parameters, wanted)
    actions = read_retention(writes.runs[0].folder) or []
    rollup = None
    if wanted.rollup is not None and stream.statements.rollup_rows is not None:
        rows = execute_retention(stream, stream.statements.rollup_rows, stream.time.whole())
        rollup = rollup_table(rows, comparison.operations.operation[retained_write(comparison)])
    return Retained(
        expired_before(actions),
        actions,
        rollup,
        stream.time.origin_us,
        stream.time.width_us,
        stream.statements.grace_us,
        time_to_live(actions, stream.ttl_s),
    )


def joined_contents(checks: Sequence[AnswerChecks]) -> AnswerChecks:
    """What was read back of data that were loaded several times, as one."""
    first, *others = checks
    if not others:
        return first
    acknowledged = [check.acknowledged_writes for check in checks if check.acknowledged_writes is not None]
    return AnswerChecks(
        queried=sum(check.queried for check in checks),
        wrong=sum(check.wrong for check in checks),
        problems=[problem for check in checks for problem in check.problems],
        unanswered=sum(check.unanswered for check in checks),
        not_reached=sum(check.not_reached for check in checks),
        not_checked=next((check.not_checked for check in checks if check.not_checked), None),
        acknowledged_writes=sum(acknowledged) if acknowledged else None,
        one_write_in=max(check.one_write_in for check in checks),
        read_back=sum(check.read_back for check in checks),
        lost_writes=sum(check.lost_writes for check in checks),
        unknown_writes=sum(check.unknown_writes for check in checks),
        unknown_writes_found=sum(check.unknown_writes_found for check in checks),
        accounting=[of_write for check in checks for of_write in check.accounting],
    )


def write_reference(validated: ValidatedComparison, writer: ComparisonWriter, reporter: ProgressReporter) -> None:
    """Computes the reference answers to a sample of what was asked and answered by at least one variant."""
    comparison, manifest = validated.comparison, writer.manifest
    # Which operation is the k-th depends on the mix, and a variant that cannot answer all operations has a mix of its own.
    by_mix: dict[tuple[str, ...], tuple[Variant, dict[str, set[int]]]] = {}
    for variant in comparison.variants:
        folder = writer.run_folder(variant.id, 1)
        if variant.only_loads or not has_results(folder) or (run := read_run(folder)).state != "complete":
            continue
        _, requested = by_mix.setdefault(tuple(run.manifest.operations), (variant, {}))
        for name in run.manifest.operations:
            if comparison.operations.operation[name].writes is None and not is_of_registers(name):
                requested.setdefault(name, set()).update(_answered(run, name))
    if not any(numbers for _, requested in by_mix.values() for numbers in requested.values()):
        return
    with reporter.task("reference answers") as task:
        tables = []
        known: set[tuple[str, int]] = set()
        for mix, (variant, requested) in by_mix.items():
            others = [other for other in by_mix if other != mix]
            sampled = {
                name: list(
                    islice((k for k in sorted(numbers) if _is_one_question(manifest, mix, others, name, k)), REFERENCE_SAMPLE)
                )
                for name, numbers in requested.items()
            }
            requests = {name: [k for k in numbers if (name, k) not in known] for name, numbers in sampled.items()}
            known.update((name, k) for name, numbers in requests.items() for k in numbers)
            if any(requests.values()):
                tables.append(_reference_of(validated, variant, requests))
        writer.write_reference(reference := pa.concat_tables(tables))
        task.end(f"{reference.num_rows} computed from the dataset itself")


def _is_one_question(
    manifest: ComparisonManifest, mix: tuple[str, ...], others: Sequence[tuple[str, ...]], name: str, k: int
) -> bool:
    """Whether the k-th operation is the same question in all mixes in which it is of this kind: its reference counts for all of them, in whichever run
    they come to it.
    """
    question = ordinal(manifest, mix, name, k)
    return all(ordinal(manifest, other, name, k) in {question, None} for other in others)


def _reference_of(validated: ValidatedComparison, variant: Variant, requests: dict[str, list[int]]) -> pa.Table:
    """Reference answers to requests by the name of their operation, as a variant is asked them; by the comparison's numbers of operations."""
    operations, workload = validated.comparison.operations, variant.workload(validated.comparison.workload)
    plan = build_plan(operations, variant.schema, validated.parameters, workload, 0)
    names = planned_operations(operations, workload)
    phase = next(number for number, planned in enumerate(plan["phases"]) if planned["name"] == MEASURE)
    numbered = {names.index(name): numbers for name, numbers in requests.items()}
    table = reference_table(validated.workbench, operations, names, plan, validated.parameters, phase, numbered)
    of_comparison = [validated.names.index(names[number]) for number in table["operation"].to_pylist()]
    place = table.column_names.index("operation")
    return table.set_column(place, table.schema.field(place), pa.array(of_comparison, table.schema.field(place).type))


def _answered(run: RunResult, operation: str) -> list[int]:
    """The numbers of an operation that a run has an answer to."""
    answers, phases = run.table("answers"), run.manifest.phases
    if answers is None or MEASURE not in phases:
        return []
    found: list[int] = of_kind(answers, phases.index(MEASURE), run.manifest.operations.index(operation))["k"].to_pylist()
    return found
