"""What is checked of runs that were measured: contents after writes, and answers by the dataset itself."""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from sensorbench.progress import ProgressReporter
from sensorbench.results import ComparisonWriter, has_results, read_run
from sensorbench.results.latencies import of_kind
from sensorbench.results.manifest import MEASURE
from sensorbench.results.summary.comparison import AnswerChecks
from sensorbench.runner import ConnectedComparison, ValidatedComparison, build_plan, is_of_registers
from sensorbench.verification import REFERENCE_SAMPLE, check_contents, reference_table, written_rows


def contents_of(
    connected: ConnectedComparison, repeats: Mapping[str, Sequence[int]], writer: ComparisonWriter, reporter: ProgressReporter
) -> dict[str, AnswerChecks]:
    """Reads again what runs that wrote left behind.

    Args:
        connected: the comparison, with the servers of these variants up.
        repeats: the numbers of the runs that have written to the data which lie there, by variant.
        writer: has the runs.
        reporter: told what is going on.

    """
    comparison = connected.comparison
    found: dict[str, AnswerChecks] = {}
    with reporter.task("reading back what was written") as task:
        for variant in (variant for variant in comparison.variants if variant.id in repeats):
            own = variant.workload(comparison.workload)
            runs = [read_run(writer.run_folder(variant.id, repeat)) for repeat in repeats[variant.id]]
            plans = [
                build_plan(comparison.operations, variant.schema, connected.parameters, own, repeat - 1)
                for repeat in repeats[variant.id]
            ]
            found[variant.id] = check_contents(
                connected.targets[variant.id],
                comparison.dataset,
                comparison.operations,
                variant.schema,
                written_rows(comparison.operations, connected.names, runs, plans, connected.parameters),
                comparison.workload.seed,
            )
        checks = found.values()
        task.end(f"{sum(check.queried for check in checks)} answers, {sum(check.wrong for check in checks)} wrong")
    return found


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
        not_checked=next((check.not_checked for check in checks if check.not_checked), None),
        acknowledged_writes=sum(acknowledged) if acknowledged else None,
        one_write_in=max(check.one_write_in for check in checks),
        read_back=sum(check.read_back for check in checks),
        lost_writes=sum(check.lost_writes for check in checks),
        unknown_writes=sum(check.unknown_writes for check in checks),
        unknown_writes_found=sum(check.unknown_writes_found for check in checks),
    )


def write_reference(validated: ValidatedComparison, writer: ComparisonWriter, reporter: ProgressReporter) -> None:
    """Computes the reference answers to a sample of what was asked and answered by at least one variant."""
    comparison = validated.comparison
    measured_variants = [variant for variant in comparison.variants if not variant.only_loads]
    folders = [folder for variant in measured_variants if has_results(folder := writer.run_folder(variant.id, 1))]
    runs = [run for run in map(read_run, folders) if run.state == "complete"]
    answers = [table for run in runs if (table := run.table("answers")) is not None]
    if not answers:
        return
    phase = runs[0].manifest.phases.index(MEASURE)
    reads = [
        number
        for number, name in enumerate(validated.names)
        if comparison.operations.operation[name].writes is None and not is_of_registers(name)
    ]
    requests = {number: _answered(answers, phase, number)[:REFERENCE_SAMPLE] for number in reads}
    total = sum(len(numbers) for numbers in requests.values())
    if not total:
        return
    with reporter.task("reference answers") as task:
        plan = build_plan(comparison.operations, measured_variants[0].schema, validated.parameters, comparison.workload, 0)
        writer.write_reference(
            reference_table(
                validated.workbench, comparison.operations, validated.names, plan, validated.parameters, phase, requests
            )
        )
        task.end(f"{total} computed from the dataset itself")


def _answered(answers: list[pa.Table], phase: int, operation: int) -> list[int]:
    """The numbers of an operation that some run has an answer to, in order."""
    return sorted({k for table in answers for k in of_kind(table, phase, operation)["k"].to_pylist()})
