"""What of a folder of results goes into a history: figures with intervals, histograms, and which versions were measured."""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from sensorbench.benchmarks.comparison import sample_of, summarise, work_digest
from sensorbench.errors import UsageError
from sensorbench.history.entry import between_repetitions, history_result
from sensorbench.history.one_target import ONE_TARGET_KINDS, result_of_one_target
from sensorbench.results import ComparisonResult, RunResult, VariantManifest, kind_of, read_comparison
from sensorbench.results.history_entries import HistoryFigure, HistoryHistogram, HistoryResult, HistoryVariant, Unit
from sensorbench.results.latencies import interval_histograms
from sensorbench.results.manifest import RunTotals
from sensorbench.results.series import parts_with_results
from sensorbench.results.summary.comparison import ComparisonFigures

# What figures of a variant as a whole are called in the place of an operation.
LOADING = "(loading)"
_UNITS: dict[str, Unit] = {"throughput": "per s", "size": "bytes"}


def collect(folder: Path, label: str = "") -> list[HistoryResult]:
    """What of a folder of results goes into a history.

    Args:
        folder: of a comparison, or of a series, of which each part is a result.
        label: what the user calls the version that was measured.

    Returns:
        A result for each comparison in the folder.

    Raises:
        UsageError: if there are no results, those of another kind, or some that are not complete or whose answers are wrong.
        DamagedResultsError: if a file is damaged.

    """
    kind = kind_of(folder)
    if kind == "series":
        parts = parts_with_results(folder)
        if not parts:
            raise UsageError(f"{folder}: no part of this series has results")
        return [_of_comparison(read_comparison(part), label) for part in parts.values()]
    if kind in ONE_TARGET_KINDS:
        return [result_of_one_target(folder, kind, label)]
    if kind not in {None, "comparison"}:
        raise UsageError(
            f"{folder}: these are results of kind {kind!r}; a history takes comparisons, series of them, and the kinds "
            f"{', '.join(sorted(ONE_TARGET_KINDS))}"
        )
    return [_of_comparison(read_comparison(folder), label)]


def _of_comparison(result: ComparisonResult, label: str) -> HistoryResult:
    manifest = result.manifest
    _check(result)
    summary = result.summary or summarise(result)
    if summary.answers_equal is False:
        raise UsageError(f"{result.folder}: its answers are not equal; figures of wrong answers go into no history")
    measured = [variant for variant in manifest.variants if not variant.only_loads and result.runs[variant.id]]
    return history_result(
        manifest.environment,
        manifest.version,
        identity=_id_of(result),
        folder=result.folder,
        kind=manifest.kind,
        title=manifest.title,
        experiment=work_digest(manifest),
        name=f"{manifest.plan.name} {manifest.plan.part}".strip(),
        measured=manifest.created,
        label=label,
        variants=_variants(result, measured),
        figures=_figures(summary.result, {variant.id for variant in measured}),
        histograms=[
            histogram
            for variant in measured
            for run in result.usable_runs(variant.id)
            for operation in run.manifest.operations
            if (histogram := _histogram(run, variant.id, operation)) is not None
        ],
        aa_variation=between_repetitions(_cells(result, measured)),
    )


def _cells(result: ComparisonResult, measured: list[VariantManifest]) -> Iterator[list[float]]:
    """The metric of each repetition of each operation of each variant."""
    metric = result.manifest.plan.metric
    for variant in measured:
        for operation in result.manifest.plan.operations:
            samples = [sample_of([run], operation) for run in result.usable_runs(variant.id)]
            figures = [sample.figure(metric) for sample in samples if sample is not None]
            yield [figure for figure in figures if math.isfinite(figure) and figure > 0.0]


def _check(result: ComparisonResult) -> None:
    """Raises UsageError for what is not whole, and DamagedResultsError for what is damaged."""
    for lost in result.left_out.values():
        for error in lost:
            raise error
    for runs in result.runs.values():
        for run in runs:
            for error in run.damaged.values():
                raise error
    if result.state != "complete":
        raise UsageError(
            f"{result.folder}: these results are {result.state}; --resume completes them, then they can go into a history"
        )


