"""How long after their acknowledgement readings were visible."""

from collections.abc import Sequence
from typing import NamedTuple

import altair as alt
import numpy as np

from sensorbench.report import charts, formatting, parts
from sensorbench.results import ComparisonResult
from sensorbench.results.freshness import measured_markers
from sensorbench.results.page import Block, Chart, ChartSpec, Columns, Heading, Line, Section, Table, Text
from sensorbench.results.summary.comparison import ComparisonSummary
from sensorbench.results.summary.freshness import FreshnessBounds, FreshnessFigures

# More markers of a variant are not drawn one by one.
_MAX_DRAWN = 600
# Below this, in s, the axis is linear, so that markers that were visible at once have a place.
_LINEAR_BELOW_S = 0.001


class MarkerRow(NamedTuple):
    """A marker of a variant: between `low_s` and `high_s` after its acknowledgement it became visible."""

    variant: str
    time_s: float
    low_s: float
    high_s: float


def freshness_section(summary: ComparisonSummary, result: ComparisonResult) -> Section | None:
    """The markers of each variant, where there were some."""
    found = summary.result.freshness
    if not found:
        return None
    first = next(iter(found.values()))
    text = (
        "Markers were written during the load, and each was read until a read returned it. When it became visible is known within bounds: after the "
        "start of the last read that missed it, and before the end of the first that returned it. Each figure therefore has two bounds, and the "
        f"true one lies between them. Reads of a marker began {formatting.duration(first.poll_s)} apart, or right after one another where they took "
        f"longer. A marker was given up after {formatting.duration(first.within_s)}. The clock of writes and reads is the same."
    )
    rows = [[formatting.variant(variant), *_cells(of_variant.whole)] for variant, of_variant in found.items()]
    columns: Columns = [("Variant", "name"), *_COLUMNS]
    blocks: list[Block | None] = [
        Text(text),
        Table(columns, rows),
        _chart(_marker_rows(result), [variant.id for variant in summary.variants]),
    ]
    late = [variant for variant, of_variant in found.items() if of_variant.whole.late]
    if late:
        names = ", ".join(map(formatting.variant, late))
        blocks.append(
            Text(
                f"{names}: markers started late, because all that may be watched at a time were. Each began when another one was found, so its "
                "figures are biased. Raise workload.freshness.watched, or lower its rate.",
                "bad",
            )
        )
    by_rate: list[list[Line]] = [
        [formatting.variant(variant), f"{of_rate.rate}/s", *_cells(of_rate)]
        for variant, of_variant in found.items()
        for of_rate in of_variant.by_rate
    ]
    if by_rate:
        blocks += [Heading("By the rate of the load"), Table([("Variant", "name"), ("rate", "text"), *_COLUMNS], by_rate)]
    return Section("freshness", "How soon is a reading visible?", blocks)


_COLUMNS: Columns = [
    ("markers", "whole"),
    ("seen by the first read", "whole"),
    ("not seen in time", "whole"),
    ("median", "text"),
    ("p90", "text"),
    ("p99", "text"),
    ("max", "text"),
    ("reads", "whole"),
]


def _cells(figures: FreshnessFigures) -> list[Line]:
    failed = f"{figures.failed:,} more were not acknowledged" if figures.failed else ""
    return [
        [figures.markers, parts.muted(failed)] if failed else figures.markers,
        figures.at_once,
        figures.markers - figures.seen,
        *(_bounds(figures.quantiles_s.get(name)) for name in ("p50", "p90", "p99", "max")),
        figures.reads,
    ]


def _bounds(bounds: FreshnessBounds | None) -> str:
    return formatting.bounds(bounds.low_s, bounds.high_s) if bounds else ""


def _marker_rows(result: ComparisonResult) -> list[MarkerRow]:
    """Markers of the first run of each variant that has some: all, or as many as are drawn, evenly chosen."""
    rows = []
    for variant in result.manifest.variants:
        runs = (measured_markers(run) for run in result.usable_runs(variant.id))
        markers = next((found for found in runs if found is not None), None)
        if markers is None:
            continue
        drawn = np.flatnonzero(markers.is_acknowledged & np.isfinite(markers.high_s))
        chosen = (
            drawn[np.unique(np.linspace(0, len(drawn) - 1, min(len(drawn), _MAX_DRAWN)).astype(np.int64))]
            if len(drawn)
            else drawn
        )
        columns = (values[chosen].tolist() for values in (markers.time_s, markers.low_s, markers.high_s))
        rows += [MarkerRow(variant.id, *values) for values in zip(*columns, strict=True)]
    return rows


def _chart(rows: Sequence[MarkerRow], variants: list[str]) -> Chart | None:
    return Chart("freshness", _drawn(rows, variants), "Time from acknowledgement to visibility, over the run") if rows else None


def _drawn(rows: Sequence[MarkerRow], variants: list[str]) -> ChartSpec:
    """A line up and down for each marker, from one bound to the other, by the time at which it was written."""
    base = charts.of_variants(rows).encode(
        x=charts.time_axis(max(row.time_s for row in rows)),
        color=charts.variant_colour(variants),
        tooltip=[
            alt.Tooltip("variant:N"),
            alt.Tooltip("time_s:Q", format=".1f", title="written at (s)"),
            alt.Tooltip("low_s:Q", format=".3~s", title="not visible for (s)"),
            alt.Tooltip("high_s:Q", format=".3~s", title="visible after (s)"),
        ],
    )
    scale = alt.Scale(type="symlog", constant=_LINEAR_BELOW_S, nice=False)
    low = alt.Y("low_s:Q", title="from acknowledgement to visibility", scale=scale, axis=charts.LATENCY_AXIS)
    intervals = base.mark_rule(strokeWidth=1.6, opacity=0.6).encode(y=low, y2=alt.Y2("high_s:Q"))
    ends = base.mark_circle(size=14, opacity=0.8).encode(y=alt.Y("high_s:Q", scale=scale))
    how = (
        "Each line is a marker: its lower end is the start of the last read that missed it, its upper end, with the dot, the end of the first read "
        "that returned it. The marker became visible between both. Lower is fresher; a line that begins at 0 was found by the first read. The axis is "
        "linear below a millisecond and logarithmic above."
    )
    return charts.sized(intervals + ends, how, height=300)
