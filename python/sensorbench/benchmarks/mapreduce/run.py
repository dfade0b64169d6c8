"""The MapReduce study: load the articles everywhere, then one application after the other, systems and numbers of workers interleaved."""

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sensorbench import lab
from sensorbench.benchmarks.mapreduce.spec import MapReduceSpec
from sensorbench.benchmarks.mapreduce.summary import NATIVE
from sensorbench.benchmarks.mapreduce.systems import System, described, load_files, load_systems, variants_of
from sensorbench.benchmarks.mapreduce.words import BLANKS, Reference, chosen_words, reference_of
from sensorbench.errors import EngineError, FailedError, InterruptedRunError, UsageError, message_of
from sensorbench.interrupts import count
from sensorbench.lab.spark import Spark
from sensorbench.lifecycle import Benchmark, Description, RunContext
from sensorbench.progress import ProgressReporter
from sensorbench.results.described import DescribedSpark
from sensorbench.results.mapreduce import (
    CompleteExecution,
    Execution,
    FailedExecution,
    JobRecord,
    MapReduceWriter,
    WordRecord,
)
from sensorbench.results.ownership import Claim, Owner
from sensorbench.results.planned import ArticlesOfJob, MapReduceManifest, MapReduceWorkload, PlannedMapReduce, WantedWord
from sensorbench.results.writer import write_load
from sensorbench.runner import DATA_FOLDER, Servers, Variant, check_namespace, running_servers
from sensorbench.spark.inverted_index import ARTICLES_A_PART, InvertedIndex, JobFigures, tally_jar
from sensorbench.spark.session import Driver, Master, driver, find_master, first_line, lab_master, require_pyspark

LOG_FILE = "spark-driver.log"


@dataclass(frozen=True)
class JobSpec:
    """What is executed: the job on Spark with so many workers, or, where there are none, by the database itself."""

    system: System
    workers: int | None

    @property
    def label(self) -> str:
        """What people call it."""
        if self.workers is None:
            return f"{self.system.name}, {NATIVE}"
        return f"{self.system.name}, {self.workers} worker{'s' if self.workers > 1 else ''}"


@dataclass(frozen=True)
class MapReducePlan:
    """What is wished, validated: `master` is the user's, and `references` is what DuckDB finds."""

    spec: MapReduceSpec
    variants: Sequence[Variant]
    master: Master | None
    references: Sequence[Reference]


@dataclass(frozen=True)
class ServersAndSpark(Servers):
    """The servers that are up, the master beside them, and what results say of it."""

    master: Master
    spark: DescribedSpark


def planned(spec: MapReduceSpec, folder: Path) -> MapReducePlan:
    """The plan of a wish whose results go into `folder`. Raises UsageError."""
    require_pyspark()
    variants = variants_of(spec.targets, folder)
    master = find_master(spec.spark) if spec.spark else None
    _check_master(spec, master)
    with spec.dataset.connect() as workbench:
        kinds = [("named", word) for word in spec.words] or list(chosen_words(workbench).items())
        references = [reference_of(workbench, kind, word) for kind, word in kinds]
    return MapReducePlan(spec, variants, master, references)


class MapReduceBenchmark(Benchmark[MapReducePlan, MapReduceManifest, MapReduceWriter]):
    """Loads the articles into each system, and executes the job there."""

    manifest = MapReduceManifest
    writer = MapReduceWriter

    def servers(self, plan: MapReducePlan, progress: ProgressReporter) -> AbstractContextManager[Servers]:
        """The databases, and Spark."""
        return _servers_and_spark(plan, progress)

    def check(self, plan: MapReducePlan, servers: Servers, owner: Owner) -> None:
        """Raises UsageError where a target's namespace is refused."""
        for variant in servers.at_their_urls(list(plan.variants)):
            check_namespace(variant.engine_target(), _claim(plan, owner))

    def describe(self, plan: MapReducePlan, servers: Servers) -> Description[PlannedMapReduce]:
        """The systems, the articles and the words."""
        spec, dataset = plan.spec, plan.spec.dataset.describe()
        planned = PlannedMapReduce(
            workload=MapReduceWorkload(
                cores_per_worker=spec.cores,
                memory_per_worker=spec.memory,
                splits=spec.splits,
                articles_per_part=ARTICLES_A_PART,
            ),
            dataset=ArticlesOfJob(
                name=spec.dataset.name,
                title=dataset.title,
                articles=dataset.readings,
                scale=dataset.scale,
                generated=dataset.generated,
            ),
            systems=described(plan.variants, with_files=spec.with_files),
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
        )
        return Description(
            "MapReduce over articles in databases",
            planned,
            environment={"servers": servers.described(), "spark": _with_spark(servers).spark},
        )

    def execute(self, plan: MapReducePlan, context: RunContext[MapReduceWriter]) -> None:
        """Loads the articles, then executes all cells interleaved."""
        spec, claim = plan.spec, _claim(plan, context.owner)
        with spec.dataset.connect() as workbench:
            systems, loads = load_systems(plan.variants, spec.dataset, workbench, context.servers, context.progress, claim)
            if spec.with_files:
                system, loads[system.name] = load_files((context.folder / DATA_FOLDER).resolve(), workbench, spec.splits)
                systems.append(system)
        write_load(context.folder, loads)
        _execute_all(plan, systems, context)

    def clean_up(self, plan: MapReducePlan, context: RunContext[MapReduceWriter]) -> None:
        """Removes the files of articles, and with `drop_after` what was created at the targets."""
        if plan.spec.drop_after:
            for variant in context.servers.at_their_urls(list(plan.variants)):
                variant.engine_target().remove(owner=context.owner.to_json())
        shutil.rmtree(context.folder / DATA_FOLDER, ignore_errors=True)


