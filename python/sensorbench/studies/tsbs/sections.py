"""What the report of the TSBS study has to itself: rates of loading, and how kinds of questions compare, beside what was published."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sensorbench.claims import Evidence
from sensorbench.results.summary.comparison import ComparisonSummary, LoadFigures
from sensorbench.studies.printed_values import number
from sensorbench.studies.published import PrintedRow, printed_rows
from sensorbench.studies.study import Column, Section
from sensorbench.studies.tsbs.claims import rows_per_s, values_per_s

_ROWS, _VALUES = "row-rate", "metric-rate"
# The newest run of all questions that was published, by the end of its name.
_NEWEST = "v0.12.0"
_METRIC = "mean"
# Kinds of questions of which one is set beside another: what makes the first one more work.
_RELATIONS = {
    ("single-groupby-1-8-1", "single-groupby-1-1-1"): "eight hosts instead of one",
    ("single-groupby-1-1-12", "single-groupby-1-1-1"): "12 h instead of 1 h",
    ("single-groupby-5-1-1", "single-groupby-1-1-1"): "five metrics instead of one",
    ("cpu-max-all-8", "cpu-max-all-1"): "eight hosts instead of one",
    ("double-groupby-5", "double-groupby-1"): "five metrics instead of one",
    ("double-groupby-all", "double-groupby-1"): "ten metrics instead of one",
    ("high-cpu-all", "high-cpu-1"): "all hosts instead of one",
    ("lastpoint", "single-groupby-1-1-1"): "the newest row of all hosts instead of an hour of one",
    ("groupby-orderby-limit", "single-groupby-1-1-1"): "the newest minutes of all hosts instead of an hour of one",
}


def sections(evidence: Evidence, summary: ComparisonSummary) -> list[Section]:
    """The sections of a part's report."""
    return [_rates(evidence.result.loads), *_relations(summary)]


def _printed() -> tuple[PrintedRow, ...]:
    return printed_rows(Path(__file__).parent)


def _rates(loads: Mapping[str, LoadFigures]) -> Section:
    measured: list[list[Any]] = [
        ["here", variant, load.readings, rows_per_s(load), values_per_s(load), load.load_s, load.settle_s]
        for variant, load in loads.items()
    ]
    published: dict[tuple[str, str], dict[str, float | None]] = {}
    for row in _printed():
        if row.operation == "load" and row.metric in {_ROWS, _VALUES}:
            source = f"{row.figure_or_table}; {row.configuration}"
            published.setdefault((source, row.system), {})[row.metric] = number(row.value)
    others: list[list[Any]] = [
        [source, system, None, rates.get(_ROWS), rates.get(_VALUES), None, None] for (source, system), rates in published.items()
    ]
    return Section(
        "Rates of loading",
        "A row is one measurement of one host or truck at one time, a value is one of its fields (TSBS's metric). Rates measured here are until "
        "everything is loaded and settled. What was published is of other machines, and ends when the last batch was sent.",
        [
            Column("measured"),
            Column("variant or system"),
            Column("rows", "whole"),
            Column("rows/s", "whole"),
            Column("values/s", "whole"),
            Column("loading", "duration_s"),
            Column("settling", "duration_s"),
        ],
        [*measured, *others],
    )


def _relations(summary: ComparisonSummary) -> list[Section]:
    """How much longer the kinds of questions take that are more work, at each variant; nothing if none of them was asked."""
    means = {
        (figure.variant, figure.operation): figure.latency_s[_METRIC].value
        for figure in summary.result.figures
        if _METRIC in figure.latency_s
    }
    of_paper = {row.operation: number(row.value) for row in _printed() if _is_newest(row)}
    variants = [variant.id for variant in summary.variants]
    rows: list[list[Any]] = []
    for (more, less), what in _RELATIONS.items():
        here = [_ratio(means.get((variant, more)), means.get((variant, less))) for variant in variants]
        if any(ratio is not None for ratio in here):
            rows.append([f"{more} / {less}", what, _ratio(of_paper.get(more), of_paper.get(less)), *here])
    queried = [place for place, _ in enumerate(variants) if any(row[3 + place] is not None for row in rows)]
    if not rows:
        return []
    system = next(row.system for row in _printed() if _is_newest(row))
    return [
        Section(
            "Kinds of questions",
            f"How many times as long one kind of question takes as another, by mean latencies: published of {system}, and of each variant here. "
            "Those about all hosts grow with their number, which was 4,000 there.",
            [
                Column("questions"),
                Column("more work"),
                Column(system, "ratio"),
                *(Column(variants[place], "ratio") for place in queried),
            ],
            [[*row[:3], *(row[3 + place] for place in queried)] for row in rows],
        )
    ]


def _is_newest(row: PrintedRow) -> bool:
    return row.figure_or_table.endswith(_NEWEST) and row.metric == "latency"


def _ratio(over: float | None, under: float | None) -> float | None:
    return over / under if over is not None and under else None
