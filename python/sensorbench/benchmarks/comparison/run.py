"""Comparisons on the shared lifecycle: load each variant, check known answers, run the variants interleaved, validate the answers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import cast

import pyarrow as pa

from sensorbench.benchmarks.comparison.measure import claim_of, is_finished, load_one, run_one, writes_anything
from sensorbench.benchmarks.comparison.stall import measure_stall
from sensorbench.errors import CancelledError, EngineError, FailedError, UsageError, message_of
from sensorbench.lifecycle import Benchmark, Description, RunContext, check_folder
from sensorbench.paths import remove_if_empty
from sensorbench.progress import ProgressReporter
from sensorbench.results import ComparisonManifest, ComparisonWriter, RunResult, has_results, read_run
from sensorbench.results.described import ComparisonWorkload, DescribedDataset, Environment
from sensorbench.results.latencies import of_kind
from sensorbench.results.manifest import MEASURE
from sensorbench.results.ownership import Intent, Owner
from sensorbench.results.planned import OperationManifest, PlannedComparison
from sensorbench.results.summary.comparison import Failure
from sensorbench.runner import (
    DATA_FOLDER,
    Comparison,
    ConnectedComparison,
    PreparedTable,
    Servers,
    ValidatedComparison,
    Variant,
    Workload,
    build_plan,
    check_namespace,
    connect,
    driver_ceiling,
    is_of_registers,
    planned_operations,
    prepare_tables,
    running_servers,
    server_ceiling,
    validated,
)
from sensorbench.schemas import Operation
from sensorbench.verification import (
    REFERENCE_SAMPLE,
    KnownAnswer,
    applicable_known_answers,
    check_contents,
    check_dataset,
    check_target,
    reference_table,
    written_rows,
)


@dataclass(frozen=True)
class ComparisonPlan:
    """A comparison that was found to be sound, and how it treats what is there: `replace` loads again what lies at targets, `drop_after` removes
    what was created at users' targets when it is complete.
    """

    validated: ValidatedComparison
    folder: Path
    resume: bool = False
    replace: bool = False
    drop_after: bool = False
    prepared: "_Prepared" = field(default_factory=lambda: _Prepared())

    @property
    def comparison(self) -> Comparison:
        """What is compared."""
        return self.validated.comparison

    @property
    def intent(self) -> Intent:
        """What is wanted of the targets' namespaces."""
        return "replace" if self.replace else "resume" if self.resume else "create"


@dataclass
class _Prepared:
    """What the load queries gave, by variant (those that have nothing left to be done have none), and the comparison once its servers are up."""

    tables: dict[str, list[PreparedTable]] = field(default_factory=dict)
    connections: list[ConnectedComparison] = field(default_factory=list)

    @property
    def connected(self) -> ConnectedComparison:
        """The comparison with its servers up."""
        return self.connections[-1]


def plan_comparison(
    comparison: Comparison, folder: Path, *, resume: bool = False, replace: bool = False, drop_after: bool = False
) -> ComparisonPlan:
    """The plan of a comparison into a folder. Raises UsageError; writes nothing."""
    check_folder(folder, resume=resume)
    return ComparisonPlan(validated(comparison), folder, resume, replace, drop_after)


# What must be the same in results that are gone on with.
_SAME = ("name", "part", "dataset", "operations", "workload", "resources")