def _claim(plan: MapReducePlan, owner: Owner) -> Claim:
    return Claim(owner, "replace" if plan.spec.replace else "create")


def _with_spark(servers: Servers) -> ServersAndSpark:
    if not isinstance(servers, ServersAndSpark):
        raise AssertionError("Spark is among the servers of this benchmark")
    return servers


def _check_master(spec: MapReduceSpec, master: Master | None) -> None:
    """Raises UsageError when nobody answers at a user's master, or it has fewer threads than workers are asked for."""
    if master is None:
        return
    master.check_answers()
    if master.threads is not None and master.threads < max(spec.workers) * spec.cores:
        raise UsageError(
            f"--workers {max(spec.workers)}: {master.url} has {master.threads} threads; give it more, or ask for fewer workers"
        )


@contextlib.contextmanager
def _servers_and_spark(plan: MapReducePlan, progress: ProgressReporter) -> Iterator[Servers]:
    with running_servers(list(plan.variants), progress, pin=False) as started, _cluster(plan, progress) as (master, spark):
        yield ServersAndSpark(started.instances, master, spark)


@contextlib.contextmanager
def _cluster(plan: MapReducePlan, progress: ProgressReporter) -> Iterator[tuple[Master, DescribedSpark]]:
    """The user's master, or one that the lab starts for this benchmark alone; and what results say of it."""
    spec, master = plan.spec, plan.master
    if master is not None:
        yield master, {"url": master.url, "started": False}
        return
    resources = {"worker.cores": str(spec.cores), "worker.memory": spec.memory}
    with contextlib.ExitStack() as stack:
        with progress.task(f"starting {Spark.name}") as task:
            wanted = lab.ServerSpec(Spark.name, nodes=max(spec.workers), settings=resources, stays=False)
            instance = stack.enter_context(lab.borrowed(wanted))
            task.end(f"{instance.version}, {len(instance.nodes)} workers")
        spark: DescribedSpark = {
            "version": instance.version,
            "nodes": len(instance.nodes),
            "settings": resources,
            "started": True,
        }
        yield lab_master(instance), spark


def _execute_all(plan: MapReducePlan, systems: Sequence[System], context: RunContext[MapReduceWriter]) -> None:
    """All executions of all cells interleaved, there and back again. A cell that fails is not executed again; when all have failed, so has
    the benchmark.
    """
    spec, references = plan.spec, plan.references
    jars = {system.name: [*system.place.connector.get_jars(), tally_jar()] for system in systems}
    jobs = [JobSpec(system, workers) for system in systems for workers in spec.workers]
    jobs += [JobSpec(system, None) for system in systems if system.native is not None]
    failed: dict[str, str] = {}
    all_jars, log = sorted({jar for of_one in jars.values() for jar in of_one}), (context.folder / LOG_FILE).resolve()
    with driver(_with_spark(context.servers).master, jars=all_jars, log=log) as spark:
        for number in range(1, spec.executions + 1):
            # Each execution is for the first word; the others follow it once, in the last, so that all of it stays short.
            looked_for = references if number == spec.executions else references[:1]
            for job in jobs if number % 2 else reversed(jobs):
                if job.label in failed:
                    continue
                with context.progress.task(f"{number}. {job.label}") as task:
                    execution = _execution(partial(_execute, spec, job, looked_for, spark, jars), job, number)
                    context.writer.write_execution(execution)
                    if isinstance(execution, FailedExecution):
                        failed[job.label] = execution.failed
                        task.end(execution.failed)
                    else:
                        task.end(f"{execution.total_s:.1f} s, {execution.setup_s:.1f} s of it set-up")
    if len(failed) == len(jobs):
        raise FailedError(f"every cell failed; {next(iter(failed))}: {next(iter(failed.values()))}")


