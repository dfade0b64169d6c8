"""The MapReduce study: load the articles everywhere, then one application after the other, size by size, with systems interleaved."""

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from sensorbench import lab
from sensorbench.benchmarks.mapreduce.clusters import grow, grow_hdfs, servers_and_spark, starting_with, with_servers
from sensorbench.benchmarks.mapreduce.execute import Job, execute
from sensorbench.benchmarks.mapreduce.native_job import native_job
from sensorbench.benchmarks.mapreduce.spec import MapReduceSpec
from sensorbench.benchmarks.mapreduce.systems import (
    ARTICLES,
    FOLDER_ON_HDFS,
    LoadedArticles,
    System,
    articles_in,
    described,
    load_files,
    load_systems,
    system_of_files,
    systems_of,
    variants_of,
)
from sensorbench.benchmarks.mapreduce.words import Reference, chosen_words, reference_of
from sensorbench.errors import FailedError, UsageError
from sensorbench.hosts.pool import HostPool
from sensorbench.lifecycle import Benchmark, Description, RunContext
from sensorbench.progress import ProgressReporter
from sensorbench.results.mapreduce import CompleteExecution, FailedExecution, MapReduceWriter, continued, read_mapreduce
from sensorbench.results.ownership import Claim, Owner
from sensorbench.results.planned import ArticlesOfJob, MapReduceManifest, MapReduceWorkload, PlannedMapReduce, WantedWord
from sensorbench.results.writer import write_load
from sensorbench.runner import DATA_FOLDER, LiveJobs, Servers, Variant, check_namespace, live_jobs
from sensorbench.spark.connector import FILES
from sensorbench.spark.inverted_index import ARTICLES_A_PART, tally_jar
from sensorbench.spark.session import Driver, Master, driver, find_master, require_pyspark
from sensorbench.wording import counted

LOG_FILE = "spark-driver.log"


class Turn(NamedTuple):
    """An execution: the n-th of a system, by this many workers or by the database itself, for a word."""

    number: int
    system: str
    workers: int | None
    word: str


@dataclass(frozen=True)
class MapReducePlan:
    """What is wished, validated: `master` is the user's, `references` is what DuckDB finds, and `done` what is in the folder already."""

    spec: MapReduceSpec
    variants: Sequence[Variant]
    master: Master | None
    references: Sequence[Reference]
    done: frozenset[Turn] = field(default=frozenset())

    @property
    def systems(self) -> list[str]:
        """The names of the systems."""
        return [*(variant.target.label for variant in self.variants), *([FILES] if self.spec.with_files else [])]

    @property
    def with_native_job(self) -> list[str]:
        """Those that do the job themselves, too."""
        return [variant.target.label for variant in self.variants if native_job(variant.target.database.dialect) is not None]

    @property
    def stages_left(self) -> list[tuple[list[int], list[Turn]]]:
        """Numbers of workers, and what is to be executed with them and was not."""
        stages = [(workers, list(self._turns(workers))) for workers in self.spec.stages]
        left = [(workers, [turn for turn in turns if turn not in self.done]) for workers, turns in stages]
        return [(workers, turns) for workers, turns in left if turns]

    def _turns(self, workers: Sequence[int]) -> Iterator[Turn]:
        """Systems there and back again, for one word after the other, of which none is always the first. Native jobs come with the first stage."""
        cells: list[tuple[str, int | None]] = [(system, count) for system in self.systems for count in workers]
        if list(workers) == self.spec.stages[0]:
            cells += [(system, None) for system in self.with_native_job]
        for number in range(1, self.spec.executions + 1):
            for system, count in cells if number % 2 else reversed(cells):
                for place in range(len(self.references)):
                    reference = self.references[(number - 1 + place) % len(self.references)]
                    yield Turn(number, system, count, reference.word.text)


def planned(spec: MapReduceSpec, folder: Path) -> MapReducePlan:
    """The plan of a wish whose results go into `folder`. Raises UsageError."""
    require_pyspark()
    done = _done(folder) if spec.resume else frozenset[Turn]()
    variants = variants_of(spec.targets, folder, spec.borders)
    master = find_master(spec.spark) if spec.spark else None
    _check_master(spec, master)
    with spec.dataset.connect() as workbench:
        kinds = [("named", word) for word in spec.words] or list(chosen_words(workbench).items())
        references = [reference_of(workbench, kind, word) for kind, word in kinds]
    plan = MapReducePlan(spec, variants, master, references, done)
    if not spec.grows:
        return plan
    targets = starting_with(spec.targets, _first(plan))
    return replace(plan, variants=variants_of(targets, folder, spec.borders))


