"""The benchmark that queries are: each kind at each target, one kind after the other, and their answers compared with DuckDB's."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from sensorbench.compat.drive import drive
from sensorbench.compat.tsbs.caveats import DEGENERATE, caveats_of
from sensorbench.compat.tsbs.options import TsbsRunOptions
from sensorbench.compat.tsbs.plan import NOT_IN_SCRIPTS, AtTargets, all_queries, inexpressible, planned_tsbs, workload_of
from sensorbench.compat.tsbs.whole_answers import rows_of_whole_answers
from sensorbench.errors import UsageError
from sensorbench.lifecycle import Benchmark, Description, RunContext, check_folder
from sensorbench.progress import ProgressReporter
from sensorbench.results import RunResult
from sensorbench.results.engine_plan import EnginePlan
from sensorbench.results.latencies import of_kind
from sensorbench.results.ownership import Claim, Owner
from sensorbench.results.planned import PlannedTsbs, TsbsManifest
from sensorbench.results.writer import REFERENCE_FILE, RunsWriter, write_table
from sensorbench.runner import (
    Observer,
    Schedule,
    Servers,
    Variant,
    Workload,
    build_plan,
    check_namespace,
    driver_ceiling,
    running_servers,
)
from sensorbench.verification import REFERENCE_SAMPLE, reference_table


@dataclass(frozen=True)
class TsbsRunPlan:
    """Kinds of queries at targets. `inexpressible` are those that a variant leaves out, with why. `whole_answers` are the rows that answers
    have together that select nothing. `observers` are called some times a second with the run and its snapshot.
    """

    options: TsbsRunOptions
    at: AtTargets
    queries: list[str]
    inexpressible: dict[str, dict[str, str]]
    whole_answers: dict[str, int]
    observers: Sequence[Observer]

    def variants_of(self, query: str) -> list[Variant]:
        """The variants that execute a kind of query: in one order for one kind, in the reverse order for the next."""
        able = [variant for variant in self.at.variants if query not in self.inexpressible.get(variant.id, {})]
        return able if self.queries.index(query) % 2 == 0 else able[::-1]

    def workload(self, query: str) -> Workload:
        """The workload of one kind of query."""
        options = self.options
        schedule = Schedule(concurrency=options.workers, rate=options.max_rps)
        workload = workload_of(options, [query], operations=options.max_queries, schedule=schedule)
        return workload.model_copy(update={"timeout": f"{options.timeout:g}s"})

    def engine_plan(self, query: str, variant: Variant) -> EnginePlan:
        """How the engine executes it at a variant: the same queries at each."""
        validated = self.at.validated
        return build_plan(validated.comparison.operations, variant.schema, validated.parameters, self.workload(query), 0)


def queries_of(options: TsbsRunOptions) -> list[str]:
    """The kinds of queries that options name, in the order of TSBS's documentation. Raises UsageError for an unknown one."""
    known = all_queries(options.use_case)
    if unknown := [name for name in options.queries if name not in known]:
        raise UsageError(
            f"--queries {unknown[0]}: use case {options.use_case} has no such query; expected some of {', '.join(known)}"
        )
    wanted = options.queries or [name for name in known if name not in NOT_IN_SCRIPTS]
    return [name for name in known if name in wanted]


def plan_tsbs_run(
    options: TsbsRunOptions, folder: Path, progress: ProgressReporter, *, observers: Sequence[Observer] = ()
) -> TsbsRunPlan:
    """The plan of what options ask for. Raises UsageError for what makes no sense."""
    check_folder(folder, resume=False, can_resume=False)
    queries = queries_of(options)
    at = AtTargets.of(options, folder, progress)
    left_out = {variant.id: inexpressible(variant.schema, queries) for variant in at.variants}
    left_out = {variant: names for variant, names in left_out.items() if names}
    for variant, reasons in left_out.items():
        for name, why in reasons.items():
            progress.warn(f"{variant} leaves out {name}: {why}")
    for name in queries:
        if name in DEGENERATE:
            progress.warn(f"{name}: {DEGENERATE[name]}")
    whole_answers = rows_of_whole_answers(at.validated, queries, options.max_queries)
    plan = TsbsRunPlan(options, at, queries, left_out, whole_answers, observers)
    if nobody := [name for name in queries if not plan.variants_of(name)]:
        raise UsageError(f"--queries {nobody[0]}: no target can express it; leave it out")
    return plan


