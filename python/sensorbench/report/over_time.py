"""What happened over the time of one run: charts that share its clock."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import altair as alt
import numpy as np

from sensorbench.report import charts
from sensorbench.results import RunResult
from sensorbench.results.insight import Insight, insight
from sensorbench.results.page import Chart, ChartSpec, Grid, Section, Text
from sensorbench.results.quantities import QUANTITIES


class TimeRow(NamedTuple):
    """A value of a line over the run's time."""

    time_s: float
    value: float
    name: str


def over_time(run: RunResult, database: str, last_s: float, borders: Sequence[float] = ()) -> Section | None:
    """Rates, latencies and what the servers said until `last_s`; `borders`: where steps begin, in s."""
    drawn: list[Chart] = []

    def draw(name: str, title: str, rows: Sequence[TimeRow], y: alt.Y) -> None:
        if rows:
            drawn.append(Chart(name, _lines(rows, borders, last_s, y), title))

    rates, latencies = _intervals(run)
    draw("rate", "Operations per second", rates, alt.Y("value:Q", title="operations per second", axis=charts.COUNT_AXIS))
    draw("latency", "Response time", latencies, charts.latency_axis("value"))
    of_client = len(drawn)
    said = insight(run, database)
    hit_rates = [row for name in said.caches for row in _hit_rates(said, name)]
    axis = alt.Y("value:Q", title="hit rate", axis=alt.Axis(format="%"), scale=alt.Scale(zero=False))
    draw("server-hit_rate", "Share of requests that caches answered", hit_rates, axis)
    for name in said.series:
        rows, unit = _quantity(said, name)
        title = QUANTITIES[name].title.capitalize()
        draw(f"server-{name}", title, rows, alt.Y("value:Q", title=unit, axis=charts.COUNT_AXIS))
    if not of_client:
        return None
    lines = "; dashed lines are where steps begin" if borders else ""
    note = f"One clock for all{lines}. What a server does not report is not shown."
    return Section("time", "Over time", [Grid(drawn), Text(note, "note")])


def _intervals(run: RunResult) -> tuple[list[TimeRow], list[TimeRow]]:
    """Completed operations per second, and the worst percentiles of the operations, of each interval."""
    table = run.table("intervals")
    rates: dict[float, float] = {}
    worst: dict[tuple[float, str], float] = {}
    for row in table.to_pylist() if table is not None else []:
        time_s, length_s = row["start_ns"] / 1e9, row["length_ns"] / 1e9
        rates[time_s] = rates.get(time_s, 0.0) + row["ok"] / length_s
        for quantile in ("p50", "p99"):
            value_ns = row[f"response_{quantile}_ns"]
            if value_ns is not None:
                worst[time_s, quantile] = max(worst.get((time_s, quantile), 0.0), value_ns / 1e9)
    completed = [TimeRow(time_s, value, "completed") for time_s, value in sorted(rates.items())[:-1]]
    return completed, [TimeRow(time_s, value, name) for (time_s, name), value in sorted(worst.items())]


def _hit_rates(said: Insight, name: str) -> list[TimeRow]:
    times_s, hits, requests = said.caches[name]
    return [
        TimeRow(float(times_s[after]), float((hits[after] - hits[before]) / (requests[after] - requests[before])), name)
        for before, after in pairwise(range(len(times_s)))
        if requests[after] > requests[before]
    ]


def _quantity(said: Insight, name: str) -> tuple[list[TimeRow], str]:
    """A gauge as it is, and how fast a counter grows; nothing of those that never were anything else than zero."""
    times_s, values = said.series[name]
    quantity = QUANTITIES[name]
    if quantity.kind == "counter":
        lengths_s = np.diff(times_s)
        times_s, values = times_s[1:][lengths_s > 0], (np.diff(values) / np.maximum(lengths_s, 1e-9))[lengths_s > 0]
    if not np.any(values):
        return [], ""
    rows = [TimeRow(float(time_s), float(value), quantity.name) for time_s, value in zip(times_s, values, strict=True)]
    return rows, f"{quantity.unit} per second" if quantity.kind == "counter" else quantity.unit


def _lines(rows: Sequence[TimeRow], borders: Sequence[float], last_s: float, y: alt.Y) -> ChartSpec:
    """Lines over the run's time; where steps begin is marked."""
    names = list(dict.fromkeys(row.name for row in rows))
    legend = alt.Legend(orient="bottom", symbolType="stroke") if len(names) > 1 else None
    colour = alt.Color("name:N", title=None, scale=alt.Scale(domain=names, range=charts.COLOURS[: len(names)]), legend=legend)
    line = charts.data_of(rows).mark_line(strokeWidth=1.6)
    marks = alt.Chart(alt.InlineData(values=[{"border": border} for border in borders])).mark_rule(
        strokeDash=[3, 4], color=charts.QUIET
    )
    shown = line.encode(
        x=charts.time_axis(last_s),
        y=y,
        color=colour,
        tooltip=[alt.Tooltip("name:N"), alt.Tooltip("time_s:Q"), alt.Tooltip("value:Q", format=".4~g")],
    )
    where = " A dashed line is where a step begins." if borders else ""
    how = f"All charts of this section share one clock: what happens at one time stands below one another.{where}"
    return charts.sized(marks.encode(x=alt.X("border:Q")) + shown, how, height=190)
