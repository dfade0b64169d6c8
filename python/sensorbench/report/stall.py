"""Coordinated omission: the same stall as a closed and as an open loop measure it."""

from collections.abc import Sequence
from typing import NamedTuple

import altair as alt
import numpy as np

from sensorbench.report import charts, formatting
from sensorbench.results import ComparisonResult
from sensorbench.results.latencies import weighted_latencies
from sensorbench.results.page import Chart, ChartSpec, Columns, Line, Section, Table, Text
from sensorbench.results.stall import StallResult, read_stall
from sensorbench.results.summary.comparison import ComparisonSummary

# Percentiles are drawn up to this one, one in this many.
_MAX_ONE_IN = 10_000.0
_TICKS = (2, 10, 100, 1_000, 10_000)
_LOOPS = {"closed": "closed loop", "open": "open loop"}


def stall_section(summary: ComparisonSummary, result: ComparisonResult) -> Section | None:
    """What a stall is in each loop, where one was measured."""
    figures, measured = summary.result.stall, read_stall(result.folder)
    if figures is None or measured is None:
        return None
    columns: Columns = [
        ("Measured by", "name"),
        ("stall", "duration_s"),
        ("operations", "whole"),
        ("median", "duration_s"),
        ("p99", "duration_s"),
        ("p99.9", "duration_s"),
        ("max", "duration_s"),
    ]
    rows: list[list[Line]] = [
        [_LOOPS[loop], of_loop.stall_s, of_loop.operations, of_loop.p50_s, of_loop.p99_s, of_loop.p999_s, of_loop.max_s]
        for loop, of_loop in figures.loops.items()
    ]
    text = (
        f"For a moment another process held the write lock of {formatting.variant(figures.variant)}, as a backup or a nightly job does. The same "
        "stall was measured twice. The closed loop had one request in flight: it waited, and the requests that users would have sent "
        f"meanwhile were never sent. The open loop sent {formatting.count(figures.rate_per_s)} requests per second throughout and counted the "
        "waiting of each. Compare the p99 of both."
    )
    title = f"{figures.title}: response time by percentile"
    return Section(
        "coordinated-omission",
        "Coordinated omission: what a closed loop hides",
        [
            Text(formatting.described_stall(figures), "headline"),
            Text(text),
            Chart("stall", _curves(_rows(measured)), title),
            Table(columns, rows),
        ],
    )


class _CurveRow(NamedTuple):
    """A percentile of a loop: one request in this many is slower."""

    loop: str
    one_in: float
    latency_s: float


def _rows(measured: StallResult) -> list[_CurveRow]:
    rows = []
    for loop, run in measured.runs.items():
        values, weights = weighted_latencies(run, measured.record.operation)
        order = np.argsort(values)
        cumulated = np.cumsum(weights[order])
        if not len(values):
            continue
        for one_in in np.geomspace(1.25, min(_MAX_ONE_IN, max(1.25, cumulated[-1])), 120):
            place = np.searchsorted(cumulated, (1.0 - 1.0 / one_in) * cumulated[-1])
            rows.append(_CurveRow(_LOOPS[loop], float(one_in), float(values[order][min(place, len(values) - 1)])))
    return rows


def _curves(rows: Sequence[_CurveRow]) -> ChartSpec:
    """Both percentile curves, the rarest requests to the right."""
    axis = alt.Axis(values=list(_TICKS), labelExpr="format(100 - 100 / datum.value, '~g') + ' %'")
    x = alt.X("one_in:Q", title="percentile", scale=alt.Scale(type="log", nice=False), axis=axis)
    colours = dict(zip(_LOOPS.values(), charts.COLOURS, strict=False))
    line = charts.data_of(rows).mark_line(strokeWidth=2.2, interpolate="step-after")
    drawn = line.encode(
        x=x,
        y=charts.latency_axis(),
        color=charts.coloured("loop", colours),
        strokeDash=alt.StrokeDash("loop:N", scale=alt.Scale(domain=list(colours), range=[[5, 3], [1, 0]]), legend=None),
        tooltip=[alt.Tooltip("loop:N"), alt.Tooltip("one_in:Q", format=",.0f", title="one in"), charts.SECONDS],
    )
    how = (
        "Each line is the response time within which that percentage of the requests was answered; lower is faster. The lines measure the "
        "same stall: where the open loop's line rises far to the left of the closed loop's, the closed loop hides it."
    )
    return charts.sized(drawn, how, height=300)
