"""One execution of the job: as an application on Spark, or by the database itself."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sensorbench.benchmarks.mapreduce.spec import MapReduceSpec
from sensorbench.benchmarks.mapreduce.summary import NATIVE
from sensorbench.benchmarks.mapreduce.systems import System
from sensorbench.benchmarks.mapreduce.words import BLANKS, Reference
from sensorbench.errors import EngineError, FailedError, InterruptedRunError, UsageError, message_of
from sensorbench.interrupts import count
from sensorbench.results.mapreduce import CompleteExecution, Execution, FailedExecution, JobRecord, WordRecord
from sensorbench.spark.inverted_index import InvertedIndex, JobFigures
from sensorbench.spark.session import Driver, first_line
from sensorbench.wording import counted


@dataclass(frozen=True)
class Job:
    """What is executed: the job for a word over a system, on Spark with this many workers, or, where there are none, by the database itself."""

    system: System
    workers: int | None
    reference: Reference

    @property
    def label(self) -> str:
        """What people call it."""
        return f"{self.system.name}, {self.phase}, {self.reference.word.text!r}"

    @property
    def phase(self) -> str:
        """Who carries it out: this many workers, or the database itself."""
        return NATIVE if self.workers is None else counted(self.workers, "worker")


def execute(spec: MapReduceSpec, job: Job, number: int, driver: Driver, jars: Sequence[Path]) -> Execution:
    """Carries the job out for the n-th time; the record of that. What goes wrong in a database, a connector or on Spark is a part of it.

    Raises UsageError, KeyboardInterrupt and OSError for what is none of these.
    """
    carry_out = partial(_native, job) if job.workers is None else partial(_on_spark, spec, job, job.workers, driver, jars)
    return _recorded(carry_out, job, number)


def _recorded(carry_out: Callable[[int], CompleteExecution], job: Job, number: int) -> Execution:
    interruptions = count()
    try:
        return carry_out(number)
    except (FailedError, EngineError) as error:
        return _failed(job, number, message_of(error))
    except (KeyboardInterrupt, InterruptedRunError, UsageError, OSError):
        raise
    except Exception as error:
        # What Spark says of an interruption is not a failure of the cell.
        if count() > interruptions:
            raise KeyboardInterrupt from error
        if not _is_of_spark(error):
            raise
        return _failed(job, number, first_line(error))


def _failed(job: Job, number: int, why: str) -> FailedExecution:
    return FailedExecution(execution=number, system=job.system.name, workers=job.workers, nodes=job.system.nodes, failed=why)


def _is_of_spark(error: Exception) -> bool:
    return type(error).__module__.partition(".")[0] in {"py4j", "pyspark"}


def _on_spark(
    spec: MapReduceSpec, job: Job, workers: int, driver: Driver, jars: Sequence[Path], number: int
) -> CompleteExecution:
    """One application: executors, a first task at each of them, then the two jobs. T counts from the submission on."""
    system, reference = job.system, job.reference
    with driver.at(system.master).application(
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
        word = _of_word(index, reference)
        driver.at(system.master).check_none_was_lost(application)
    before_s = application.context_s + application.executors_s + launch_s
    jobs_s = sum(record.duration_s for record in word.jobs)
    executed_s = sum(record.executed_s or 0.0 for record in word.jobs)
    return CompleteExecution(
        execution=number,
        system=system.name,
        workers=workers,
        nodes=system.nodes,
        context_s=application.context_s,
        executors_s=application.executors_s,
        launch_s=launch_s,
        total_s=before_s + jobs_s,
        setup_s=before_s + jobs_s - executed_s,
        words=[word],
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
        local_tasks=job.stages.local_map_tasks,
        tasks=sum(stage.tasks for stage in stages),
        run_s=sum(stage.run_s for stage in stages),
        deserialize_s=sum(stage.deserialize_s for stage in stages),
        read_rows=job.read.rows,
        read_bytes=job.read.bytes,
        spark_read_rows=sum(stage.input_records for stage in stages) or None,
        spark_read_bytes=sum(stage.input_bytes for stage in stages) or None,
        shuffle_bytes=sum(stage.shuffle_write_bytes for stage in stages),
    )


def _native(job: Job, number: int) -> CompleteExecution:
    """The statements of the database itself. There is no set-up that could be distinguished."""
    system, reference = job.system, job.reference
    if system.native is None or system.target is None:
        raise AssertionError("a system without a native job has no such cell")
    system.native.do_empty(system.target)
    first_s, second_s = system.native.do_jobs(system.target, reference.word)
    counts = system.native.read_counts(system.target, reference.word)
    word = WordRecord(
        word=reference.word.text,
        jobs=(JobRecord(name="job 1", duration_s=first_s), JobRecord(name="job 2", duration_s=second_s)),
        pairs=len(counts),
        occurrences=sum(counts.values()),
        equal=counts == reference.counts,
    )
    return CompleteExecution(
        execution=number,
        system=system.name,
        workers=None,
        nodes=system.nodes,
        total_s=first_s + second_s,
        setup_s=0.0,
        words=[word],
    )