def _id_of(result: ComparisonResult) -> str:
    """SHA-256 of what was recorded, wherever the folder lies."""
    runs = [
        [variant, run.manifest.repetition, run.manifest.totals and _recorded(run.manifest.totals)]
        for variant, of_variant in result.runs.items()
        for run in of_variant
    ]
    content = {"created": result.manifest.created.isoformat(), "work": work_digest(result.manifest), "runs": runs}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _recorded(totals: RunTotals) -> dict[str, Any]:
    """What a run came to. A run of one load generator is as it was before there could be several, so that histories still know it."""
    recorded = totals.model_dump(mode="json")
    if not totals.generators:
        del recorded["generators"]
    for generator in recorded.get("generators", []):
        # The same of load generators of this machine.
        if generator["clock"] is None:
            del generator["clock"]
    return recorded


def _variants(result: ComparisonResult, measured: list[VariantManifest]) -> list[HistoryVariant]:
    """The variants, each distinct from the others."""
    found = [_variant(result, variant, variant.label) for variant in measured]
    counts = Counter(_identity(variant) for variant in found)
    return [
        each if counts[_identity(each)] == 1 else _variant(result, variant, variant.id)
        for each, variant in zip(found, measured, strict=True)
    ]


def _identity(variant: HistoryVariant) -> tuple[str, ...]:
    return (variant.target, variant.database, variant.schema_digest, json.dumps(variant.parameters), variant.distinct)


def _variant(result: ComparisonResult, variant: VariantManifest, distinct: str) -> HistoryVariant:
    load = result.loads.get(variant.id)
    ceilings = result.manifest.environment.get("driver_ceilings_per_s", {})
    # Earlier versions kept no digest of the schema: the statements of the operations stand in for it.
    statements = json.dumps(variant.statements, sort_keys=True, default=str).encode()
    return HistoryVariant(
        id=variant.id,
        target=variant.target,
        database=variant.database,
        database_version=load.description.version if load else "",
        schema_name=variant.schema_name,
        schema_digest=variant.schema_digest or hashlib.sha256(statements).hexdigest(),
        parameters={name: str(value) for name, value in sorted(variant.schema_parameters.items())},
        distinct=distinct,
        server_settings={name: str(value) for name, value in sorted(load.description.settings.items())} if load else {},
        no_op_per_s=ceilings.get(variant.database),
    )


def _figures(result: ComparisonFigures, measured: set[str]) -> list[HistoryFigure]:
    found = []
    for of_operation in result.figures:
        if of_operation.variant not in measured:
            continue
        for metric, figure in of_operation.latency_s.items():
            if figure.value is not None and figure.value > 0.0:
                found.append(
                    HistoryFigure(
                        variant=of_operation.variant,
                        operation=of_operation.operation,
                        metric=metric,
                        unit="s",
                        higher_is_better=False,
                        value=figure.value,
                        low=figure.low,
                        high=figure.high,
                        confidence=figure.confidence,
                        runs=of_operation.runs,
                        is_main=metric == result.metric,
                    )
                )
        if of_operation.throughput_per_s:
            found.append(_single(of_operation.variant, of_operation.operation, "throughput", of_operation.throughput_per_s))
    for variant, load in result.load.items():
        figures = {"load": load.load_s + load.settle_s, "size": load.size.total_bytes}
        found += [_single(variant, LOADING, metric, value) for metric, value in figures.items() if value and variant in measured]
    return found


def _single(variant: str, operation: str, metric: str, value: float) -> HistoryFigure:
    """A figure without an interval."""
    unit = _UNITS.get(metric, "s")
    return HistoryFigure(
        variant=variant,
        operation=operation,
        metric=metric,
        unit=unit,
        higher_is_better=unit == "per s",
        value=float(value),
        low=None,
        high=None,
        runs=1,
        is_main=False,
    )


def _histogram(run: RunResult, variant: str, operation: str) -> HistoryHistogram | None:
    """The response times of an operation in a run; None if none were counted."""
    intervals = interval_histograms(run, operation)
    if not intervals:
        return None
    values_ns = np.rint(np.concatenate([values for values, _ in intervals]) * 1e9).astype(np.int64)
    distinct, places = np.unique(values_ns, return_inverse=True)
    counts = np.bincount(places, weights=np.concatenate([counts for _, counts in intervals]))
    return HistoryHistogram(
        variant=variant,
        operation=operation,
        repetition=run.manifest.repetition,
        values_ns=distinct.tolist(),
        counts=counts.astype(np.int64).tolist(),
    )
