"""Comparisons on the shared lifecycle: load each variant, check known answers, run the variants interleaved, validate the answers."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from dataclasses import replace as replace_fields
from pathlib import Path
from typing import cast

from sensorbench.benchmarks.comparison.block_log import finished_blocks
from sensorbench.benchmarks.comparison.blocks import plan_blocks
from sensorbench.benchmarks.comparison.measure import claim_of, encoding_costs, is_finished, writes_anything
from sensorbench.benchmarks.comparison.order import EnoughRepetitions, EventOrder, ceiling_concurrency, one_a_database
from sensorbench.benchmarks.comparison.stages import AllServers, OneServer, Stages
from sensorbench.errors import UsageError
from sensorbench.hosts.pool import HostPool
from sensorbench.lifecycle import Benchmark, Description, RunContext, check_folder
from sensorbench.paths import remove_if_empty
from sensorbench.progress import ProgressReporter
from sensorbench.results import ComparisonManifest, ComparisonWriter
from sensorbench.results.described import ComparisonWorkload, DescribedDataset, Environment
from sensorbench.results.manifest import VariantManifest
from sensorbench.results.ownership import Intent, Owner
from sensorbench.results.planned import OperationManifest, PlannedComparison
from sensorbench.runner import (
    DATA_FOLDER,
    Comparison,
    ConnectedComparison,
    PreparedTable,
    SeparateServers,
    Servers,
    ValidatedComparison,
    Variant,
    check_can_share,
    check_can_share_operations,
    check_can_stop,
    check_namespace,
    connect,
    driver_ceiling,
    plan_operations,
    prepare_tables,
    running_servers,
    server_kind,
    validated,
)
from sensorbench.schemas import Operation


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
    is_enough: EnoughRepetitions | None = None
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
    """What the load queries gave, by variant (those that have nothing left to be done have none), and who has servers up."""

    tables: dict[str, list[PreparedTable]] = field(default_factory=dict)
    known_stages: list[Stages] = field(default_factory=list)

    @property
    def stages(self) -> Stages:
        """Who starts and stops servers between blocks."""
        return self.known_stages[-1]

    @property
    def connected(self) -> ConnectedComparison:
        """The comparison with those of its servers up that are so all the time."""
        return self.stages.connected


def plan_comparison(
    comparison: Comparison,
    folder: Path,
    *,
    resume: bool = False,
    replace: bool = False,
    drop_after: bool = False,
    is_enough: EnoughRepetitions | None = None,
) -> ComparisonPlan:
    """The plan of a comparison into a folder. `is_enough` is called after each repetition but the last one. Raises UsageError; writes nothing."""
    check_folder(folder, resume=resume)
    if comparison.blocks is not None:
        check_can_stop(comparison.variants)
        # With servers of their own, one that fails leaves the others as they are.
        comparison = replace_fields(comparison, continue_on_error=True)
    sound = validated(comparison)
    _check_can_share(sound)
    return ComparisonPlan(sound, folder, resume, replace, drop_after, is_enough)


def _check_can_share(sound: ValidatedComparison) -> None:
    """Raises UsageError if load generators cannot share the runs."""
    comparison = sound.comparison
    if not comparison.generators.share_runs:
        return
    measured = [variant for variant in comparison.variants if not variant.only_loads]
    workloads = [variant.workload(comparison.workload) for variant in measured]
    check_can_share(
        comparison.generators,
        min((workload.schedule.max_concurrency for workload in workloads), default=comparison.generators.count),
        [variant.target.database for variant in measured],
    )
    for variant, workload in zip(measured, workloads, strict=True):
        planned = plan_operations(comparison.operations, variant.schema, sound.parameters, workload)
        check_can_share_operations(comparison.generators, planned)


# What must be the same in resumed results.
_SAME = ("name", "part", "dataset", "operations", "workload", "resources", "generators", "hosts", "one_at_a_time")


class ComparisonBenchmark(Benchmark[ComparisonPlan, ComparisonManifest, ComparisonWriter]):
    """Variants that are compared under one workload."""

    manifest = ComparisonManifest
    writer = ComparisonWriter
    can_resume = True

    def hosts(self, plan: ComparisonPlan) -> HostPool | None:
        """Those of its load generators."""
        return plan.comparison.generators.hosts

    @contextmanager
    def servers(self, plan: ComparisonPlan, progress: ProgressReporter) -> Iterator[Servers]:
        """The servers of all variants that have something left to be done, once the load queries have run; where variants are measured one at a
        time, those alone that are up between blocks, too.
        """
        comparison, validated = plan.comparison, plan.validated
        unfinished = _unfinished(plan, progress)
        with validated.workbench:
            for variant in unfinished:
                columns = validated.columns[variant.id]
                plan.prepared.tables[variant.id] = prepare_tables(
                    comparison.dataset, variant.schema, columns, validated.workbench, progress
                )
            pin, resources = comparison.workload.pin, comparison.resources
            if comparison.blocks is not None:
                with SeparateServers.of(unfinished, progress, pin=pin, resources=resources) as separate:
                    _warn_of_kept_up(unfinished, progress)
                    plan.prepared.known_stages.append(OneServer(validated, separate))
                    yield separate.standing
                return
            with running_servers(unfinished, progress, pin=pin, resources=resources) as started:
                plan.prepared.known_stages.append(AllServers(connect(validated, started)))
                yield started

    def check(self, plan: ComparisonPlan, servers: Servers, owner: Owner) -> None:
        """Raises UsageError if the namespace of a variant that is not finished is refused, and EngineError where nobody answers."""
        del servers
        connected = plan.prepared.connected
        for variant in connected.comparison.variants:
            # What is started for a variant later is empty.
            if variant.id in plan.prepared.tables and variant.id in connected.targets:
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
                generators=comparison.generators.count,
                hosts=comparison.generators.host_names,
                refused=comparison.refused,
                one_at_a_time=comparison.blocks,
                budget=comparison.budget,
                max_load_s=comparison.max_load_s,
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
                        variant.target.database, concurrency=ceiling_concurrency(comparison.workload)
                    )
                    for variant in one_a_database(comparison.variants)
                    if variant.target.database.embedded
                },
                "servers": servers.described(),
            },
        )

    def check_same(self, before: ComparisonManifest, after: ComparisonManifest, folder: Path) -> ComparisonManifest:
        """The manifest, with the environment of both. Raises UsageError unless it is of the same comparison."""
        other = next((key for key in _SAME if getattr(before.plan, key) != getattr(after.plan, key)), None)
        if other := other or _other_of_variants(before.variants, after.variants):
            raise UsageError(
                f"--resume: {folder} was begun with another {other}; give the same arguments, or another folder with --out"
            )
        plan = after.plan.model_copy(update={"data_between_blocks": before.plan.data_between_blocks})
        return after.model_copy(update={"plan": plan, "environment": _joined(before.environment, after.environment)})

    def execute(self, plan: ComparisonPlan, context: RunContext[ComparisonWriter]) -> None:
        """Loads and measures the variants, and validates their answers."""
        EventOrder(
            plan.prepared.stages,
            plan.prepared.tables,
            context.writer,
            context.progress,
            intent=plan.intent,
            is_enough=plan.is_enough,
        ).run()
        if plan.comparison.encodings:
            with context.progress.task("encoding readings as batches"):
                context.writer.update_plan(encodings=encoding_costs(plan.validated.workbench))

    def clean_up(self, plan: ComparisonPlan, context: RunContext[ComparisonWriter]) -> None:
        """Removes what was loaded below the results. Data at a target that the user named stays, unless `drop_after`."""
        connected = plan.prepared.connected
        for variant in connected.comparison.variants:
            is_below = variant.temporary is not None and variant.temporary.exists()
            if is_below or (plan.drop_after and variant.target.is_url):
                connected.targets[variant.id].remove(owner=context.owner.to_json())
        remove_if_empty(context.folder / DATA_FOLDER)


def _unfinished(plan: ComparisonPlan, progress: ProgressReporter) -> list[Variant]:
    """The variants that have something left to be done; runs that wrote are read back at the target, so that it is needed: blocks have done that
    already.
    """
    comparison = plan.comparison
    if not plan.resume:
        return comparison.variants
    if comparison.blocks is not None:
        planned = plan_blocks(comparison.variants, comparison.workload.repetitions, comparison.blocks)
        rounds = Counter(variant.id for block in planned for variant in block.variants)
        finished = [
            variant for variant in comparison.variants if len(finished_blocks(plan.folder, variant.id)) == rounds[variant.id]
        ]
    elif writes_anything(comparison, plan.validated.names):
        return comparison.variants
    else:
        repetitions = comparison.workload.repetitions
        finished = [variant for variant in comparison.variants if is_finished(variant, plan.folder, repetitions)]
    for variant in finished:
        progress.say(f"  {variant.id}: finished before, not repeated")
    return [variant for variant in comparison.variants if variant not in finished]


def _warn_of_kept_up(variants: list[Variant], progress: ProgressReporter) -> None:
    """Names the servers that stay up while others are measured: sensorbench stops none that it has not started."""
    for label in dict.fromkeys(variant.target.label for variant in variants if server_kind(variant) == "kept up"):
        progress.warn(f"--one-at-a-time: {label} is already running and is not stopped: it is up while the others are measured")


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


def _other_of_variants(before: Sequence[VariantManifest], after: Sequence[VariantManifest]) -> str | None:
    """What variants were begun with that is another thing now; None if nothing is."""
    if [variant.id for variant in before] != [variant.id for variant in after]:
        return f"choice of variants ({', '.join(variant.id for variant in before)})"
    for first, second in zip(before, after, strict=True):
        for key in VariantManifest.model_fields:
            of_first, of_second = (getattr(variant, key) for variant in (first, second))
            if of_first != of_second and not (key == "url" and _is_same_file(first, second)):
                return f"{key} of {first.id}"
    return None


def _is_same_file(first: VariantManifest, second: VariantManifest) -> bool:
    """Whether two embedded databases are one file, whose path may be relative or absolute."""
    path, other = (Path(variant.url.partition(":")[2]).resolve() for variant in (first, second))
    return first.embedded and second.embedded and path == other


def _joined(before: Environment, after: Environment) -> Environment:
    """The environment of a resumed run: with the servers that were not restarted, and what was known of them."""
    return {
        **after,
        "servers": {**before.get("servers", {}), **after["servers"]},
        "driver_ceilings_per_s": {**before.get("driver_ceilings_per_s", {}), **after["driver_ceilings_per_s"]},
    }
