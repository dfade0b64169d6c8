"""The page of the MapReduce study: times against workers, speed-up, what set-up takes, what was read, and the claims."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt

from sensorbench.report import charts
from sensorbench.report.build import CHARTS_FOLDER, FILE_WIDTH, write_chart_files, write_page
from sensorbench.results.summary.mapreduce import JobCell, MapReduceSummary, SpeedUp

# The parts of the set-up: their words, in the order in which they come.
SETUP_PARTS = {
    "context_s": "application",
    "executors_s": "executors",
    "launch_s": "jars and a first task",
    "jobs_s": "planning, splits, commits",
}


def write_mapreduce_page(folder: Path, summary: MapReduceSummary) -> Path:
    """Writes `report.html` into the folder of the results, and its charts as SVG and PNG beside it. Returns the page."""
    on_spark = [cell for cell in summary.result.cells if cell.workers is not None]
    drawn: dict[str, dict[str, Any]] = {}
    if on_spark:
        drawn["times"] = _times(on_spark)
        drawn["setup"] = _setup(on_spark)
    if summary.result.speed_ups:
        drawn["speed-up"] = _speed_up(summary.result.speed_ups)
    path = write_page(folder, "mapreduce.html.j2", drawn, summary=summary, setup_parts=SETUP_PARTS)
    write_chart_files(folder / CHARTS_FOLDER, drawn, FILE_WIDTH)
    return path


def _systems(cells: Sequence[JobCell] | Sequence[SpeedUp]) -> list[str]:
    return list(dict.fromkeys(cell.system for cell in cells))


def _workers() -> alt.X:
    return alt.X("workers:Q", title="workers", axis=alt.Axis(format="d", tickMinStep=1), scale=alt.Scale(nice=False, padding=24))


def _times(cells: Sequence[JobCell]) -> dict[str, Any]:
    """Every execution as a point (the first of each hollow), and a line through the means."""
    systems = _systems(cells)
    means = [{"setting": cell.system, "workers": cell.workers, "time": cell.total.value} for cell in cells]
    points = [
        {
            "system": cell.system,
            "workers": cell.workers,
            "time": one.total_s,
            "first": one.first,
            "execution": one.execution,
        }
        for cell in cells
        for one in cell.times
    ]
    y = alt.Y("time:Q", title="from submission to result, s", scale=alt.Scale(zero=True))
    lines = charts.line_of_settings(means, systems).encode(x=_workers(), y=y)
    colour = alt.Color(
        "system:N", scale=alt.Scale(domain=systems, range=[*charts.COLOURS, *charts.COLOURS][: len(systems)]), legend=None
    )
    tooltip = [alt.Tooltip("system:N"), alt.Tooltip("execution:Q"), alt.Tooltip("time:Q", format=".3~s", title="seconds")]
    base = alt.Chart(alt.InlineData(values=points)).encode(x=_workers(), y=alt.Y("time:Q"), color=colour, tooltip=tooltip)
    later = base.transform_filter("!datum.first").mark_point(filled=True, size=26, opacity=0.7)
    first = base.transform_filter("datum.first").mark_point(filled=False, size=34, opacity=0.8)
    return charts.sized(alt.layer(lines, later, first).resolve_scale(color="independent"), height=320)


def _speed_up(speed_ups: Sequence[SpeedUp]) -> dict[str, Any]:
    """Speed-up of each system beside what is linear."""
    fewest, systems = speed_ups[0].from_workers, _systems(speed_ups)
    rows = [{"setting": one.system, "workers": one.workers, "speed_up": one.speed_up} for one in speed_ups]
    rows += [{"setting": system, "workers": fewest, "speed_up": 1.0} for system in systems]
    y = alt.Y("speed_up:Q", title=f"T({fewest}) over T(n)", scale=alt.Scale(zero=True))
    lines = charts.line_of_settings(rows, systems).encode(x=_workers(), y=y)
    most = max(one.workers for one in speed_ups)
    linear = [{"workers": fewest, "speed_up": 1.0}, {"workers": most, "speed_up": most / fewest}]
    rule = (
        alt.Chart(alt.InlineData(values=linear))
        .mark_line(strokeDash=[5, 4], color=charts.QUIET)
        .encode(x=_workers(), y=alt.Y("speed_up:Q"))
    )
    return charts.sized(alt.layer(rule, lines), height=280)


def _setup(cells: Sequence[JobCell]) -> dict[str, Any]:
    """What the time of each cell consists of: the parts of the set-up, and work."""
    words = [*SETUP_PARTS.values(), "work"]
    rows = []
    for cell in cells:
        parts = {title: getattr(cell.setup_parts, part) for part, title in SETUP_PARTS.items()}
        parts["work"] = cell.total.value - (cell.setup_s or 0.0)
        label = f"{cell.system}, {cell.workers}"
        rows += [{"cell": label, "part": part, "seconds": seconds, "place": words.index(part)} for part, seconds in parts.items()]
    names = list(dict.fromkeys(row["cell"] for row in rows))
    colours = alt.Scale(domain=words, range=[*charts.COLOURS[1:5], charts.COLOURS[0]])
    bars = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_bar()
        .encode(
            y=alt.Y("cell:N", title=None, sort=names, axis=alt.Axis(labelLimit=220)),
            x=alt.X("seconds:Q", title="s"),
            color=alt.Color("part:N", title=None, scale=colours, legend=alt.Legend(orient="bottom")),
            order=alt.Order("place:Q"),
            tooltip=[alt.Tooltip("cell:N"), alt.Tooltip("part:N"), alt.Tooltip("seconds:Q", format=".3~s")],
        )
    )
    return charts.sized(bars, height=22 * len(names) + 20)