def _first(plan: MapReducePlan) -> int:
    """The number of nodes and workers with which it begins, or continues."""
    stages = plan.stages_left or [(plan.spec.stages[0], [])]
    return stages[0][0][0]


def _done(folder: Path) -> frozenset[Turn]:
    """What ended with results there. Raises UsageError when there are none, and DamagedResultsError."""
    complete = read_mapreduce(folder).complete
    return frozenset(Turn(of.execution, of.system, of.workers, word.word) for of in complete for word in of.words)


class MapReduceBenchmark(Benchmark[MapReducePlan, MapReduceManifest, MapReduceWriter]):
    """Loads the articles into each system, and executes the job there."""

    manifest = MapReduceManifest
    writer = MapReduceWriter
    can_resume = True

    def hosts(self, plan: MapReducePlan) -> HostPool | None:
        """Those of the databases' nodes."""
        return plan.spec.hosts

    def servers(self, plan: MapReducePlan, progress: ProgressReporter) -> AbstractContextManager[Servers]:
        """The databases, and Spark."""
        return servers_and_spark(plan.spec, plan.variants, plan.master, _first(plan), progress)

    def check(self, plan: MapReducePlan, servers: Servers, owner: Owner) -> None:
        """Raises UsageError if a target's namespace is refused."""
        for variant in servers.at_their_urls(list(plan.variants)):
            check_namespace(variant.engine_target(), _claim(plan, owner))

    def check_same(self, before: MapReduceManifest, after: MapReduceManifest, folder: Path) -> MapReduceManifest:
        """The manifest with which the study continues. Raises UsageError for another plan."""
        return continued(before, after, folder)

    def describe(self, plan: MapReducePlan, servers: Servers) -> Description[PlannedMapReduce]:
        """The systems, the articles and the words."""
        spec, dataset = plan.spec, plan.spec.dataset.describe()
        planned = PlannedMapReduce(
            workload=MapReduceWorkload(
                cores_per_worker=spec.cores,
                memory_per_worker=spec.memory,
                splits=spec.splits,
                articles_per_part=ARTICLES_A_PART,
                grows=spec.grows,
            ),
            dataset=ArticlesOfJob(
                name=spec.dataset.name,
                title=dataset.title,
                articles=dataset.readings,
                scale=dataset.scale,
                generated=dataset.generated,
            ),
            systems=described(spec, plan.variants),
            words=[
                WantedWord(
                    kind=reference.kind,
                    word=reference.word.text,
                    occurrences=reference.occurrences,
                    articles=len(reference.counts),
                )
                for reference in plan.references
            ],
            workers=list(spec.workers),
            executions=spec.executions,
            budget_s=spec.deadline.budget_s if spec.deadline else None,
            hosts=[] if spec.hosts is None else spec.hosts.chosen.names,
        )
        return Description(
            "MapReduce over articles in databases",
            planned,
            environment={"servers": servers.described(), "spark": with_servers(servers).spark},
        )

    def execute(self, plan: MapReducePlan, context: RunContext[MapReduceWriter]) -> None:
        """Loads the articles, then executes size by size what is left."""
        if not plan.stages_left:
            return
        context.writer.forget_failed()
        spec, claim = plan.spec, _claim(plan, context.owner)
        with spec.dataset.connect() as workbench:
            loaded = load_systems(plan.variants, spec.dataset, workbench, context.servers, context.progress, claim)
            if spec.with_files:
                loaded.loads[FILES] = load_files(_data_folder(context), workbench, spec.splits)
        write_load(context.folder, loaded.loads)
        _execute_stages(plan, loaded, context)

    def clean_up(self, plan: MapReducePlan, context: RunContext[MapReduceWriter]) -> None:
        """Removes the files of articles, and with `drop_after` what was created at the targets."""
        if plan.spec.drop_after:
            for variant in context.servers.at_their_urls(list(plan.variants)):
                variant.engine_target().remove(owner=context.owner.to_json())
        shutil.rmtree(context.folder / DATA_FOLDER, ignore_errors=True)


def _claim(plan: MapReducePlan, owner: Owner) -> Claim:
    if plan.spec.replace:
        return Claim(owner, "replace")
    return Claim(owner, "resume" if plan.spec.resume else "create")


