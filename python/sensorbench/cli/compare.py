"""`sensorbench compare`, `aa` and `regression`: results against results."""

from dataclasses import dataclass
from dataclasses import replace as changed
from pathlib import Path
from typing import Annotated

import typer

from sensorbench.analysis.regression import regression as judged_regression
from sensorbench.analysis.sample import METRICS, Sample
from sensorbench.analysis.verdicts import EQUIVALENCE_MARGIN, Verdict
from sensorbench.analysis.verdicts import compare as compare_samples
from sensorbench.benchmarks.comparison import sample_of
from sensorbench.cli.options import Json
from sensorbench.cli.printing import new_table, print_json
from sensorbench.errors import FailedError, UsageError
from sensorbench.progress import console, error_console, print_labelled
from sensorbench.report import formatting
from sensorbench.results import ComparisonResult, RunResult, read_comparison
from sensorbench.runner import Workload

Metric = Annotated[
    str | None,
    typer.Option("--metric", help=f"One of {', '.join(METRICS)}; that of the results if not given.", show_default=False),
]
Margin = Annotated[float, typer.Option("--margin", help="Differences inside this share are equivalent.", min=0.0)]
Place = Annotated[str, typer.Argument(help="Folder of results, or FOLDER:VARIANT for one of its variants.")]


Force = Annotated[
    bool, typer.Option("--force", help="Show figures of different datasets or workloads side by side, without verdicts.")
]

# What of a workload changes no operation: how often it is run, and what is kept of it.
_CHANGES_NO_OPERATION = {"repetitions", "log", "answers"}
# What a workload has that does not say otherwise; earlier versions left out keys that they did not know.
_DEFAULT_WORKLOAD = Workload(mix={"any": 1}, operations=1).model_dump(mode="json", by_alias=True)


def compare(
    a: Place, b: Place, metric: Metric = None, margin: Margin = EQUIVALENCE_MARGIN, force: Force = False, json: Json = False
) -> None:
    """Compare two results of one dataset and workload: which is faster, by how much, with which confidence interval."""
    (result_a, chosen_a), (result_b, chosen_b) = _read(a), _read(b)
    metric = _metric(metric, result_a)
    obstacles = _obstacles(result_a, result_b)
    if obstacles and not force:
        raise UsageError(
            f"{a} and {b} cannot be compared: {'; '.join(obstacles)}. Compare results of one dataset and one workload, "
            "or see the figures without verdicts with --force"
        )
    # Variants of one comparison took turns; two comparisons were made at different times.
    paired = result_a.folder.resolve() == result_b.folder.resolve()
    rows = []
    for variant_a, variant_b in _pairs(result_a, chosen_a, result_b, chosen_b):
        runs_a, runs_b = _complete(result_a, variant_a), _complete(result_b, variant_b)
        for operation in result_a.manifest.plan.operations:
            if operation not in result_b.manifest.plan.operations:
                continue
            sample_a = sample_of(runs_a, operation)
            # Of a variant compared with itself, both sides are one sample: no noise lies between them.
            is_same = paired and variant_a == variant_b
            sample_b = sample_a if is_same else sample_of(runs_b, operation)
            if sample_a is None or sample_b is None:
                continue
            verdict = compare_samples(sample_a, sample_b, metric, paired=paired, margin=margin)
            rows.append(_compared(variant_a, variant_b, operation, metric, verdict, sample_a, sample_b))
    if not rows:
        raise UsageError(f"{a} and {b} have no operation in common that was measured in both")
    if obstacles:
        rows = [changed(row, verdict=None, reason=None) for row in rows]
    differences = [*obstacles, *_differences(result_a, result_b), *_left_out(result_a), *_left_out(result_b)]
    if json:
        print_json({"a": a, "b": b, "metric": metric, "comparisons": rows, "differences": differences})
        return
    _print(rows, a, b)
    for difference in differences:
        print_labelled(error_console(), "warning", difference)


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
    if keys := _workload_differences(a, b) - _CHANGES_NO_OPERATION:
        found.append(f"the workloads differ in {', '.join(sorted(keys))}")
    return found


def _workload_differences(a: ComparisonResult, b: ComparisonResult) -> set[str]:
    """The keys in which the workloads differ."""
    of_a, of_b = ({**_DEFAULT_WORKLOAD, **result.manifest.plan.workload} for result in (a, b))
    return {key for key in of_a.keys() | of_b.keys() if of_a.get(key) != of_b.get(key)}


def _left_out(result: ComparisonResult) -> list[str]:
    """Runs that count for nothing because their manifest is damaged."""
    lost = (error for errors in result.left_out.values() for error in errors)
    return [f"{error.path}: {error.problem}; this run is left out" for error in lost]


def _read(place: str) -> tuple[ComparisonResult, str | None]:
    folder, colon, variant = place.rpartition(":")
    if colon and not Path(place).exists():
        result = read_comparison(Path(folder))
        if variant not in result.runs:
            raise UsageError(f"{folder} has no variant {variant!r}; expected one of {', '.join(result.runs)}")
        return result, variant
    return read_comparison(Path(place)), None


