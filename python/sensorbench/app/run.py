"""Running a benchmark, and the report of what was done, however it ended."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from sensorbench.errors import DiskFullError, FailedError, InterruptedRunError
from sensorbench.lifecycle import Benchmark, Plan, run
from sensorbench.progress import ProgressReporter
from sensorbench.results import has_results

Summary = TypeVar("Summary")
# Is given a summary and its page, which is written after that: drawing it takes longer than all else that follows a run.
Show = Callable[[Summary, Path], None]
# Summarises a results folder, has that shown, and writes its page.
WriteReport = Callable[[Path, Show[Summary] | None], tuple[Summary, Path]]


def run_and_report(
    benchmark: Benchmark[Plan, Any, Any],
    plan: Plan,
    folder: Path,
    progress: ProgressReporter,
    write_report: WriteReport[Summary],
    show: Show[Summary] | None = None,
    *,
    resume: bool = False,
) -> tuple[Summary, Path]:
    """Runs a benchmark and writes its report, also of one that was cut short. `show` is for one that was not.

    Returns:
        The summary and the page.

    Raises:
        UsageError: before anything is written.
        InterruptedRunError, FailedError, DiskFullError: after results and report are on disk.

    """
    try:
        run(benchmark, plan, folder, progress, resume=resume)
    except (InterruptedRunError, FailedError):
        report_what_is_there(folder, progress, write_report)
        raise
    return write_report(folder, show)


def report_what_is_there(folder: Path, progress: ProgressReporter, write_report: WriteReport[Any]) -> None:
    """Writes the report of a benchmark that was cut short. That it cannot be written must not hide why the benchmark was cut short."""
    if not has_results(folder):
        return
    try:
        _, page = write_report(folder, None)
        progress.say(f"results so far: {page}")
    except (DiskFullError, OSError) as error:
        progress.warn(f"no report could be written: {error}; `sensorbench report {folder}` writes it later")