def _data_folder(context: RunContext[MapReduceWriter]) -> Path:
    return (context.folder / DATA_FOLDER).resolve()


def _check_master(spec: MapReduceSpec, master: Master | None) -> None:
    """Raises UsageError when nobody answers at a user's master, or it has fewer threads than workers are asked for."""
    if master is None:
        return
    master.check_answers()
    if master.threads is not None and master.threads < max(spec.workers) * spec.cores:
        option = "--nodes" if spec.grows else "--workers"
        raise UsageError(
            f"{option} {max(spec.workers)}: {master.url} has {master.threads} threads; give it more, or use fewer workers"
        )


def _execute_stages(plan: MapReducePlan, loaded: LoadedArticles, context: RunContext[MapReduceWriter]) -> None:
    """All executions of one size after the other. A cell that fails is not executed again; when all have failed, so has the benchmark."""
    failed, done = dict[tuple[str, int | None], str](), len(plan.done)
    systems = _systems(plan, context)
    jars = {name: [*system.place.connector.get_jars(), tally_jar()] for name, system in systems.items()}
    all_jars, log = sorted({jar for of_one in jars.values() for jar in of_one}), (context.folder / LOG_FILE).resolve()
    with (
        driver(next(iter(systems.values())).master, jars=all_jars, log=log) as spark,
        live_jobs(
            "executions", "MapReduce", lambda: {**context.servers.processes(), "spark driver": lab.WatchedProcess.of(spark.pid)}
        ) as live,
    ):
        for workers, turns in plan.stages_left:
            if plan.spec.grows:
                live.happened(f"databases get {counted(workers[0], 'node')}")
                _grow(plan, loaded, context, workers[0])
                systems = _systems(plan, context)
            for turn in turns:
                if (turn.system, turn.workers) not in failed:
                    done += _carry_out(plan, context, turn, systems[turn.system], spark, jars[turn.system], failed, live)
    if not done and failed:
        (system, _), why = next(iter(failed.items()))
        raise FailedError(f"every cell failed; {system}: {why}")


def _systems(plan: MapReducePlan, context: RunContext[MapReduceWriter]) -> dict[str, System]:
    """The systems as they are now, by name."""
    servers = with_servers(context.servers)
    systems = systems_of(plan.variants, servers)
    if plan.spec.with_files:
        systems.append(system_of_files(_data_folder(context), servers))
    return {system.name: system for system in systems}


def _grow(plan: MapReducePlan, loaded: LoadedArticles, context: RunContext[MapReduceWriter], nodes: int) -> None:
    """Gives what grows this many nodes, and puts down where the data lie then."""
    if plan.spec.deadline is not None:
        plan.spec.deadline.check(f"{nodes} nodes are measured")
    servers, progress = with_servers(context.servers), context.progress
    files = articles_in(_data_folder(context)) if servers.hdfs else []
    of_files = grow_hdfs(servers, nodes, f"{FOLDER_ON_HDFS}/{ARTICLES}", files, progress)
    for placement in [*grow(plan.variants, servers, nodes, loaded.settle, progress), *([of_files] if of_files else [])]:
        context.writer.write_placement(placement)


def _carry_out(
    plan: MapReducePlan,
    context: RunContext[MapReduceWriter],
    turn: Turn,
    system: System,
    spark: Driver,
    jars: Sequence[Path],
    failed: dict[tuple[str, int | None], str],
    live: LiveJobs,
) -> bool:
    """Executes a turn and writes the record of it; whether it ended with results."""
    spec, begun_s = plan.spec, time.monotonic()
    reference = next(reference for reference in plan.references if reference.word.text == turn.word)
    job = Job(system, turn.workers, reference)
    if spec.deadline is not None:
        spec.deadline.check(f"execution {turn.number} of {job.label}")
    with context.progress.task(f"{turn.number}. {job.label}") as task:
        with live.job(job.label, job.phase) as outcome:
            execution = execute(spec, job, turn.number, spark, jars)
            outcome.is_ok = isinstance(execution, CompleteExecution)
        context.writer.write_execution(execution)
        if isinstance(execution, FailedExecution):
            failed[turn.system, turn.workers] = execution.failed
            task.end(execution.failed)
        else:
            task.end(f"{execution.total_s:.1f} s, {execution.setup_s:.1f} s of it set-up")
    if spec.deadline is not None:
        spec.deadline.note(time.monotonic() - begun_s)
    return isinstance(execution, CompleteExecution)
