"""The benchmark that a load is: the data of a use case, loaded at each target in batches by workers."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sensorbench.compat.targets import lasting_target
from sensorbench.compat.tsbs.options import TsbsLoadOptions
from sensorbench.compat.tsbs.plan import AtTargets, planned_tsbs
from sensorbench.errors import UsageError
from sensorbench.lifecycle import Benchmark, Description, RunContext, check_folder
from sensorbench.progress import ProgressReporter
from sensorbench.results.ownership import Claim, Intent, Owner
from sensorbench.results.planned import PlannedTsbs, TsbsManifest
from sensorbench.results.writer import RunsWriter, variant_folder, write_load
from sensorbench.runner import (
    LoadOrder,
    PreparedTable,
    Servers,
    Variant,
    check_namespace,
    load_variant,
    prepare_tables,
    running_servers,
)


@dataclass(frozen=True)
class TsbsLoadPlan:
    """A load at targets. `prepared` is filled before servers are asked: the rows of each variant."""

    options: TsbsLoadOptions
    at: AtTargets
    intent: Intent
    prepared: dict[str, list[PreparedTable]] = field(default_factory=dict)


def plan_tsbs_load(options: TsbsLoadOptions, folder: Path, progress: ProgressReporter, *, replace: bool = False) -> TsbsLoadPlan:
    """The plan of what options ask for. Raises UsageError for what makes no sense."""
    check_folder(folder, resume=False, can_resume=False)
    embedded = [text for text in options.targets if lasting_target(text).database.embedded]
    if options.workers > 1 and embedded:
        raise UsageError(
            f"--workers {options.workers}: {embedded[0]} is embedded and is loaded by one worker; expected --workers 1"
        )
    return TsbsLoadPlan(options, AtTargets.of(options, folder, progress), "replace" if replace else "create")


class TsbsLoadBenchmark(Benchmark[TsbsLoadPlan, TsbsManifest, RunsWriter[TsbsManifest]]):
    """Loads the data of a use case."""

    manifest = TsbsManifest
    writer = RunsWriter

    @contextmanager
    def servers(self, plan: TsbsLoadPlan, progress: ProgressReporter) -> Iterator[Servers]:
        """The targets' servers, once the rows are prepared."""
        validated = plan.at.validated
        with validated.workbench:
            for variant in plan.at.variants:
                columns = validated.columns[variant.id]
                plan.prepared[variant.id] = prepare_tables(
                    plan.at.dataset, variant.schema, columns, validated.workbench, progress
                )
            with running_servers(plan.at.variants, progress, pin=False) as started:
                yield started

    def check(self, plan: TsbsLoadPlan, servers: Servers, owner: Owner) -> None:
        """Raises UsageError if a target's namespace is refused."""
        for variant in servers.at_their_urls(plan.at.variants):
            check_namespace(variant.engine_target(), Claim(owner, plan.intent))

    def describe(self, plan: TsbsLoadPlan, servers: Servers) -> Description[PlannedTsbs]:
        """The data, and how they are loaded."""
        return Description(
            title=f"TSBS {plan.options.use_case}, loading at {', '.join(variant.target.label for variant in plan.at.variants)}",
            plan=planned_tsbs(plan.options, plan.at, "load", plan.options.workers).model_copy(
                update={"batch_size": plan.options.batch_size}
            ),
            variants=[variant.manifest({}) for variant in plan.at.variants],
            environment={"servers": servers.described()},
        )

    def execute(self, plan: TsbsLoadPlan, context: RunContext[RunsWriter[TsbsManifest]]) -> None:
        """Loads one target after the other."""
        described, options = plan.at.dataset.describe(), plan.options
        for variant in map(_one_batch_at_a_time, context.servers.at_their_urls(plan.at.variants)):
            load = load_variant(
                variant,
                variant.engine_target(),
                plan.at.validated.schemas[variant.id],
                plan.prepared[variant.id],
                described.readings,
                plan.at.fingerprint(variant),
                claim=Claim(context.owner, plan.intent),
                reporter=context.progress,
                values_per_reading=described.values_per_reading,
                order=LoadOrder(options.workers, options.batch_size, options.reporting_period),
            )
            write_load(variant_folder(context.folder, variant.id), load)


def _one_batch_at_a_time(variant: Variant) -> Variant:
    """The same, where each worker has one connection: a driver would send several batches at the same time otherwise."""
    return variant if variant.target.database.embedded else variant.with_option("connections", "1")
