"""The page of a stress run: how latency grows with the rate, what became of every operation, and what the servers said meanwhile."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np

from sensorbench.analysis.capacity import PERCENTILES
from sensorbench.report import charts, words
from sensorbench.report.build import CHARTS_FOLDER, FILE_WIDTH, write_chart_files, write_page
from sensorbench.results import RunResult
from sensorbench.results.insight import Insight, insight
from sensorbench.results.quantities import QUANTITIES
from sensorbench.results.stress import StressResult
from sensorbench.results.summary.stress import StressStep, StressSummary

_QUANTILES = {"median": "p50", "p99": "p99", "p999": "p99.9"}


def write_stress_page(result: StressResult, summary: StressSummary) -> Path:
    """Writes `report.html` into the folder of the results, and its charts as SVG and PNG beside it. Returns the page."""
    over_time = _over_time(result, summary) if len(result.runs) == 1 else {}
    drawn = {**_curves(summary), **over_time}
    servers = [name for name in over_time if name.startswith("server-")]
    path = write_page(
        result.folder,
        "stress.html.j2",
        drawn,
        summary=summary,
        servers=servers,
        titles=_TITLES,
        quantities=QUANTITIES,
        percentiles=PERCENTILES,
    )
    write_chart_files(result.folder / CHARTS_FOLDER, drawn, FILE_WIDTH)
    return path


_TITLES = {
    "curve": "Latency by what was completed",
    "completed": "What was completed of what was asked for",
    "rate": "Operations a second",
    "latency": "Response time",
    "server-hit_rate": "Share of requests that caches answered",
    **{f"server-{name}": _title for name, _title in ((one.name, one.title) for one in QUANTITIES.values())},
}


def _curves(summary: StressSummary) -> dict[str, dict[str, Any]]:
    """How steps compare, whenever they were."""
    steps = [step for step in summary.result.steps if step.response_s]
    return {"curve": _curve(steps, summary), "completed": _completed(steps)} if steps else {}


def _curve(steps: Sequence[StressStep], summary: StressSummary) -> dict[str, Any]:
    """Throughput–latency curve: response times at what was completed a second."""
    rows = [
        {
            "completed": step.completed_per_s,
            "latency_s": getattr(step.response_s, metric),
            "percentile": name,
            "rate": step.rate_per_s,
            "limit": "client" if step.client_bound else "server or none",
        }
        for step in sorted(steps, key=lambda step: step.rate_per_s)
        for metric, name in _QUANTILES.items()
    ]
    x = alt.X(
        "completed:Q",
        title="completed, operations a second",
        axis=charts.COUNT_AXIS,
        scale=alt.Scale(zero=False, nice=False, padding=14),
    )
    y = alt.Y("latency_s:Q", title=charts.LATENCY_TITLE, scale=alt.Scale(type="log", nice=False), axis=charts.LATENCY_AXIS)
    colour = alt.Color(
        "percentile:N",
        title=None,
        scale=alt.Scale(domain=list(_QUANTILES.values()), range=charts.COLOURS[:3]),
        legend=alt.Legend(orient="bottom"),
    )
    base = alt.Chart(alt.InlineData(values=rows)).encode(x=x, y=y, color=colour)
    # In the order of the rates: beyond capacity the line turns back. Trials of a search are no such order.
    line = base.mark_line(strokeWidth=1.8).encode(order=alt.Order("rate:Q"))
    shape = alt.Shape(
        "limit:N",
        title=None,
        scale=alt.Scale(domain=["server or none", "client"], range=["circle", "triangle"]),
        legend=charts.STATES_LEGEND if any(row["limit"] == "client" for row in rows) else None,
    )
    points = base.mark_point(filled=True, size=55, opacity=1).encode(
        shape=shape,
        tooltip=[
            alt.Tooltip("percentile:N"),
            alt.Tooltip("latency_s:Q", format=".3~s", title="seconds"),
            alt.Tooltip("completed:Q", format=",.4~g"),
            alt.Tooltip("rate:Q", format=",.4~g", title="asked for"),
        ],
    )
    layers = [points] if summary.result.search else [line, points]
    return charts.sized(alt.layer(*layers, *_objective(summary)), height=340)


def _objective(summary: StressSummary) -> list[alt.Chart]:
    """The limit as a line, and between which rates the capacity lies."""
    found, objective = summary.result.capacity, summary.result.objective
    if objective is None:
        return []
    layers = []
    limit = alt.Chart(alt.InlineData(values=[{"limit_s": objective.limit_s}]))
    layers.append(limit.mark_rule(strokeDash=[5, 4], color=charts.QUIET).encode(y=alt.Y("limit_s:Q")))
    if found and found.met_per_s:
        ends = [{"low": found.met_per_s, "high": found.missed_per_s or found.met_per_s}]
        band = alt.Chart(alt.InlineData(values=ends))
        layers.append(band.mark_rect(opacity=0.25, color=charts.COLOURS[2]).encode(x=alt.X("low:Q"), x2=alt.X2("high:Q")))
        layers.append(band.mark_rule(color=charts.COLOURS[2]).encode(x=alt.X("low:Q")))
    return layers


def _completed(steps: Sequence[StressStep]) -> dict[str, Any]:
    """Of what was asked for a second, what was completed, and what became of the rest."""
    fates = {
        "ok": "completed",
        "timeout": "timed out",
        "error": "failed",
        "cancelled": "cancelled",
        "dropped": "dropped (never started)",
    }
    rows = [
        {
            "rate": words.count(step.rate_per_s),
            "fate": name,
            "per_s": getattr(step.counts, key) / max(step.end_s - step.start_s, 1e-9),
            "order": place,
        }
        for step in sorted(steps, key=lambda step: step.rate_per_s)
        for place, (key, name) in enumerate(fates.items())
        if getattr(step.counts, key) or key == "ok"
    ]
    order = list(dict.fromkeys(row["rate"] for row in rows))
    colours = dict(zip(fates.values(), (charts.COLOURS[place] for place in (2, 4, 1, 7, 3)), strict=True))
    shown = [fate for fate in colours if any(row["fate"] == fate for row in rows)]
    bars = alt.Chart(alt.InlineData(values=rows)).mark_bar()
    return charts.sized(
        bars.encode(
            x=alt.X("rate:N", title="rate that was asked for", sort=order, axis=alt.Axis(labelAngle=-45)),
            y=alt.Y("mean(per_s):Q", title="operations a second", axis=charts.COUNT_AXIS, stack="zero"),
            color=alt.Color(
                "fate:N",
                title=None,
                scale=alt.Scale(domain=shown, range=[colours[fate] for fate in shown]),
                legend=alt.Legend(orient="bottom", columns=3),
            ),
            order=alt.Order("order:Q"),
            tooltip=[alt.Tooltip("rate:N"), alt.Tooltip("fate:N"), alt.Tooltip("mean(per_s):Q", format=",.4~g")],
        ),
        height=340,
    )


def _over_time(result: StressResult, summary: StressSummary) -> dict[str, dict[str, Any]]:
    """Everything that shares the clock of the one run."""
    run = result.runs[0]
    borders = [step.start_s for step in summary.result.steps]
    last_s = max([1.0, *(step.end_s for step in summary.result.steps)])
    drawn = {}
    rates, latencies = _intervals(run)
    if rates:
        drawn["rate"] = _lines(rates, borders, last_s, alt.Y("value:Q", title="operations a second", axis=charts.COUNT_AXIS))
    if latencies:
        axis = alt.Y("value:Q", title=charts.LATENCY_TITLE, scale=alt.Scale(type="log", nice=False), axis=charts.LATENCY_AXIS)
        drawn["latency"] = _lines(latencies, borders, last_s, axis)
    said = insight(run, result.manifest.variants[0].database)
    hit_rates = [row for name in said.caches for row in _hit_rates(said, name)]
    if hit_rates:
        drawn["server-hit_rate"] = _lines(
            hit_rates, borders, last_s, alt.Y("value:Q", title="hit rate", axis=alt.Axis(format="%"), scale=alt.Scale(zero=False))
        )
    for name in said.series:
        rows, unit = _quantity(said, name)
        if rows:
            drawn[f"server-{name}"] = _lines(rows, borders, last_s, alt.Y("value:Q", title=unit, axis=charts.COUNT_AXIS))
    return drawn


def _intervals(run: RunResult) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Completed operations a second, and the worst percentiles of the operations, of each interval."""
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
    completed = [{"time_s": time_s, "value": value, "name": "completed"} for time_s, value in sorted(rates.items())[:-1]]
    return completed, [{"time_s": time_s, "value": value, "name": name} for (time_s, name), value in sorted(worst.items())]


