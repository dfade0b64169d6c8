"""The doctor: the examination of this machine, and an A/A run of an experiment."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sensorbench.analysis.verdicts import compare as compare_samples
from sensorbench.app.comparison import run_comparison_and_report
from sensorbench.benchmarks.comparison import sample_of
from sensorbench.benchmarks.doctor import Diagnosis, Noise, OperationNoise, check_noise, diagnosis_of, examine
from sensorbench.errors import UsageError
from sensorbench.paths import check_is_free
from sensorbench.progress import ProgressReporter
from sensorbench.results import ComparisonResult, RunResult, read_comparison
from sensorbench.runner import DATA_FOLDER, Comparison, VariantSpec, make_variants, plan_experiment


def diagnose(
    folder: Path,
    reporter: ProgressReporter,
    *,
    quick: bool,
    experiment: Path | None = None,
    changes: Sequence[str] = (),
    margin: float,
) -> Diagnosis:
    """Examines this machine, with the noise of an A/A run if there is an experiment.

    Args:
        folder: for the results of the A/A run; where the free disk is looked at.
        reporter: reports what is measured.
        quick: measure about a tenth as long.
        experiment: an experiment file, whose first target runs against itself.
        changes: keys of that file that are changed, key=value.
        margin: differences inside this share are equivalent.

    Raises:
        UsageError: for an experiment that cannot run against itself, and for a folder that is not empty.

    """
    twins = None if experiment is None else _twins(experiment, changes, folder, reporter)
    if twins is not None:
        # The examination takes minutes: what would be refused after it is refused before.
        check_is_free(folder)
    checks, timers, figures = examine(folder, reporter, quick=quick)
    noise = None if twins is None else _noise(twins, folder, reporter, margin)
    if noise is not None:
        checks = [*checks, check_noise(noise)]
    return diagnosis_of(checks, timers.lag_s, timers.resolution_s, figures, noise, quick=quick)


def _twins(experiment: Path, changes: Sequence[str], folder: Path, reporter: ProgressReporter) -> Comparison:
    """An experiment's first target, twice. Raises UsageError."""
    comparison = plan_experiment(experiment, list(changes), folder, reporter)
    first = comparison.variants[0]
    if first.target.is_url:
        raise UsageError(
            f"the doctor loads the same data twice side by side: name the target of {experiment} by its database alone "
            f"({first.target.label})"
        )
    pair = make_variants([VariantSpec(first.target, first.schema)] * 2, folder / DATA_FOLDER)
    return replace(comparison, variants=pair, name=f"aa-{comparison.name}", title=f"A/A check: {comparison.title}")


def _noise(twins: Comparison, folder: Path, reporter: ProgressReporter, margin: float) -> Noise:
    """Runs two variants that are the same, and compares them."""
    _, page = run_comparison_and_report(twins, folder, reporter)
    result = read_comparison(folder)
    a, b = (variant.id for variant in twins.variants)
    operations = []
    for operation in result.manifest.plan.operations:
        sample_a, sample_b = sample_of(_complete(result, a), operation), sample_of(_complete(result, b), operation)
        if sample_a is not None and sample_b is not None:
            verdict = compare_samples(sample_a, sample_b, twins.metric, margin=margin)
            ratio = verdict.ratio
            operations.append(
                OperationNoise(
                    operation=operation,
                    a_s=sample_a.figure(twins.metric),
                    b_s=sample_b.figure(twins.metric),
                    ratio=ratio.value,
                    low=ratio.low,
                    high=ratio.high,
                    verdict=verdict.word,
                )
            )
    return Noise(
        experiment=twins.name.removeprefix("aa-"),
        operations=operations,
        different=[each.operation for each in operations if each.verdict in {"faster", "slower"}],
        detectable=_detectable(operations),
        report=str(page),
    )


def _complete(result: ComparisonResult, variant: str) -> list[RunResult]:
    return [run for run in result.runs[variant] if run.state == "complete"]


def _detectable(operations: Sequence[OperationNoise]) -> float | None:
    """The widest relative distance of a ratio from the ends of its interval; None if an operation has no interval."""
    ends = [(each.ratio, each.low, each.high) for each in operations]
    distances = [max(high / ratio, ratio / low) - 1.0 for ratio, low, high in ends if low is not None and high is not None]
    return max(distances) if distances and len(distances) == len(ends) else None