class ComparisonBenchmark(Benchmark[ComparisonPlan, ComparisonManifest, ComparisonWriter]):
    """Variants that are compared under one workload."""

    manifest = ComparisonManifest
    writer = ComparisonWriter
    can_resume = True

    @contextmanager
    def servers(self, plan: ComparisonPlan, progress: ProgressReporter) -> Iterator[Servers]:
        """The servers of all variants that have something left to be done, once the load queries have run."""
        comparison, validated = plan.comparison, plan.validated
        unfinished = _unfinished(plan, progress)
        with validated.workbench:
            for variant in unfinished:
                columns = validated.columns[variant.id]
                plan.prepared.tables[variant.id] = prepare_tables(
                    comparison.dataset, variant.schema, columns, validated.workbench, progress
                )
            with running_servers(unfinished, progress, pin=comparison.workload.pin, resources=comparison.resources) as started:
                plan.prepared.connections.append(connect(validated, started))
                yield started

    def check(self, plan: ComparisonPlan, servers: Servers, owner: Owner) -> None:
        """Raises UsageError where the namespace of a variant that is not finished is refused, and EngineError where nobody answers."""
        del servers
        connected = plan.prepared.connected
        for variant in connected.comparison.variants:
            if variant.id in plan.prepared.tables:
                check_namespace(connected.targets[variant.id], claim_of(variant, owner, plan.intent))

    def describe(self, plan: ComparisonPlan, servers: Servers) -> Description[PlannedComparison]:
        """The variants, the operations and the workload."""
        validated = plan.prepared.connected
        comparison = validated.comparison
        return Description(
            title=comparison.title,
            plan=PlannedComparison(
                source=comparison.kind,
                name=comparison.name,
                part=comparison.part,
                dataset=_described_dataset(comparison),
                operations={name: _described(comparison.operations.operation[name]) for name in validated.names},
                workload=cast("ComparisonWorkload", comparison.workload.model_dump(mode="json", by_alias=True)),
                metric=comparison.metric,
                include_outdated=comparison.include_outdated,
                resources=comparison.resources,
                refused=comparison.refused,
                budget=comparison.budget,
            ),
            variants=[
                variant.manifest(
                    {name: variant.schema.described_statements(name) for name in validated.names if variant.answers(name)}
                )
                for variant in comparison.variants
            ],
            environment={
                "driver_ceilings_per_s": {
                    variant.target.database.name: driver_ceiling(
                        variant.target.database, concurrency=_ceiling_concurrency(comparison.workload)
                    )
                    for variant in _one_a_database(comparison.variants)
                    if variant.target.database.embedded
                },
                "servers": servers.described(),
            },
        )

    def check_same(self, before: ComparisonManifest, after: ComparisonManifest, folder: Path) -> ComparisonManifest:
        """The manifest, with the environment of both. Raises UsageError unless it is of the same comparison."""
        parts = ((key, getattr(before.plan, key), getattr(after.plan, key)) for key in _SAME)
        for key, of_before, of_after in (*parts, ("variants", before.variants, after.variants)):
            if of_before != of_after:
                raise UsageError(
                    f"--resume: {folder} was begun with another {key}; give the same arguments, or another folder with --out"
                )
        return after.model_copy(update={"environment": _joined(before.environment, after.environment)})

    def execute(self, plan: ComparisonPlan, context: RunContext[ComparisonWriter]) -> None:
        """Loads and measures the variants, and validates their answers."""
        _run_variants(plan.prepared.connected, plan.prepared.tables, context.writer, context.progress, intent=plan.intent)

    def clean_up(self, plan: ComparisonPlan, context: RunContext[ComparisonWriter]) -> None:
        """Removes what was loaded below the results. Data at a target that the user named stays, unless `drop_after`."""
        connected = plan.prepared.connected
        for variant in connected.comparison.variants:
            is_below = variant.temporary is not None and variant.temporary.exists()
            if is_below or (plan.drop_after and variant.target.is_url):
                connected.targets[variant.id].remove(owner=context.owner.to_json())
        remove_if_empty(context.folder / DATA_FOLDER)


def _unfinished(plan: ComparisonPlan, progress: ProgressReporter) -> list[Variant]:
    """The variants that have something left to be done; runs that wrote are read back at the target, so that it is needed."""
    comparison = plan.comparison
    if not plan.resume or writes_anything(comparison.operations, plan.validated.names):
        return comparison.variants
    finished = [variant for variant in comparison.variants if is_finished(variant, plan.folder, comparison.workload.repetitions)]
    for variant in finished:
        progress.say(f"  {variant.id}: finished before, not repeated")
    return [variant for variant in comparison.variants if variant not in finished]


