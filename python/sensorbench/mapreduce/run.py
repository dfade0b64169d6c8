"""The MapReduce study: load the articles everywhere, then one application after the other, systems and numbers of workers in turn."""

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sensorbench import __version__, lab
from sensorbench.errors import EngineError, FailedError, InterruptedRunError, UsageError, message_of
from sensorbench.experiment import DATA_FOLDER
from sensorbench.experiment.ending import written_down
from sensorbench.experiment.load import check_namespace
from sensorbench.experiment.servers import Servers, servers
from sensorbench.interrupts import count
from sensorbench.lab.spark import Spark
from sensorbench.lifecycle.command import command_line
from sensorbench.mapreduce.systems import System, described, load_files, load_systems, settings_of
from sensorbench.mapreduce.wish import Wish
from sensorbench.mapreduce.words import BLANKS, Reference, chosen_words, reference_of
from sensorbench.places import check_is_free
from sensorbench.progress import Teller
from sensorbench.results.environment import environment
from sensorbench.results.manifest import MapReduceManifest, Process, now
from sensorbench.results.mapreduce import MapReduceResult, MapReduceWriter, read_mapreduce
from sensorbench.results.ownership import Claim, Owner, new_id
from sensorbench.spark.inverted_index import ARTICLES_A_PART, InvertedIndex, JobFigures, tally_jar
from sensorbench.spark.session import Driver, Master, driver, find_master, first_line, lab_master, require_pyspark

SPARK, OWN = "Spark", "own means"
LOG_FILE = "spark-driver.log"


@dataclass(frozen=True)
class Cell:
    """What is executed: the job on Spark with so many workers, or by the database's own means."""

    system: System
    means: str
    workers: int | None

    @property
    def label(self) -> str:
        """What people call it."""
        if self.workers is None:
            return f"{self.system.name}, {self.means}"
        return f"{self.system.name}, {self.workers} worker{'s' if self.workers > 1 else ''}"


def run_mapreduce(wish: Wish, folder: Path, teller: Teller) -> MapReduceResult:
    """Carries the study out into `folder`.

    Raises UsageError before anything is written; FailedError, InterruptedRunError and DiskFullError after what was done until then is on disk.
    """
    require_pyspark()
    check_is_free(folder)
    settings = settings_of(wish.targets, folder)
    master = find_master(wish.spark) if wish.spark else None
    _check_master(wish, master)
    with wish.dataset.connect() as workbench:
        kinds = [("named", word) for word in wish.words] or list(chosen_words(workbench).items())
        references = [reference_of(workbench, kind, word) for kind, word in kinds]
        with servers(settings, teller, pin=False) as started, _cluster(wish, master, teller) as (at, described_spark):
            claim = Claim(Owner.of(new_id(), folder), "replace" if wish.replace else "create")
            for setting in started.at_their_urls(settings):
                check_namespace(setting.engine_target(), claim)
            writer = MapReduceWriter(folder, _manifest(wish, started, described_spark, references, claim.owner, folder))
            with written_down(writer):
                systems, loads = load_systems(settings, wish.dataset, workbench, started, teller, claim)
                if wish.with_files:
                    system, loads[system.name] = load_files((folder / DATA_FOLDER).resolve(), workbench, wish.splits)
                    systems.append(system)
                writer.write_loads(loads)
                _execute_all(wish, systems, references, at, writer, folder / LOG_FILE, teller)
                if wish.drop_after:
                    for system in systems:
                        if system.target is not None:
                            system.target.remove(owner=claim.owner.to_json())
    shutil.rmtree(folder / DATA_FOLDER, ignore_errors=True)
    return read_mapreduce(folder)


def _check_master(wish: Wish, master: Master | None) -> None:
    """Raises UsageError when nobody answers at a user's master, or it has fewer threads than workers are asked for."""
    if master is None:
        return
    master.check_answers()
    if master.threads is not None and master.threads < max(wish.workers) * wish.cores:
        raise UsageError(
            f"--workers {max(wish.workers)}: {master.url} has {master.threads} threads; give it more, or ask for fewer workers"
        )