def _metric(metric: str | None, result: ComparisonResult) -> str:
    if metric is not None and metric not in METRICS:
        raise UsageError(f"--metric {metric}: expected one of {', '.join(METRICS)}")
    return metric or result.manifest.plan.metric


def _pairs(a: ComparisonResult, chosen_a: str | None, b: ComparisonResult, chosen_b: str | None) -> list[tuple[str, str]]:
    """Variants that are compared: the chosen ones, those of equal names, or the only ones."""
    of_a, of_b = [chosen_a] if chosen_a else list(a.runs), [chosen_b] if chosen_b else list(b.runs)
    if len(of_a) == 1 and len(of_b) == 1:
        return [(of_a[0], of_b[0])]
    common = [variant for variant in of_a if variant in of_b]
    if not common:
        raise UsageError(f"no variant is in both ({', '.join(of_a)}; {', '.join(of_b)}); choose with FOLDER:VARIANT")
    return [(variant, variant) for variant in common]


def _complete(result: ComparisonResult, variant: str) -> list[RunResult]:
    return [run for run in result.runs[variant] if run.state == "complete"]


@dataclass(frozen=True)
class _Compared:
    """Two samples of one operation, and which of them is faster; no verdict where the two cannot be compared."""

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


def _compared(a: str, b: str, operation: str, metric: str, verdict: Verdict, sample_a: Sample, sample_b: Sample) -> _Compared:
    ratio = verdict.ratio
    return _Compared(
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
    if keys := _workload_differences(a, b) & _CHANGES_NO_OPERATION:
        found.append(f"the workloads differ in {', '.join(sorted(keys))}")
    for key in ("processor", "processors", "kernel", "memory_bytes", "sensorbench"):
        if a.manifest.environment.get(key) != b.manifest.environment.get(key):
            found.append(f"the machines differ: {key} is {a.manifest.environment.get(key)} and {b.manifest.environment.get(key)}")
    return found


def _print(rows: list[_Compared], a: str, b: str) -> None:
    screen = console()
    screen.print(f"A = {a}\nB = {b}", highlight=False)
    has_verdicts = any(row.verdict for row in rows)
    table = new_table("variant", "operation", "A", "B", "A / B", "interval", *(("A is", "why") if has_verdicts else ()))
    for row in rows:
        variant = row.a if row.a == row.b else f"{row.a} / {row.b}"
        interval = (
            f"{formatting.significant(row.low)} – {formatting.significant(row.high)}"
            if row.low is not None and row.high is not None
            else ""
        )
        table.add_row(
            variant,
            row.operation,
            formatting.duration(row.a_s),
            formatting.duration(row.b_s),
            formatting.significant(row.ratio),
            interval,
            *((row.verdict, row.reason) if has_verdicts else ()),
        )
    screen.print(table)


def regression(
    new: Annotated[Path, typer.Argument(help="Folder of the new results.")],
    earlier: Annotated[list[Path], typer.Argument(help="Folders of earlier results of the same comparison, three at least.")],
    metric: Metric = None,
    margin: Margin = EQUIVALENCE_MARGIN,
    json: Json = False,
) -> None:
    """Tell whether new results are slower than earlier ones of the same comparison. Exit code 1 when they are."""
    result, before = read_comparison(new), [read_comparison(folder) for folder in earlier]
    metric = _metric(metric, result)
    rows = []
    for variant in result.runs:
        for operation in result.manifest.plan.operations:
            now = sample_of(_complete(result, variant), operation)
            was = [
                sample_of(_complete(comparison, variant), operation)
                for comparison in before
                if variant in comparison.runs and operation in comparison.manifest.plan.operations
            ]
            if now is not None:
                judged = judged_regression(
                    [sample.figure(metric) for sample in was if sample is not None], now.figure(metric), margin=margin
                )
                rows.append({"variant": variant, "operation": operation, "metric": metric, **vars(judged)})
    if json:
        print_json(
            {
                "new": str(new),
                "earlier": [str(folder) for folder in earlier],
                "figures": [{key: None if value != value else value for key, value in row.items()} for row in rows],
            }
        )
    else:
        table = new_table("variant", "operation", "new", "expected", "between", "verdict")
        for row in rows:
            between = (
                f"{formatting.duration(row['low'])} – {formatting.duration(row['high'])}"
                if row["low"] is not None
                else f"{row['earlier']} earlier results; three are needed"
            )
            table.add_row(
                row["variant"],
                row["operation"],
                formatting.duration(row["new"]),
                formatting.duration(row["expected"]),
                between,
                row["word"],
            )
        console().print(table)
    slower = [f"{row['variant']} {row['operation']}" for row in rows if row["word"] == "slower"]
    if slower:
        raise FailedError(f"slower than before: {', '.join(slower)}")
