"""Studies that compare databases and schemas: run and reported, one comparison for each dataset or part."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from sensorbench.app.comparison import fail_if_wrong, run_comparison_and_report
from sensorbench.app.reports import SERIES
from sensorbench.errors import DiskFullError, FailedError, UsageError
from sensorbench.lifecycle import check_folder
from sensorbench.paths import check_summary_is_free
from sensorbench.progress import ProgressReporter
from sensorbench.results import has_results
from sensorbench.results.series import SeriesManifest, is_series, write_series
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
    """One comparison after the other; whatever ends them, those that were begun are summed up. Where the study says that it goes on,
    one that fails does not end the others, but the whole has failed.
    """
    of: Literal["datasets", "parts"] = "parts" if study.file.parts else "datasets"
    if resume and not any(has_results(part.folder) for part in parts):
        raise UsageError(f"--resume: {folder} holds no results of these {of} to go on with; name the folder with --out")
    if resume and not is_series(folder):
        check_summary_is_free(folder, "series")
    failed = []
    try:
        for part in parts:
            # Those that were not begun yet begin now.
            is_begun = resume and has_results(part.folder)
            try:
                _run_part(part, progress, show_part, resume=is_begun, replace=replace, drop_after=drop_after)
            except DiskFullError:
                raise
            except FailedError as error:
                if not study.file.continue_on_error:
                    raise
                failed.append(part.name)
                progress.warn(f"{part.name} failed: {error}")
    finally:
        if any(has_results(part.folder) for part in parts):
            folders = {part.name: str(part.folder.relative_to(folder)) for part in parts}
            write_series(folder, SeriesManifest(name=study.name, title=study.file.title, of=of, parts=folders))
            summary, page = SERIES.write(folder)
            show(summary, page)
            progress.say(f"all {of}: {page}")
    if failed:
        raise FailedError(
            f"{', '.join(failed)} failed; what each failed of is said above. --resume --out {folder} goes on with it"
        )
