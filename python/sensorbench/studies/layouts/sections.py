"""What the report of the layouts study has to itself: which layout serves which access pattern best on each system, and what it takes."""

from collections.abc import Sequence
from itertools import product
from typing import Any

from sensorbench.claims import Evidence
from sensorbench.results import ComparisonResult, VariantManifest
from sensorbench.results.summary.comparison import ComparisonSummary, OperationFigures
from sensorbench.studies.study import Column, Section


def series_sections(parts: dict[str, Evidence], summaries: dict[str, ComparisonSummary]) -> list[Section]:
    """The sections of the page of all parts."""
    return [_patterns(summaries), _sizes([part.result for part in parts.values()])]


def _patterns(summaries: dict[str, ComparisonSummary]) -> Section:
    rows = [[part, *row] for part, summary in summaries.items() for row in _of_part(summary)]
    return Section(
        "Which layout for which question",
        "For each access pattern and system the fastest of its layouts that were measured, and how many times as long the slowest takes. Verdicts, "
        "with intervals, are on the page of each part: where a layout is not known to be slower than the fastest, that is said there.",
        [
            Column("part"),
            Column("question"),
            Column("system"),
            Column("fastest layout", "variant"),
            Column("mean", "duration_s"),
            Column("from", "duration_s"),
            Column("to", "duration_s"),
            Column("slowest layout", "variant"),
            Column("times as long", "ratio"),
            Column("layouts"),
        ],
        rows,
    )


def _of_part(summary: ComparisonSummary) -> list[list[Any]]:
    """One row for each operation and system of a part, in the order of both. What gave wrong answers has no place."""
    result = summary.result
    systems = {variant.id: variant.system or variant.database for variant in summary.variants}
    excluded = {ranking.operation for ranking in result.rankings if ranking.excluded}
    several = {(variant.id, name) for variant in summary.variants for name in result.operations if _writes_several(variant, name)}
    found = []
    for operation, system in product(result.operations, dict.fromkeys(systems.values())):
        figures = [
            figure
            for figure in result.figures
            if (figure.operation, systems[figure.variant]) == (operation, system)
            and operation not in excluded
            and (figure.variant, operation) not in several
            and "mean" in figure.latency_s
        ]
        if figures:
            found.append([result.operations[operation].title, system, *_ends(sorted(figures, key=_mean))])
    return found


def _ends(figures: list[OperationFigures]) -> list[Any]:
    """The fastest with its interval, and the slowest if there is another."""
    first, last = figures[0], figures[-1]
    mean = first.latency_s["mean"]
    slowest = [last.variant, _mean(last) / _mean(first)] if last is not first else [None, None]
    return [first.variant, mean.value, mean.low, mean.high, *slowest, len(figures)]


def _writes_several(variant: VariantManifest, operation: str) -> bool:
    """Whether an operation writes more readings in a variant than in others, so that its latency is that of more."""
    return int(variant.statements[operation].get("readings", 1)) > 1


def _mean(figure: OperationFigures) -> float:
    return figure.latency_s["mean"].value or 0.0


def _sizes(results: Sequence[ComparisonResult]) -> Section:
    """Each layout once, by its first part. Parts on other data than the first one say something else."""
    rows: dict[str, list[Any]] = {}
    for result in (
        result for result in results if result.manifest.plan.dataset["name"] == results[0].manifest.plan.dataset["name"]
    ):
        for variant, load in result.loads.items():
            seconds = result.loaded_s(variant)
            loaded_per_s = load.readings / seconds if seconds else None
            own = [variant, result.bytes_a_reading(variant), result.largest_partition_bytes(variant), loaded_per_s]
            rows.setdefault(variant, own)
    return Section(
        "What a reading takes",
        "Bytes after loading and settling for all that a layout keeps, its repetitions and counters too, divided by the readings (in memory, for Redis). "
        "Then the largest row (partition), where the server reports it, and readings per second until everything was loaded and settled.",
        [
            Column("layout", "variant"),
            Column("bytes per reading", "bytes"),
            Column("largest row", "bytes"),
            Column("loaded per second", "count"),
        ],
        list(rows.values()),
    )
