"""What the executions say: times against workers, speed-up, share of set-up, splits and bytes, and whether all results were equal."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

import numpy as np

from sensorbench.analysis.intervals import mean_over_runs
from sensorbench.results.mapreduce import CompleteExecution, JobRecord, MapReduceResult
from sensorbench.results.summary.envelope import envelope, fields_of_plan
from sensorbench.results.summary.mapreduce import (
    ExecutionTime,
    Gap,
    JobFigures,
    MapReduceFigures,
    MapReduceSummary,
    MeanTime,
    SetupParts,
    SpeedUp,
    WordFigures,
)
from sensorbench.wording import counted

# The first execution of each cell finds nothing warm: neither the driver's classes nor the database's caches.
FIRST = 1
NATIVE = "native job"


def summarise_mapreduce(result: MapReduceResult) -> MapReduceSummary:
    """The summary of a study, without its claims. Means leave out the first execution of each cell where there are others."""
    manifest, done = result.manifest, result.complete
    jobs = [_job(result, *place) for place in _places(done)]
    return MapReduceSummary(
        **envelope(manifest),
        answers_equal=all(word.equal for execution in done for word in execution.words) if done else None,
        warnings=[],
        result=MapReduceFigures(
            **fields_of_plan(manifest.plan, MapReduceFigures, but_not=["executions"]),
            repetitions=manifest.plan.executions,
            loads=result.loads,
            cells=jobs,
            speed_ups=_speed_ups(jobs),
            gaps=_gaps(result),
            placements=result.placements,
            executions=result.executions,
        ),
    )


def _places(executions: Sequence[CompleteExecution]) -> list[tuple[str, int | None]]:
    """Each system and its workers, in the order in which they came."""
    return list(dict.fromkeys((execution.system, execution.workers) for execution in executions))


def _counted(executions: Sequence[CompleteExecution]) -> list[CompleteExecution]:
    """Those that are not a warm-up: all but the first, unless there is no other."""
    return [execution for execution in executions if execution.execution != FIRST] or list(executions)


def _job(result: MapReduceResult, system: str, workers: int | None) -> JobFigures:
    """The figures of a cell. Its T is that of the first word that was looked for."""
    of_cell = [execution for execution in result.complete if (execution.system, execution.workers) == (system, workers)]
    names = [word.word for word in result.manifest.plan.words]
    by_word = {name: [execution for execution in of_cell if execution.words[0].word == name] for name in names}
    of_job = next(executions for executions in by_word.values() if executions)
    those = _counted(of_job)
    total, setup_s = _total(those), _setup_s(those)
    return JobFigures(
        system=system,
        workers=workers,
        nodes=of_cell[-1].nodes,
        total=total,
        times=_times(of_job),
        setup_s=setup_s,
        setup_share=None if setup_s is None else setup_s / total.value,
        setup_parts=None if setup_s is None else _setup_parts(those, setup_s),
        words=[word for name in names if (word := _word(of_cell, by_word[name], name)) is not None],
        equal=all(word.equal for execution in of_cell for word in execution.words),
    )


def _total(executions: Sequence[CompleteExecution]) -> MeanTime:
    return MeanTime(**asdict(mean_over_runs(np.array([execution.total_s for execution in executions]))))


def _setup_s(executions: Sequence[CompleteExecution]) -> float | None:
    """None of native jobs, which have none that could be distinguished."""
    return None if executions[0].workers is None else float(np.mean([execution.setup_s for execution in executions]))


def _times(executions: Sequence[CompleteExecution]) -> list[ExecutionTime]:
    return [
        ExecutionTime(execution=execution.execution, total_s=execution.total_s, first=execution.execution == FIRST)
        for execution in executions
    ]


def _setup_parts(executions: Sequence[CompleteExecution], setup_s: float) -> SetupParts:
    """What the set-up consists of: what is distinguished, and of the jobs what no stage was executed in."""
    context_s, executors_s, launch_s = (
        float(np.mean(part))
        for part in zip(
            *((execution.context_s or 0.0, execution.executors_s or 0.0, execution.launch_s or 0.0) for execution in executions),
            strict=True,
        )
    )
    jobs_s = setup_s - (context_s + executors_s + launch_s)
    return SetupParts(context_s=context_s, executors_s=executors_s, launch_s=launch_s, jobs_s=jobs_s)


def _word(of_cell: Sequence[CompleteExecution], own: Sequence[CompleteExecution], name: str) -> WordFigures | None:
    """The figures of a word; None if no execution has come to it.

    Args:
        of_cell: all executions of the cell.
        own: those whose application was for this word from its start.
        name: the word.

    """
    where = _counted([execution for execution in of_cell if any(word.word == name for word in execution.words)])
    records = [word for execution in where for word in execution.words if word.word == name]
    if not records:
        return None
    last, complete = records[-1], _counted(own)
    first_job, second_job = (
        _with_mean(job, [record.jobs[place].duration_s for record in records]) for place, job in enumerate(last.jobs)
    )
    return WordFigures(
        word=name,
        total=_total(complete) if complete else None,
        times=_times(own),
        setup_s=_setup_s(complete) if complete else None,
        executions=len(records),
        jobs_s=float(np.mean([sum(job.duration_s for job in record.jobs) for record in records])),
        jobs=(first_job, second_job),
        pairs=last.pairs,
        occurrences=last.occurrences,
        list_length=last.list_length,
        equal=all(record.equal for record in records),
    )


def _with_mean(job: JobRecord, durations_s: Sequence[float]) -> JobRecord:
    return job.model_copy(update={"duration_s": float(np.mean(durations_s))})


def _speed_ups(jobs: Sequence[JobFigures]) -> list[SpeedUp]:
    """Of each system and word: T with the fewest workers over T with more, beside what is linear; of what no stage was executed in taken off, too."""
    found: list[SpeedUp] = []
    for system in dict.fromkeys(job.system for job in jobs):
        of_system = {job.workers: job for job in jobs if job.system == system and job.workers is not None}
        for name in dict.fromkeys(word.word for job in of_system.values() for word in job.words):
            by_workers = {workers: word for workers, job in of_system.items() for word in job.words if word.word == name}
            found += _of_word(system, name, {workers: word for workers, word in sorted(by_workers.items()) if word.total})
    return found


def _of_word(system: str, name: str, by_workers: Mapping[int, WordFigures]) -> list[SpeedUp]:
    totals = {workers: word.total.value for workers, word in by_workers.items() if word.total}
    works = {workers: totals[workers] - (word.setup_s or 0.0) for workers, word in by_workers.items()}
    fewest, *others = totals or [0]
    return [
        SpeedUp(
            system=system,
            word=name,
            from_workers=fewest,
            workers=workers,
            speed_up=totals[fewest] / totals[workers],
            speed_up_without_setup=works[fewest] / works[workers] if works[workers] > 0.0 else None,
            linear=workers / fewest,
        )
        for workers in others
    ]


def _gaps(result: MapReduceResult) -> list[Gap]:
    """What is not available: what failed, by its own words, and databases without a native job."""
    failed = {(execution.system, execution.workers): execution.failed for execution in result.failed}
    gaps = [
        Gap(system=system, what=NATIVE if workers is None else f"Spark, {counted(workers, 'worker')}", why=why)
        for (system, workers), why in failed.items()
    ]
    without = [name for name, system in result.manifest.plan.systems.items() if system.native_job is None]
    return [*gaps, *(Gap(system=name, what=NATIVE, why="it cannot do the job by itself") for name in without)]