class TsbsRunBenchmark(Benchmark[TsbsRunPlan, TsbsManifest, RunsWriter[TsbsManifest]]):
    """Executes kinds of queries on data that were loaded."""

    manifest = TsbsManifest
    writer = RunsWriter

    @contextmanager
    def servers(self, plan: TsbsRunPlan, progress: ProgressReporter) -> Iterator[Servers]:
        """The targets' servers."""
        with plan.at.validated.workbench, running_servers(plan.at.variants, progress, pin=False) as started:
            yield started

    def check(self, plan: TsbsRunPlan, servers: Servers, owner: Owner) -> None:
        """Raises UsageError unless the data of the same options are at each target."""
        for variant in servers.at_their_urls(plan.at.variants):
            plan.at.check_loaded(variant)
            check_namespace(variant.engine_target(), Claim(owner, "attach"))

    def describe(self, plan: TsbsRunPlan, servers: Servers) -> Description[PlannedTsbs]:
        """The queries, and how they are executed."""
        variants, options = plan.at.variants, plan.options
        embedded = {
            variant.target.database.name: variant.target.database for variant in variants if variant.target.database.embedded
        }
        return Description(
            title=f"TSBS {options.use_case}, queries at {', '.join(variant.target.label for variant in variants)}",
            plan=planned_tsbs(options, plan.at, "run", options.workers).model_copy(
                update={
                    "queries": plan.queries,
                    "max_queries": options.max_queries,
                    "max_rps": options.max_rps,
                    "inexpressible": plan.inexpressible,
                    "whole_answers": plan.whole_answers,
                    "caveats": caveats_of(options.use_case, plan.queries),
                }
            ),
            variants=[
                variant.manifest(
                    {name: variant.schema.described_statements(name) for name in plan.queries if variant.answers(name)}
                )
                for variant in variants
            ],
            environment={
                "driver_ceilings_per_s": {name: driver_ceiling(database) for name, database in embedded.items()},
                "servers": servers.described(),
            },
        )

    def execute(self, plan: TsbsRunPlan, context: RunContext[RunsWriter[TsbsManifest]]) -> None:
        """Executes one kind of query at each target, then the next kind; computes the reference answers at the end."""
        variants = {variant.id: variant for variant in context.servers.at_their_urls(plan.at.variants)}
        targets = {name: variant.engine_target() for name, variant in variants.items()}
        for name, target in targets.items():
            target.attach(plan.at.driver_schema(variants[name]), intent="attach", owner=context.owner.to_json())
        tables = list(plan.at.validated.parameters.tables.values())
        runs: dict[str, list[RunResult]] = {query: [] for query in plan.queries}
        number = 0
        for query in plan.queries:
            for planned in plan.variants_of(query):
                number += 1
                engine_plan, variant = plan.engine_plan(query, planned), variants[planned.id]
                folder = context.writer.run_folder(number)
                runs[query].append(
                    drive(context, targets[variant.id], variant, engine_plan, tables, plan.observers, query, folder=folder)
                )
        with context.progress.task("reference answers") as task:
            references = [reference for query in plan.queries if (reference := _reference(plan, query, runs[query])) is not None]
            if references:
                write_table(context.folder / REFERENCE_FILE, pa.concat_tables(references))
            task.end(f"{sum(table.num_rows for table in references):,} computed from the data themselves")


def _reference(plan: TsbsRunPlan, query: str, runs: Sequence[RunResult]) -> pa.Table | None:
    """Reference answers to the first queries of a kind that any target has answered, by the number of the kind in the plan."""
    answered: set[int] = set()
    for run in runs:
        if (answers := run.table("answers")) is not None:
            answered.update(of_kind(answers, 0, 0)["k"].to_pylist())
    sampled = sorted(answered)[:REFERENCE_SAMPLE]
    if not sampled:
        return None
    validated = plan.at.validated
    engine_plan = plan.engine_plan(query, plan.variants_of(query)[0])
    operations, parameters = validated.comparison.operations, validated.parameters
    table = reference_table(validated.workbench, operations, [query], engine_plan, parameters, 0, {0: sampled})
    place = table.column_names.index("operation")
    numbers = pa.array([plan.queries.index(query)] * table.num_rows, table.schema.field(place).type)
    return table.set_column(place, table.schema.field(place), numbers)
