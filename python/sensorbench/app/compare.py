"""Results against results: which of two is faster at each operation, by how much, with which confidence interval."""

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace as changed
from pathlib import Path

from sensorbench.analysis.sample import METRICS, Sample
from sensorbench.analysis.verdicts import EQUIVALENCE_MARGIN, Verdict
from sensorbench.analysis.verdicts import compare as compare_samples
from sensorbench.benchmarks.comparison import CHANGES_NO_OPERATION, sample_of, unit_of, workload_of
from sensorbench.errors import UsageError
from sensorbench.results import ComparisonResult, RunResult, read_comparison


@dataclass(frozen=True)
class Side:
    """Results that are compared, or one variant of them, and what whoever named them calls them."""

    name: str
    result: ComparisonResult
    variant: str | None = None


@dataclass(frozen=True)
class ComparedOperation:
    """One operation at two variants, and which of them is faster.

    Attributes:
        a: id of the variant that is compared.
        b: id of the variant that it is compared with.
        operation: name of the operation.
        metric: the figure of the response times that is compared.
        a_s: the figure of `a`, in s.
        b_s: the figure of `b`, in s.
        verdict: what `a` is: faster, slower, equivalent, or not known to be any of these; None if results of different
            datasets or workloads were compared all the same.
        ratio: `a_s / b_s`; below 1, `a` is faster.
        low: lower end of the ratio's confidence interval; None if there is none.
        high: upper end of the ratio's confidence interval; None if there is none.
        confidence: of the interval, 0.95 for 95%.
        reason: why that is the verdict; None if there is none.

    """

    a: str
    b: str
    operation: str
    metric: str
    a_s: float
    b_s: float
    verdict: str | None
    ratio: float
    low: float | None
    high: float | None
    confidence: float
    reason: str | None


@dataclass(frozen=True)
class ComparedResults:
    """Two results, operation by operation, and what else differs between them."""

    metric: str
    operations: Sequence[ComparedOperation]
    differences: Sequence[str]


def side_at(place: str) -> Side:
    """Results by their folder, or one variant of them by FOLDER:VARIANT. Raises UsageError, DamagedResultsError."""
    folder, colon, variant = place.rpartition(":")
    if colon and not Path(place).exists():
        result = read_comparison(Path(folder))
        if variant not in result.runs:
            raise UsageError(f"{folder} has no variant {variant!r}; expected one of {', '.join(result.runs)}")
        return Side(place, result, variant)
    return Side(place, read_comparison(Path(place)))


def compare_results(
    a: Side, b: Side, *, metric: str | None = None, margin: float = EQUIVALENCE_MARGIN, force: bool = False
) -> ComparedResults:
    """Compares two results of one dataset and workload.

    Args:
        a: what is compared.
        b: what it is compared with.
        metric: one of METRICS; that of `a` if None.
        margin: ratios within this share of 1 are equivalent.
        force: whether results of different datasets or workloads are shown side by side, without verdicts.

    Raises:
        UsageError: for results that cannot be compared, and those that have no operation in common.
        DamagedResultsError: for a file of results that is damaged.

    """
    metric = metric_of(metric, a.result)
    obstacles = _obstacles(a.result, b.result)
    if obstacles and not force:
        raise UsageError(
            f"{a.name} and {b.name} cannot be compared: {'; '.join(obstacles)}. Compare results of one dataset and one workload, "
            "or see the figures without verdicts with --force"
        )
    # Variants of one comparison were interleaved; two comparisons were made at different times.
    paired = a.result.folder.resolve() == b.result.folder.resolve()
    found = []
    for variant_a, variant_b in _pairs(a, b):
        runs_a, runs_b = complete_runs(a.result, variant_a), complete_runs(b.result, variant_b)
        for operation in a.result.manifest.plan.operations:
            if operation not in b.result.manifest.plan.operations:
                continue
            sample_a = sample_of(runs_a, operation, unit_of(a.result))
            # Of a variant compared with itself, both sides are one sample: no noise lies between them.
            is_same = paired and variant_a == variant_b
            sample_b = sample_a if is_same else sample_of(runs_b, operation, unit_of(b.result))
            if sample_a is None or sample_b is None:
                continue
            verdict = compare_samples(sample_a, sample_b, metric, paired=paired, margin=margin)
            found.append(_compared(variant_a, variant_b, operation, metric, verdict, sample_a, sample_b))
    if not found:
        raise UsageError(f"{a.name} and {b.name} have no operation in common that was measured in both")
    if obstacles:
        found = [changed(operation, verdict=None, reason=None) for operation in found]
    differences = [*obstacles, *_differences(a.result, b.result), *_left_out(a.result), *_left_out(b.result)]
    return ComparedResults(metric, found, differences)