def _hit_rates(said: Insight, name: str) -> list[dict[str, Any]]:
    times_s, hits, requests = said.caches[name]
    return [
        {
            "time_s": float(times_s[after]),
            "value": float((hits[after] - hits[before]) / (requests[after] - requests[before])),
            "name": name,
        }
        for before, after in pairwise(range(len(times_s)))
        if requests[after] > requests[before]
    ]


def _quantity(said: Insight, name: str) -> tuple[list[dict[str, Any]], str]:
    """A gauge as it is, and how fast a counter grows; nothing of those that never were anything else than zero."""
    times_s, values = said.series[name]
    quantity = QUANTITIES[name]
    if quantity.kind == "counter":
        lengths_s = np.diff(times_s)
        times_s, values = times_s[1:][lengths_s > 0], (np.diff(values) / np.maximum(lengths_s, 1e-9))[lengths_s > 0]
    if not np.any(values):
        return [], ""
    rows = [
        {"time_s": float(time_s), "value": float(value), "name": quantity.name}
        for time_s, value in zip(times_s, values, strict=True)
    ]
    return rows, f"{quantity.unit} a second" if quantity.kind == "counter" else quantity.unit


def _lines(rows: list[dict[str, Any]], borders: list[float], last_s: float, y: alt.Y) -> dict[str, Any]:
    """Lines over the run's time; where steps begin is marked."""
    names = list(dict.fromkeys(row["name"] for row in rows))
    legend = alt.Legend(orient="bottom", symbolType="stroke") if len(names) > 1 else None
    colour = alt.Color("name:N", title=None, scale=alt.Scale(domain=names, range=charts.COLOURS[: len(names)]), legend=legend)
    line = alt.Chart(alt.InlineData(values=rows)).mark_line(strokeWidth=1.6)
    marks = alt.Chart(alt.InlineData(values=[{"border": border} for border in borders])).mark_rule(
        strokeDash=[3, 4], color=charts.QUIET
    )
    shown = line.encode(
        x=charts.time_axis(last_s),
        y=y,
        color=colour,
        tooltip=[alt.Tooltip("name:N"), alt.Tooltip("time_s:Q"), alt.Tooltip("value:Q", format=".4~g")],
    )
    return charts.sized(marks.encode(x=alt.X("border:Q")) + shown, height=190)
