"""What the executions say: times against workers, speed-up, share of set-up, splits and bytes, and whether all results were equal."""

from collections.abc import Sequence
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
            executions=result.executions,
        ),
    )


def _places(executions: Sequence[CompleteExecution]) -> list[tuple[str, int | None]]:
    """Each system and its workers, in the order in which they came."""
    return list(dict.fromkeys((execution.system, execution.workers) for execution in executions))


def _counted(executions: Sequence[CompleteExecution]) -> list[CompleteExecution]:
    """Those that are no warm-up: all but the first, unless there is no other."""
    return [execution for execution in executions if execution.execution != FIRST] or list(executions)


def _job(result: MapReduceResult, system: str, workers: int | None) -> JobFigures:
    """The figures of a cell; of its first word T, of the others the time of their jobs alone."""
    of_job = [execution for execution in result.complete if (execution.system, execution.workers) == (system, workers)]
    those = _counted(of_job)
    total = mean_over_runs(np.array([execution.total_s for execution in those]))
    setup_s = float(np.mean([execution.setup_s for execution in those])) if workers is not None else None
    return JobFigures(
        system=system,
        workers=workers,
        total=MeanTime(**asdict(total)),
        times=[
            ExecutionTime(execution=execution.execution, total_s=execution.total_s, first=execution.execution == FIRST)
            for execution in of_job
        ],
        setup_s=setup_s,
        setup_share=None if setup_s is None else setup_s / total.value,
        setup_parts=None if setup_s is None else _setup_parts(those, setup_s),
        words=[word for number in range(len(result.manifest.plan.words)) if (word := _word(those, number)) is not None],
        equal=all(word.equal for execution in of_job for word in execution.words),
    )


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


def _word(executions: Sequence[CompleteExecution], number: int) -> WordFigures | None:
    """The figures of a word; None where no execution has come to it, as all but the first are looked for in the last one alone."""
    of_word = [execution.words[number] for execution in executions if len(execution.words) > number]
    if not of_word:
        return None
    last = of_word[-1]
    first_job, second_job = (
        _with_mean(job, [record.jobs[place].duration_s for record in of_word]) for place, job in enumerate(last.jobs)
    )
    return WordFigures(
        word=last.word,
        executions=len(of_word),
        jobs_s=float(np.mean([sum(job.duration_s for job in record.jobs) for record in of_word])),
        jobs=(first_job, second_job),
        pairs=last.pairs,
        occurrences=last.occurrences,
        list_length=last.list_length,
        equal=all(record.equal for record in of_word),
    )


def _with_mean(job: JobRecord, durations_s: Sequence[float]) -> JobRecord:
    return job.model_copy(update={"duration_s": float(np.mean(durations_s))})


def _speed_ups(jobs: Sequence[JobFigures]) -> list[SpeedUp]:
    """T with the fewest workers over T with more, beside what is linear; of what no stage was executed in taken off, too."""
    found = []
    for system in dict.fromkeys(job.system for job in jobs):
        by_workers = {job.workers: job for job in jobs if job.system == system and job.workers is not None}
        counts = sorted(by_workers)
        for workers in counts[1:]:
            fewest, job_figures, other = counts[0], by_workers[counts[0]], by_workers[workers]
            found.append(
                SpeedUp(
                    system=system,
                    from_workers=fewest,
                    workers=workers,
                    speed_up=job_figures.total.value / other.total.value,
                    speed_up_without_setup=_work_s(job_figures) / _work_s(other) if _work_s(other) > 0.0 else None,
                    linear=workers / fewest,
                )
            )
    return found


def _work_s(job: JobFigures) -> float:
    return job.total.value - (job.setup_s or 0.0)


def _gaps(result: MapReduceResult) -> list[Gap]:
    """What is not available: what failed, by its own words, and databases without a native job."""
    failed = {(execution.system, execution.workers): execution.failed for execution in result.failed}
    gaps = [
        Gap(system=system, what=NATIVE if workers is None else f"Spark, {workers} workers", why=why)
        for (system, workers), why in failed.items()
    ]
    without = [name for name, system in result.manifest.plan.systems.items() if system.native_job is None]
    return [*gaps, *(Gap(system=name, what=NATIVE, why="it cannot do the job by itself") for name in without)]
