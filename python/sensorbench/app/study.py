"""Studies that compare databases and schemas: run and reported, one comparison for each dataset or part."""

from collections.abc import Callable, Sequence
from dataclasses import replace as with_fields
from pathlib import Path
from typing import Literal

from sensorbench.app.comparison import DRY_PILOT_S, fail_if_wrong, run_comparison_and_report
from sensorbench.app.levels import one_level, run_levels
from sensorbench.app.reports import SERIES
from sensorbench.app.run import Show, run_and_report
from sensorbench.errors import UsageError
from sensorbench.lifecycle import ChildPlan, SeriesBenchmark, SeriesPlan, check_folder
from sensorbench.paths import check_summary_is_free
from sensorbench.progress import ProgressReporter
from sensorbench.results import has_results, kind_of
from sensorbench.results.environment import one_work
from sensorbench.results.estimate import Budget, Estimate, PartEstimate
from sensorbench.results.planned import ComparisonManifest, SeriesManifest
from sensorbench.results.reader import read_manifest
from sensorbench.results.summary.comparison import ComparisonSummary
from sensorbench.results.summary.series import SeriesSummary
from sensorbench.studies import Part, Study, StudyOptions, plan_study, without_refused
from sensorbench.studies.budget import PILOT_SHARE, budget_of, choose, pilot_study, with_budget

# Of a study, whether it has one part or several.
ShowStudy = Show[ComparisonSummary | SeriesSummary]


@one_work()
def run_study(
    study: Study,
    options: StudyOptions,
    folder: Path,
    progress: ProgressReporter,
    show: ShowStudy,
    show_part: ShowStudy,
    show_budget: Callable[[Budget], None],
    *,
    resume: bool = False,
    replace: bool = False,
    drop_after: bool = False,
) -> None:
    """Runs a study and writes its reports. `show` gets what the whole says, also of a series that was cut short, `show_part` what each comparison of a
    series says, both before the page is written; `show_budget` what a budget was turned into, before anything else is done.

    Raises:
        UsageError: before anything is written.
        InterruptedRunError, FailedError, DiskFullError: after results and reports are on disk.

    """
    if study.file.levels is not None:
        run_levels(
            study,
            study.file.levels,
            options,
            folder,
            progress,
            show,
            show_part,
            resume=resume,
            replace=replace,
            drop_after=drop_after,
        )
        return
    if resume and options.scale is None:
        options = _as_before(options, folder)
    is_one = len(options.parts or study.file.parts or options.datasets or study.file.datasets) == 1
    if is_one or not resume:
        check_folder(folder, resume=resume)
    budget_s = None if resume else budget_of(options)
    budget = None
    if budget_s is not None:
        piloted = pilot_study(study, options, folder, PILOT_SHARE * budget_s, progress, touches_users=True, budget_s=budget_s)
        budget = choose(piloted, budget_s)
        show_budget(budget)
    parts = [
        with_fields(
            part,
            comparison=with_fields(without_refused(part.comparison, progress), estimate=_estimate_in(budget, part.name)),
        )
        for part in plan_study(study, with_budget(options, budget) if budget else options, folder, progress)
    ]
    if len(parts) == 1:
        part = with_fields(parts[0], comparison=with_fields(parts[0].comparison, budget=budget or _budget_in(folder)))
        _run_part(part, progress, show, resume=resume, replace=replace, drop_after=drop_after)
    else:
        _run_series(
            study, parts, folder, progress, show, show_part, budget, resume=resume, replace=replace, drop_after=drop_after
        )


def dry_run_study(
    study: Study, options: StudyOptions, folder: Path, progress: ProgressReporter, *, has_pilot: bool = True
) -> Budget | Estimate:
    """What a study would do: what its budget would be turned into, or, at a scale that was given, what it would take. Nothing is written to
    the folder, and no server of a user's is touched.

    Raises UsageError for what makes no sense, and for a budget in which nothing can be done.
    """
    if study.file.levels is not None:
        options = one_level(study, study.file.levels, options)
    budget_s = budget_of(options)
    if budget_s is not None and not has_pilot:
        raise UsageError("--no-pilot: with a budget, the pilot chooses the scale; without a pilot, give --scale")
    allowed_s = DRY_PILOT_S if budget_s is None else PILOT_SHARE * budget_s
    piloted = pilot_study(study, options, folder, allowed_s, progress, measures=has_pilot, budget_s=budget_s)
    return piloted.estimate(options) if budget_s is None else choose(piloted, budget_s)


def _as_before(options: StudyOptions, folder: Path) -> StudyOptions:
    """The options with what a budget was turned into when the results were begun."""
    budget = _budget_in(folder)
    return with_budget(options, budget) if budget else options


def _budget_in(folder: Path) -> Budget | None:
    """The budget of results in a folder, where there are some that have one."""
    match kind_of(folder) if has_results(folder) else None:
        case "comparison":
            return read_manifest(folder, ComparisonManifest).plan.budget
        case "series":
            return read_manifest(folder, SeriesManifest).plan.budget
        case _:
            return None


def _estimate_in(budget: Budget | None, part: str) -> PartEstimate | None:
    """What a pilot found that a part takes; None if there was none."""
    return next((known for known in budget.estimate.parts if known.name == part), None) if budget else None


def _run_part(part: Part, progress: ProgressReporter, show: ShowStudy, *, resume: bool, replace: bool, drop_after: bool) -> None:
    comparison, described = part.comparison, part.comparison.dataset.describe()
    span = f"{described.readings:,} readings, {described.first_time} to {described.last_time}"
    progress.say(f"{comparison.title}: {span}; variants: {len(comparison.variants)}, results go to {part.folder}")
    summary, _ = run_comparison_and_report(
        comparison, part.folder, progress, show, resume=resume, replace=replace, drop_after=drop_after
    )
    fail_if_wrong(summary)


def _run_series(
    study: Study,
    parts: Sequence[Part],
    folder: Path,
    progress: ProgressReporter,
    show: ShowStudy,
    show_part: ShowStudy,
    budget: Budget | None,
    *,
    resume: bool,
    replace: bool,
    drop_after: bool,
) -> None:
    """One comparison after the other; whatever ends them, those that were begun are summed up."""
    of: Literal["datasets", "parts"] = "parts" if study.file.parts else "datasets"
    if resume and not any(has_results(part.folder) for part in parts):
        raise UsageError(
            f"--resume: {folder} holds no results of these {of} to continue; leave out --resume to begin, or name another folder with --out"
        )
    if resume and not has_results(folder):
        check_summary_is_free(folder, "series")

    def child(part: Part) -> ChildPlan:
        def run_part(is_begun: bool) -> str | None:
            _run_part(part, progress, show_part, resume=is_begun, replace=replace, drop_after=drop_after)
            return None

        return ChildPlan(part.name, str(part.folder.relative_to(folder)), run_part)

    def write(folder: Path, _: object) -> tuple[SeriesSummary, Path]:
        # What was cut short is shown, too.
        return SERIES.write(folder, show)

    plan = SeriesPlan(
        study.name,
        study.file.title,
        of,
        [child(part) for part in parts],
        study.file.continue_on_error,
        budget or _budget_in(folder),
    )
    _, page = run_and_report(SeriesBenchmark(), plan, folder, progress, write, resume=resume)
    progress.say(f"all {of}: {page}")