def _described_dataset(comparison: Comparison) -> DescribedDataset:
    described = {**comparison.dataset.describe().model_dump(mode="json"), "operations": comparison.operations_name}
    return cast("DescribedDataset", described)


def _described(operation: Operation) -> OperationManifest:
    instance = operation.instance
    return OperationManifest(
        title=operation.title,
        question=operation.question,
        writes=operation.writes is not None,
        instance_of=instance.of if instance else None,
        instance=instance.name if instance else None,
        share=instance.share if instance else None,
    )


def _joined(before: Environment, after: Environment) -> Environment:
    """The environment of work that goes on: with the servers that were not started again, and what was known of them."""
    return {
        **after,
        "servers": {**before.get("servers", {}), **after["servers"]},
        "driver_ceilings_per_s": {**before.get("driver_ceilings_per_s", {}), **after["driver_ceilings_per_s"]},
    }


def _ceiling_concurrency(workload: Workload) -> int:
    return 1 if workload.schedule.is_open_loop else workload.schedule.max_concurrency


def _write_server_ceilings(validated: ConnectedComparison, loaded: list[Variant], writer: ComparisonWriter) -> None:
    """Measures what the driver of each server reaches, now that there is something at the server to connect to."""
    concurrency = _ceiling_concurrency(validated.comparison.workload)
    ceilings = {
        variant.target.database.name: server_ceiling(variant, concurrency=concurrency)
        for variant in _one_a_database(loaded)
        if not variant.target.database.embedded
    }
    if ceilings:
        known = writer.manifest.environment["driver_ceilings_per_s"]
        writer.update(environment={**writer.manifest.environment, "driver_ceilings_per_s": {**known, **ceilings}})


def _one_a_database(variants: list[Variant]) -> list[Variant]:
    return list({variant.target.database.name: variant for variant in variants}.values())


def _run_variants(
    connected: ConnectedComparison,
    tables: dict[str, list[PreparedTable]],
    writer: ComparisonWriter,
    reporter: ProgressReporter,
    *,
    intent: Intent,
) -> None:
    comparison = connected.comparison
    known = applicable_known_answers(comparison.dataset, comparison.operations_name, comparison.operations)
    check_dataset(connected.workbench, comparison.operations, known)
    unfinished = [variant for variant in comparison.variants if variant.id in tables]
    load = partial(_load, connected, tables=tables, known=known, writer=writer, reporter=reporter, intent=intent)
    standing = [variant for variant in unfinished if _succeeds(connected, variant, "loading", writer, reporter, load)]
    _write_server_ceilings(connected, standing, writer)
    order = []
    for repeat in range(1, comparison.workload.repetitions + 1):
        # A B B A: what changes with time hits all variants alike.
        variants = [variant for variant in standing if not variant.only_loads][:: 1 if repeat % 2 == 1 else -1]
        order.append([variant.id for variant in variants])
        writer.update_plan(order=order)
        for variant in variants:
            if not _succeeds(
                connected,
                variant,
                "running",
                writer,
                reporter,
                partial(run_one, connected, repeat=repeat, writer=writer, reporter=reporter),
            ):
                standing.remove(variant)
    if unfinished and not standing:
        raise FailedError("every variant failed; what each failed of is said above, and in its failure.json")
    if writes_anything(comparison.operations, connected.names):
        _check_contents(connected, standing, writer, reporter)
    elif comparison.workload.answers == "all":
        _write_reference(connected, writer, reporter)
    if comparison.stall is not None and comparison.stall.variant in [variant.id for variant in standing]:
        try:
            measure_stall(connected, comparison.stall, writer, reporter)
        except FailedError as error:
            # It shows how to measure, and is no part of the comparison, which is complete.
            reporter.warn(f"coordinated omission could not be shown: {error}")


