"""Comparisons: run and reported, and what is wrong with their results."""

from pathlib import Path

from sensorbench.app.reports import COMPARISON
from sensorbench.app.run import Show, run_and_report
from sensorbench.benchmarks.comparison import ComparisonBenchmark, estimate_comparisons, plan_comparison, run_pilot
from sensorbench.errors import FailedError
from sensorbench.progress import ProgressReporter
from sensorbench.results.estimate import Estimate
from sensorbench.results.summary.comparison import ComparisonFigures, ComparisonSummary
from sensorbench.runner import Comparison, ExperimentOptions, load_experiment, plan_experiment


def run_comparison_and_report(
    comparison: Comparison,
    folder: Path,
    progress: ProgressReporter,
    show: Show[ComparisonSummary] | None = None,
    *,
    resume: bool = False,
    replace: bool = False,
    drop_after: bool = False,
) -> tuple[ComparisonSummary, Path]:
    """Runs a comparison and writes its report, also of one that was cut short. `show` is for one that was not.

    Returns:
        The summary and the page.

    Raises:
        UsageError: before anything is written.
        InterruptedRunError, FailedError, DiskFullError: after results and report are on disk.

    """
    plan = plan_comparison(comparison, folder, resume=resume, replace=replace, drop_after=drop_after)
    return run_and_report(ComparisonBenchmark(), plan, folder, progress, COMPARISON.write, show, resume=resume)


# A pilot whose result is only printed may take about this long.
DRY_PILOT_S = 60.0


def dry_run_experiment(
    path: Path, options: ExperimentOptions, folder: Path, progress: ProgressReporter, *, has_pilot: bool = True
) -> Estimate:
    """What an experiment would do and take. Nothing is written to the folder, and no server of a user's is touched.

    Raises UsageError for what makes no sense.
    """
    quiet, changes = ProgressReporter(quiet=True), list(options.changes)
    scale = load_experiment(path, changes).scale
    found: dict[str, Comparison] = {}

    def comparisons_at(at: float, below: Path) -> dict[str, Comparison]:
        comparison = plan_experiment(
            path, [*changes, f"scale={at!r}"], below, quiet, options.sweeps, blocks=options, generators=options
        )
        found[""] = comparison
        return {"": comparison}

    pilot = run_pilot(comparisons_at, scale, DRY_PILOT_S, progress, measures=has_pilot)
    variants = {name: comparison.variants for name, comparison in found.items()}
    workloads = {name: comparison.workload for name, comparison in found.items()}
    return estimate_comparisons(
        pilot,
        variants,
        workloads,
        scale,
        folder,
        title=found[""].title,
        is_measured=has_pilot,
        blocks=found[""].blocks,
    )


def fail_if_wrong(summary: ComparisonSummary) -> None:
    """Raises FailedError when something that must be right was not."""
    result = summary.result
    if summary.answers_equal is False:
        raise FailedError(f"the databases did not give equal answers; {what_was_wrong(result)}")
    silent = [figure for figure in result.figures if figure.runs and not figure.counts.ok and figure.counts.ended]
    # A study says of each variant what failed; where others answered, that is a result.
    if silent and (result.source != "study" or summary.answers_equal is None):
        kinds = result.client_health[silent[0].variant].error_kinds
        error = kinds[0].first_message if kinds else "see the report"
        raise FailedError(f"{silent[0].variant}: no {silent[0].operation} succeeded; {error}")


def what_was_wrong(result: ComparisonFigures) -> str:
    """The operations that are not ranked; where all are, the first answer after the runs that was wrong."""
    if excluded := [ranking.operation for ranking in result.rankings if ranking.excluded]:
        return f"not ranked: {', '.join(excluded)}"
    wrong = (
        f"{variant}, {problem.operation} {problem.parameters}: {problem.problem}"
        for variant, checks in result.contents.items()
        for problem in checks.problems
    )
    return next(wrong, "see the report")