@contextlib.contextmanager
def _cluster(wish: Wish, master: Master | None, teller: Teller) -> Iterator[tuple[Master, dict[str, Any]]]:
    """The user's master, or one that the lab starts for this work alone; and what results say of it."""
    if master is not None:
        yield master, {"url": master.url, "started": False}
        return
    resources = {"worker.cores": str(wish.cores), "worker.memory": wish.memory}
    with contextlib.ExitStack() as stack:
        with teller.task(f"starting {Spark.name}") as task:
            wanted = lab.Wish(Spark.name, nodes=max(wish.workers), settings=resources, stays=False)
            instance = stack.enter_context(lab.borrowed(wanted))
            task.end(f"{instance.version}, {len(instance.nodes)} workers")
        told = {"version": instance.version, "nodes": len(instance.nodes), "settings": resources, "started": True}
        yield lab_master(instance), told


def _manifest(
    wish: Wish, started: Servers, spark: dict[str, Any], references: Sequence[Reference], owner: Owner, folder: Path
) -> MapReduceManifest:
    dataset = wish.dataset.describe()
    return MapReduceManifest(
        id=owner.id,
        title="MapReduce over articles in databases",
        process=Process.this(),
        created=now(),
        version=__version__,
        command=command_line(),
        workload={
            "cores_a_worker": wish.cores,
            "memory_a_worker": wish.memory,
            "splits": wish.splits,
            "articles_a_part": ARTICLES_A_PART,
        },
        environment={**environment(folder), "servers": started.described(), "spark": spark},
        dataset={
            "name": wish.dataset.name,
            "title": dataset.title,
            "articles": dataset.readings,
            "scale": dataset.scale,
            "generated": dataset.generated,
        },
        systems=described(settings_of(wish.targets, folder), with_files=wish.with_files),
        words=[
            {"kind": one.kind, "word": one.word.text, "occurrences": one.occurrences, "articles": len(one.counts)}
            for one in references
        ],
        workers=list(wish.workers),
        executions=wish.executions,
    )


def _execute_all(
    wish: Wish,
    systems: Sequence[System],
    references: Sequence[Reference],
    master: Master,
    writer: MapReduceWriter,
    log: Path,
    teller: Teller,
) -> None:
    """All executions of all cells in turn, there and back again. A cell that fails has no more turns; when all have failed, so has the work."""
    jars = {system.name: [*system.place.connector.get_jars(), tally_jar()] for system in systems}
    cells = [Cell(system, SPARK, workers) for system in systems for workers in wish.workers]
    cells += [Cell(system, OWN, None) for system in systems if system.own is not None]
    failed: dict[str, str] = {}
    with driver(master, jars=sorted({jar for of_one in jars.values() for jar in of_one}), log=log.resolve()) as spark:
        for number in range(1, wish.executions + 1):
            # Each execution is for the first word; the others follow it once, in the last, so that all of it stays short.
            looked_for = references if number == wish.executions else references[:1]
            for cell in cells if number % 2 else reversed(cells):
                if cell.label in failed:
                    continue
                with teller.task(f"{number}. {cell.label}") as task:
                    execution = _execution(partial(_execute, wish, cell, looked_for, spark, jars), cell, number)
                    writer.write_execution(execution)
                    if execution["failed"]:
                        failed[cell.label] = execution["failed"]
                    task.end(execution["failed"] or f"{execution['total_s']:.1f} s, {execution['setup_s']:.1f} s of it set-up")
    if len(failed) == len(cells):
        raise FailedError(f"every cell failed; {next(iter(failed))}: {next(iter(failed.values()))}")


def _execution(carry_out: Callable[[], dict[str, Any]], cell: Cell, number: int) -> dict[str, Any]:
    """The record of an execution. What goes wrong in a database, a connector or on Spark is a part of it."""
    told = {"execution": number, "system": cell.system.name, "means": cell.means, "workers": cell.workers, "failed": None}
    interruptions = count()
    try:
        return {**told, **carry_out()}
    except (FailedError, EngineError) as error:
        return {**told, "failed": message_of(error)}
    except (KeyboardInterrupt, InterruptedRunError, UsageError, OSError):
        raise
    except Exception as error:
        # What Spark says of an interruption is no failure of the cell.
        if count() > interruptions:
            raise KeyboardInterrupt from error
        if not _is_of_spark(error):
            raise
        return {**told, "failed": first_line(error)}


