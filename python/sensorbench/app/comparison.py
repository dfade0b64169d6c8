"""Comparisons: run and reported, and what is wrong with their results."""

from pathlib import Path
from typing import Any

from sensorbench.app.run import run_and_report
from sensorbench.benchmarks.comparison.run import ComparisonBenchmark, plan_comparison
from sensorbench.errors import FailedError
from sensorbench.experiment import Comparison
from sensorbench.progress import Teller
from sensorbench.results import read_comparison, write_summary
from sensorbench.study import summarise


def run_comparison_and_report(
    comparison: Comparison,
    folder: Path,
    progress: Teller,
    *,
    resume: bool = False,
    replace: bool = False,
    drop_after: bool = False,
) -> tuple[dict[str, Any], Path]:
    """Runs a comparison and writes its report, also of one that was cut short.

    Returns:
        The summary and the page.

    Raises:
        UsageError: before anything is written.
        InterruptedRunError, FailedError, DiskFullError: after results and report are on disk.

    """
    plan = plan_comparison(comparison, folder, resume=resume, replace=replace, drop_after=drop_after)
    return run_and_report(ComparisonBenchmark(), plan, folder, progress, write_comparison_report, resume=resume)


def write_comparison_report(folder: Path) -> tuple[dict[str, Any], Path]:
    """Summarises a comparison on disk and writes its page."""
    # The chart library takes most of a second to import, which commands that draw nothing should not wait for.
    from sensorbench.report.build import write_report

    result = read_comparison(folder)
    summary = summarise(result)
    write_summary(folder, summary)
    return summary, write_report(result, summary)


def fail_if_wrong(summary: dict[str, Any]) -> None:
    """Raises FailedError when something that must be right was not."""
    if summary["answers_equal"] is False:
        excluded = [ranking["operation"] for ranking in summary["rankings"] if ranking["excluded"]]
        raise FailedError(f"the databases did not give equal answers; not ranked: {', '.join(excluded)}")
    silent = [
        figure
        for figure in summary["figures"]
        if figure["runs"] and not figure["counts"]["ok"] and sum(figure["counts"].values())
    ]
    # A study says of each setting what failed; where others answered, that is a result.
    if silent and (summary["kind"] != "study" or summary["answers_equal"] is None):
        raise FailedError(
            f"{silent[0]['setting']}: no {silent[0]['operation']} succeeded; {_first_error(summary, silent[0]['setting'])}"
        )


def _first_error(summary: dict[str, Any], setting: str) -> str:
    kinds = summary["honesty"]["settings"][setting]["error_kinds"]
    return kinds[0]["first_message"] if kinds else "see the report"