def _obstacles(a: ComparisonResult, b: ComparisonResult) -> list[str]:
    """What differs so that no verdict follows from figures: other rows, or other operations."""
    found = []
    of_a, of_b = a.manifest.plan.dataset, b.manifest.plan.dataset
    if of_a.get("fingerprint") != of_b.get("fingerprint"):
        found.append(
            f"the datasets differ: {of_a['title']} (scale {of_a['scale']}) and {of_b['title']} (scale {of_b['scale']}), of other rows"
        )
    if of_a.get("operations") != of_b.get("operations"):
        found.append(f"the operation sets differ: {of_a.get('operations')} and {of_b.get('operations')}")
    if keys := _workload_differences(a, b) - CHANGES_NO_OPERATION:
        found.append(f"the workloads differ in {', '.join(sorted(keys))}")
    return found


def _workload_differences(a: ComparisonResult, b: ComparisonResult) -> set[str]:
    """The keys in which the workloads differ."""
    of_a, of_b = (workload_of(result.manifest) for result in (a, b))
    return {key for key in of_a.keys() | of_b.keys() if of_a.get(key) != of_b.get(key)}


def _left_out(result: ComparisonResult) -> list[str]:
    """Runs that count for nothing because their manifest is damaged."""
    lost = (error for errors in result.left_out.values() for error in errors)
    return [f"{error.path}: {error.problem}; this run is left out" for error in lost]


def metric_of(metric: str | None, result: ComparisonResult) -> str:
    """The figure that is compared: the one that was named, else that of the results. Raises UsageError for an unknown one."""
    if metric is not None and metric not in METRICS:
        raise UsageError(f"--metric {metric}: expected one of {', '.join(METRICS)}")
    return metric or result.manifest.plan.metric


def _pairs(a: Side, b: Side) -> list[tuple[str, str]]:
    """Variants that are compared: the chosen ones, those of equal names, or the only ones."""
    of_a, of_b = ([side.variant] if side.variant else list(side.result.runs) for side in (a, b))
    if len(of_a) == 1 and len(of_b) == 1:
        return [(of_a[0], of_b[0])]
    common = [variant for variant in of_a if variant in of_b]
    if not common:
        raise UsageError(f"no variant is in both ({', '.join(of_a)}; {', '.join(of_b)}); choose with FOLDER:VARIANT")
    return [(variant, variant) for variant in common]


def complete_runs(result: ComparisonResult, variant: str) -> list[RunResult]:
    """The runs of a variant that came to their end."""
    return [run for run in result.runs[variant] if run.state == "complete"]


def _compared(
    a: str, b: str, operation: str, metric: str, verdict: Verdict, sample_a: Sample, sample_b: Sample
) -> ComparedOperation:
    ratio = verdict.ratio
    return ComparedOperation(
        a,
        b,
        operation,
        metric,
        sample_a.figure(metric),
        sample_b.figure(metric),
        verdict.word,
        ratio.value,
        ratio.low,
        ratio.high,
        ratio.confidence,
        verdict.reason,
    )


def _differences(a: ComparisonResult, b: ComparisonResult) -> list[str]:
    """What else is different, so that the reader may doubt the comparison."""
    found = []
    if keys := _workload_differences(a, b) & CHANGES_NO_OPERATION:
        found.append(f"the workloads differ in {', '.join(sorted(keys))}")
    for key in ("processor", "processors", "kernel", "memory_bytes", "sensorbench"):
        if a.manifest.environment.get(key) != b.manifest.environment.get(key):
            found.append(f"the machines differ: {key} is {a.manifest.environment.get(key)} and {b.manifest.environment.get(key)}")
    return found