def _is_of_spark(error: Exception) -> bool:
    return type(error).__module__.partition(".")[0] in {"py4j", "pyspark"}


def _execute(
    wish: Wish, cell: Cell, references: Sequence[Reference], spark: Driver, jars: dict[str, list[Path]]
) -> dict[str, Any]:
    if cell.workers is None:
        return _by_own_means(cell.system, references)
    return _on_spark(wish, cell.system, cell.workers, references, spark, jars[cell.system.name])


def _on_spark(
    wish: Wish, system: System, workers: int, references: Sequence[Reference], spark: Driver, jars: Sequence[Path]
) -> dict[str, Any]:
    """One application: executors, a first task at each of them, then the two jobs for each word. T is that of the first word, from the
    submission on; of the others there is what their jobs take.
    """
    with spark.application(
        f"mapreduce {system.name}",
        executors=workers,
        cores=wish.cores,
        memory=wish.memory,
        jars=jars,
        # Spark's own 200 parts of a shuffle are for far more data.
        settings={**system.place.settings(splits=str(wish.splits)), "spark.sql.shuffle.partitions": str(wish.splits)},
    ) as application:
        begun_s = time.monotonic()
        tasks = workers * wish.cores
        application.session.range(0, tasks, 1, tasks).count()
        launch_s = time.monotonic() - begun_s
        index = InvertedIndex(application.session, system.place, wish.dataset.describe().readings, wish.splits, BLANKS)
        words = [_of_word(index, reference) for reference in references]
        spark.check_none_was_lost(application)
    before_s = application.context_s + application.executors_s + launch_s
    jobs_s = sum(job["duration_s"] for job in words[0]["jobs"])
    executed_s = sum(job["executed_s"] for job in words[0]["jobs"])
    return {
        "context_s": application.context_s,
        "executors_s": application.executors_s,
        "launch_s": launch_s,
        "total_s": before_s + jobs_s,
        "setup_s": before_s + jobs_s - executed_s,
        "words": words,
    }


def _of_word(index: InvertedIndex, reference: Reference) -> dict[str, Any]:
    """Both jobs for a word on empty tables; what they stored is read from the database and compared afterwards."""
    index.empty()
    first = index.first_job(reference.word)
    second = index.second_job(reference.word)
    counts = index.counts()
    return {
        "word": reference.word.text,
        "jobs": [_told(job) for job in (first, second)],
        "pairs": len(counts),
        "occurrences": sum(counts.values()),
        "list_length": second.elements,
        "equal": counts == reference.counts and second.elements == reference.occurrences,
    }


def _told(job: JobFigures) -> dict[str, Any]:
    stages = job.stages.stages
    return {
        "name": job.name,
        "duration_s": job.duration_s,
        "executed_s": job.stages.executed_s,
        "map_tasks": job.stages.map_tasks,
        "tasks": sum(stage.tasks for stage in stages),
        "run_s": sum(stage.run_s for stage in stages),
        "deserialize_s": sum(stage.deserialize_s for stage in stages),
        "read_rows": job.read.rows,
        "read_bytes": job.read.bytes,
        # What Spark counts itself; null where the connector reports nothing.
        "spark_read_rows": sum(stage.input_records for stage in stages) or None,
        "spark_read_bytes": sum(stage.input_bytes for stage in stages) or None,
        "shuffle_bytes": sum(stage.shuffle_write_bytes for stage in stages),
    }


def _by_own_means(system: System, references: Sequence[Reference]) -> dict[str, Any]:
    """The statements of the database itself. There is no set-up that could be told apart."""
    if system.own is None or system.target is None:
        raise AssertionError("a system without means of its own has no such cell")
    words: list[dict[str, Any]] = []
    for reference in references:
        system.own.do_empty(system.target)
        durations = system.own.do_jobs(system.target, reference.word)
        counts = system.own.read_counts(system.target, reference.word)
        words.append(
            {
                "word": reference.word.text,
                "jobs": [{"name": f"job {number}", "duration_s": one} for number, one in enumerate(durations, start=1)],
                "pairs": len(counts),
                "occurrences": sum(counts.values()),
                "equal": counts == reference.counts,
            }
        )
    return {"total_s": sum(job["duration_s"] for job in words[0]["jobs"]), "setup_s": 0.0, "words": words}