def _execution(carry_out: Callable[[int], CompleteExecution], job: JobSpec, number: int) -> Execution:
    """The record of an execution. What goes wrong in a database, a connector or on Spark is a part of it."""
    interruptions = count()
    try:
        return carry_out(number)
    except (FailedError, EngineError) as error:
        return _failed(job, number, message_of(error))
    except (KeyboardInterrupt, InterruptedRunError, UsageError, OSError):
        raise
    except Exception as error:
        # What Spark says of an interruption is no failure of the cell.
        if count() > interruptions:
            raise KeyboardInterrupt from error
        if not _is_of_spark(error):
            raise
        return _failed(job, number, first_line(error))


def _failed(job: JobSpec, number: int, why: str) -> FailedExecution:
    return FailedExecution(execution=number, system=job.system.name, workers=job.workers, failed=why)


def _is_of_spark(error: Exception) -> bool:
    return type(error).__module__.partition(".")[0] in {"py4j", "pyspark"}


def _execute(
    spec: MapReduceSpec, job: JobSpec, references: Sequence[Reference], spark: Driver, jars: dict[str, list[Path]], number: int
) -> CompleteExecution:
    if job.workers is None:
        return _native(job.system, references, number)
    return _on_spark(spec, job.system, job.workers, references, spark, jars[job.system.name], number)


def _on_spark(
    spec: MapReduceSpec,
    system: System,
    workers: int,
    references: Sequence[Reference],
    spark: Driver,
    jars: Sequence[Path],
    number: int,
) -> CompleteExecution:
    """One application: executors, a first task at each of them, then the two jobs for each word. T is that of the first word, from the
    submission on; of the others there is what their jobs take.
    """
    with spark.application(
        f"mapreduce {system.name}",
        executors=workers,
        cores=spec.cores,
        memory=spec.memory,
        jars=jars,
        # Spark's own 200 parts of a shuffle are for far more data.
        settings={**system.place.settings(splits=str(spec.splits)), "spark.sql.shuffle.partitions": str(spec.splits)},
    ) as application:
        begun_s = time.monotonic()
        tasks = workers * spec.cores
        application.session.range(0, tasks, 1, tasks).count()
        launch_s = time.monotonic() - begun_s
        index = InvertedIndex(application.session, system.place, spec.dataset.describe().readings, spec.splits, BLANKS)
        words = [_of_word(index, reference) for reference in references]
        spark.check_none_was_lost(application)
    before_s = application.context_s + application.executors_s + launch_s
    jobs_s = sum(job.duration_s for job in words[0].jobs)
    executed_s = sum(job.executed_s or 0.0 for job in words[0].jobs)
    return CompleteExecution(
        execution=number,
        system=system.name,
        workers=workers,
        context_s=application.context_s,
        executors_s=application.executors_s,
        launch_s=launch_s,
        total_s=before_s + jobs_s,
        setup_s=before_s + jobs_s - executed_s,
        words=words,
    )


def _of_word(index: InvertedIndex, reference: Reference) -> WordRecord:
    """Both jobs for a word on empty tables; what they stored is read from the database and compared afterwards."""
    index.empty()
    first = index.first_job(reference.word)
    second = index.second_job(reference.word)
    counts = index.counts()
    return WordRecord(
        word=reference.word.text,
        jobs=(_record(first), _record(second)),
        pairs=len(counts),
        occurrences=sum(counts.values()),
        list_length=second.elements,
        equal=counts == reference.counts and second.elements == reference.occurrences,
    )


def _record(job: JobFigures) -> JobRecord:
    stages = job.stages.stages
    return JobRecord(
        name=job.name,
        duration_s=job.duration_s,
        executed_s=job.stages.executed_s,
        map_tasks=job.stages.map_tasks,
        tasks=sum(stage.tasks for stage in stages),
        run_s=sum(stage.run_s for stage in stages),
        deserialize_s=sum(stage.deserialize_s for stage in stages),
        read_rows=job.read.rows,
        read_bytes=job.read.bytes,
        spark_read_rows=sum(stage.input_records for stage in stages) or None,
        spark_read_bytes=sum(stage.input_bytes for stage in stages) or None,
        shuffle_bytes=sum(stage.shuffle_write_bytes for stage in stages),
    )


def _native(system: System, references: Sequence[Reference], number: int) -> CompleteExecution:
    """The statements of the database itself. There is no set-up that could be distinguished."""
    if system.native is None or system.target is None:
        raise AssertionError("a system without a native job has no such cell")
    words = []
    for reference in references:
        system.native.do_empty(system.target)
        first_s, second_s = system.native.do_jobs(system.target, reference.word)
        counts = system.native.read_counts(system.target, reference.word)
        words.append(
            WordRecord(
                word=reference.word.text,
                jobs=(JobRecord(name="job 1", duration_s=first_s), JobRecord(name="job 2", duration_s=second_s)),
                pairs=len(counts),
                occurrences=sum(counts.values()),
                equal=counts == reference.counts,
            )
        )
    total_s = sum(job.duration_s for job in words[0].jobs)
    return CompleteExecution(execution=number, system=system.name, workers=None, total_s=total_s, setup_s=0.0, words=words)
