"""Studies that compare databases and schemas: run and reported, one comparison for each dataset or part."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from sensorbench.app.comparison import fail_if_wrong, run_comparison_and_report
from sensorbench.app.reports import SERIES
from sensorbench.app.run import run_and_report
from sensorbench.errors import UsageError
from sensorbench.lifecycle import ChildPlan, SeriesBenchmark, SeriesPlan, check_folder
from sensorbench.paths import check_summary_is_free
from sensorbench.progress import ProgressReporter
from sensorbench.results import has_results
from sensorbench.results.summary.comparison import ComparisonSummary, SeriesSummary
from sensorbench.studies import Part, Study, StudyOptions, plan_study

# Is given a summary and its page.
Show = Callable[[ComparisonSummary | SeriesSummary, Path], None]


def run_study(
    study: Study,
    options: StudyOptions,
    folder: Path,
    progress: ProgressReporter,
    show: Show,
    show_part: Show,
    *,
    resume: bool = False,
    replace: bool = False,
    drop_after: bool = False,
) -> None:
    """Runs a study and writes its reports. `show` gets what the whole says, also of a series that was cut short, `show_part` what each comparison of a
    series says.

    Raises:
        UsageError: before anything is written.
        InterruptedRunError, FailedError, DiskFullError: after results and reports are on disk.

    """
    is_one = len(options.parts or study.file.parts or options.datasets or study.file.datasets) == 1
    if is_one or not resume:
        check_folder(folder, resume=resume)
    parts = plan_study(study, options, folder, progress)
    if len(parts) == 1:
        _run_part(parts[0], progress, show, resume=resume, replace=replace, drop_after=drop_after)
    else:
        _run_series(study, parts, folder, progress, show, show_part, resume=resume, replace=replace, drop_after=drop_after)


def _run_part(part: Part, progress: ProgressReporter, show: Show, *, resume: bool, replace: bool, drop_after: bool) -> None:
    comparison, described = part.comparison, part.comparison.dataset.describe()
    span = f"{described.readings:,} readings, {described.first_time} to {described.last_time}"
    progress.say(f"{comparison.title}: {span}; variants: {len(comparison.variants)}, results go to {part.folder}")
    summary, page = run_comparison_and_report(
        comparison, part.folder, progress, resume=resume, replace=replace, drop_after=drop_after
    )
    show(summary, page)
    fail_if_wrong(summary)


def _run_series(
    study: Study,
    parts: Sequence[Part],
    folder: Path,
    progress: ProgressReporter,
    show: Show,
    show_part: Show,
    *,
    resume: bool,
    replace: bool,
    drop_after: bool,
) -> None:
    """One comparison after the other; whatever ends them, those that were begun are summed up."""
    of: Literal["datasets", "parts"] = "parts" if study.file.parts else "datasets"
    if resume and not any(has_results(part.folder) for part in parts):
        raise UsageError(f"--resume: {folder} holds no results of these {of} to go on with; name the folder with --out")
    if resume and not has_results(folder):
        check_summary_is_free(folder, "series")

    def child(part: Part) -> ChildPlan:
        def run_part(is_begun: bool) -> None:
            _run_part(part, progress, show_part, resume=is_begun, replace=replace, drop_after=drop_after)

        return ChildPlan(part.name, str(part.folder.relative_to(folder)), run_part)

    def write(folder: Path) -> tuple[SeriesSummary, Path]:
        summary, page = SERIES.write(folder)
        show(summary, page)
        return summary, page

    plan = SeriesPlan(study.name, study.file.title, of, [child(part) for part in parts], study.file.continue_on_error)
    _, page = run_and_report(SeriesBenchmark(), plan, folder, progress, write, resume=resume)
    progress.say(f"all {of}: {page}")