def _load(
    connected: ConnectedComparison,
    variant: Variant,
    tables: dict[str, list[PreparedTable]],
    known: list[KnownAnswer],
    writer: ComparisonWriter,
    reporter: ProgressReporter,
    intent: Intent,
) -> None:
    load_one(connected, variant, tables[variant.id], writer, reporter, intent=intent)
    queried = [name for name in connected.names if variant.answers(name)]
    checks = check_target(connected.targets[variant.id], connected.comparison.operations, variant.schema, known, queried)
    writer.write_checks(variant.id, checks)


def _succeeds(
    connected: ConnectedComparison,
    variant: Variant,
    step: str,
    writer: ComparisonWriter,
    reporter: ProgressReporter,
    what: Callable[[Variant], None],
) -> bool:
    """Does a step of a variant. Where the work goes on without those that fail, says of one why it failed."""
    try:
        what(variant)
    except (EngineError, FailedError) as error:
        if isinstance(error, CancelledError) or not connected.comparison.continue_on_error:
            raise
        reporter.warn(f"{variant.id} failed at {step} and is left out: {message_of(error)}")
        writer.write_failure(variant.id, Failure(step=step, cause=message_of(error)))
        _clear(connected, variant, writer, reporter)
        return False
    writer.forget_failure(variant.id)
    return True


def _clear(connected: ConnectedComparison, variant: Variant, writer: ComparisonWriter, reporter: ProgressReporter) -> None:
    """Removes what a failed variant has loaded, because the others need the room."""
    if variant.target.is_url:
        return
    try:
        connected.targets[variant.id].remove(owner=writer.owner.to_json())
    except EngineError as error:
        reporter.warn(f"{variant.id}: what was loaded cannot be removed: {error}")


def _check_contents(
    validated: ConnectedComparison, standing: list[Variant], writer: ComparisonWriter, reporter: ProgressReporter
) -> None:
    """Reads again what runs that wrote left behind."""
    comparison = validated.comparison
    with reporter.task("reading back what was written") as task:
        checked = wrong = 0
        for variant in standing:
            runs = [read_run(writer.run_folder(variant.id, repeat)) for repeat in range(1, comparison.workload.repetitions + 1)]
            plans = [
                build_plan(
                    comparison.operations, variant.schema, validated.parameters, variant.workload(comparison.workload), run
                )
                for run in range(len(runs))
            ]
            written = written_rows(comparison.operations, validated.names, runs, plans, validated.parameters)
            checks = check_contents(
                validated.targets[variant.id],
                comparison.dataset,
                comparison.operations,
                variant.schema,
                written,
                comparison.workload.seed,
            )
            writer.write_contents(variant.id, checks)
            checked, wrong = checked + checks.queried, wrong + checks.wrong
        task.end(f"{checked} answers, {wrong} wrong")


def _write_reference(validated: ValidatedComparison, writer: ComparisonWriter, reporter: ProgressReporter) -> None:
    """Computes the reference answers to a sample of what was asked and answered by at least one variant."""
    comparison = validated.comparison
    requested: dict[str, set[int]] = {}
    for variant in comparison.variants:
        folder = writer.run_folder(variant.id, 1)
        if variant.only_loads or not has_results(folder) or (run := read_run(folder)).state != "complete":
            continue
        for name in run.manifest.operations:
            requested.setdefault(name, set()).update(_answered(run, name))
    reads = [
        name
        for name in validated.names
        if requested.get(name) and comparison.operations.operation[name].writes is None and not is_of_registers(name)
    ]
    if not reads:
        return
    with reporter.task("reference answers") as task:
        tables = []
        for variant in comparison.variants:
            # One that is asked everything has all of them; else they are put together.
            own = [name for name in reads if variant.answers(name)]
            reads = [name for name in reads if name not in own]
            if own:
                requests = {name: sorted(requested[name])[:REFERENCE_SAMPLE] for name in own}
                tables.append(_reference_of(validated, variant, requests))
        writer.write_reference(reference := pa.concat_tables(tables))
        task.end(f"{reference.num_rows} computed from the dataset itself")


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
