"""Changes of several clusters, one work after the other, and what they say together."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sensorbench import lab
from sensorbench.app import reports
from sensorbench.app.run import Show, run_and_report
from sensorbench.benchmarks.elasticity import ElasticityBenchmark, ElasticitySpec, ElasticityStudyOptions, planned
from sensorbench.dataset import open_dataset
from sensorbench.errors import DiskFullError, FailedError, InterruptedRunError, UsageError
from sensorbench.paths import check_is_free, remove_results
from sensorbench.progress import ProgressReporter
from sensorbench.results.elasticity import ElasticityStudyPlan, is_complete, read_study_plan, write_study_plan
from sensorbench.results.summary.elasticity import ElasticitySummary
from sensorbench.studies.elasticity import Deadline, StudyFile, StudyPart, notes_of, parts_of, without_unavailable


@dataclass(frozen=True)
class ClusterWork:
    """What is done to one cluster, and the name of its folder in that of all."""

    name: str
    spec: Callable[[], ElasticitySpec]


def works_in_order(targets: Sequence[str], repetitions: int, spec: Callable[[str, int], ElasticitySpec]) -> list[ClusterWork]:
    """What is done to each target this many times: A B, B A, so that none is always the first. Raises UsageError for what is wrong with any."""
    works: list[ClusterWork] = []
    for number in range(repetitions):
        turn = [spec(text, number) for text in targets]
        labels = [elasticity_spec.target.label for elasticity_spec in turn]
        names = [label if labels.count(label) == 1 else f"{label}-{place + 1}" for place, label in enumerate(labels)]
        of_turn = [
            ClusterWork(f"{name}-{number + 1}", partial(spec, text, number)) for name, text in zip(names, targets, strict=True)
        ]
        works += of_turn if number % 2 == 0 else of_turn[::-1]
    return works


def run_cluster(
    spec: ElasticitySpec, folder: Path, reporter: ProgressReporter, show: Show[ElasticitySummary] | None = None
) -> tuple[ElasticitySummary, Path]:
    """Carries out what is done to one cluster, and writes its report. Raises what `lifecycle.run` does."""
    return run_and_report(ElasticityBenchmark(), planned(spec, folder), folder, reporter, reports.ELASTICITY.write, show)


def run_works(
    works: Sequence[ClusterWork],
    folder: Path,
    reporter: ProgressReporter,
    *,
    deadline: Deadline | None = None,
    continue_on_error: bool = False,
) -> None:
    """Carries out all works that are not complete in a folder; where that is cut short, what is complete is compared.

    Args:
        works: in their order.
        folder: of all of them.
        reporter: reports progress.
        deadline: before which the last of them is to end; those that do not fit are left.
        continue_on_error: whether the others are carried out where one fails; then it is said at the end.

    Raises:
        UsageError: before anything is done.
        InterruptedRunError, FailedError: after what was done until then is on disk.

    """
    failed: FailedError | None = None
    try:
        for number, work in enumerate(works, start=1):
            of_work = folder / work.name
            if is_complete(of_work):
                continue
            if deadline is not None and not deadline.has_room(work.name):
                reporter.say(f"the budget is used up; --resume continues with {work.name}, {number} of {len(works)}")
                break
            reporter.say(f"{work.name}, {number} of {len(works)}")
            # What was begun there and not ended is done again.
            remove_results(of_work)
            begun_s = time.monotonic()
            try:
                run_cluster(work.spec(), of_work, reporter)
            except FailedError as error:
                if not continue_on_error or isinstance(error, DiskFullError):
                    raise
                failed = failed or error
                reporter.warn(f"{work.name}: {error}; the study continues with the next part")
                continue
            if deadline is not None:
                deadline.note(work.name, time.monotonic() - begun_s)
        if failed is not None:
            raise failed
    except (InterruptedRunError, FailedError):
        _compare_what_is_there(works, folder, reporter)
        raise


def run_study(
    file: StudyFile,
    options: ElasticityStudyOptions,
    folder: Path,
    reporter: ProgressReporter,
    *,
    deadline: Deadline | None,
    resume: bool,
    replace: bool,
    drop_after: bool,
) -> None:
    """Carries out the parts of the study, or continues with them, until all are complete or a budget is over.

    Raises:
        UsageError: before anything is done.
        InterruptedRunError, FailedError: after what was done until then is on disk.

    """
    parts, unavailable = without_unavailable(parts_of(file, options))
    for text, reason in unavailable.items():
        reporter.warn(f"{text} is left out, because it is not available on this machine: {reason}")
    plan = _plan_of(options, parts)
    if resume:
        _check_same(plan, read_study_plan(folder), folder)
    else:
        check_is_free(folder, ", or continue with --resume")
    of_all = parts[0].options
    articles = open_dataset(of_all.dataset, scale=of_all.scale, reporter=reporter)
    works = [ClusterWork(part.name, partial(part.spec, articles, replaces=replace, drop_after=drop_after)) for part in parts]
    # Whatever is wrong with one of them is said before the first begins.
    for work in works:
        work.spec()
    for note in notes_of(file, parts):
        reporter.say(note)
    if not resume:
        write_study_plan(folder, plan)
    run_works(works, folder, reporter, deadline=deadline, continue_on_error=True)


def as_planned(options: ElasticityStudyOptions, folder: Path) -> ElasticityStudyOptions:
    """The options of a resumed study: as it began, where nothing else is said, but for hosts, whose names do not say how they are reached. Raises
    UsageError where none did.
    """
    plan = read_study_plan(folder)
    if plan is None:
        raise UsageError(
            f"--resume: {folder} holds no parts of this study to continue; leave out --resume to begin, or name another folder with --out"
        )
    begun = plan.model_dump(exclude={"parts", "hosts"})
    begun |= {name: tuple(begun[name]) for name in ("targets", "scenarios")}
    fresh = ElasticityStudyOptions()
    return options.model_copy(
        update={name: value for name, value in begun.items() if getattr(options, name) == getattr(fresh, name)}
    )


def _plan_of(options: ElasticityStudyOptions, parts: Sequence[StudyPart]) -> ElasticityStudyPlan:
    """What is measured, for whoever continues with it."""
    given = options.model_dump(include=set(ElasticityStudyPlan.model_fields))
    found = {"scale": options.used_scale, "hosts": lab.host_names(options.hosts), "parts": [part.name for part in parts]}
    return ElasticityStudyPlan.model_validate({**given, **found})


def _check_same(plan: ElasticityStudyPlan, before: ElasticityStudyPlan | None, folder: Path) -> None:
    """Raises UsageError if parts were begun with another plan: they could not be compared."""
    if before is None or plan == before:
        return
    if plan.hosts != before.hosts:
        begun_on, now_on = (", ".join(hosts) or "this machine alone" for hosts in (before.hosts, plan.hosts))
        raise UsageError(
            f"--resume: {folder} was begun with nodes on {begun_on}, not on {now_on}; give the same --hosts, or another folder with --out"
        )
    new, old = plan.model_dump(exclude={"parts"}), before.model_dump(exclude={"parts"})
    names = [name.replace("_", "-") for name in new if new[name] != old[name]] or ["parts, by another version of the study"]
    raise UsageError(
        f"--resume: {folder} was begun with other {', '.join(names)}; leave them out to continue, or name another folder"
    )


def _compare_what_is_there(works: Sequence[ClusterWork], folder: Path, reporter: ProgressReporter) -> None:
    """Writes the comparison of what is complete. That it cannot be written must not hide why the rest was cut short."""
    folders = [folder / work.name for work in works if is_complete(folder / work.name)]
    if not folders:
        return
    try:
        _, page = reports.write_elasticity_comparison(folders, folder)
        reporter.say(f"comparison so far: {page}")
    except (DiskFullError, OSError) as error:
        reporter.warn(f"no comparison could be written: {error}; `sensorbench report {folder}` writes it later")
