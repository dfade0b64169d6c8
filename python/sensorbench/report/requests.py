"""Each request of all runs, question by question and system by system, and what the servers used meanwhile: the charts of a paper that draws whole runs."""

from collections.abc import Sequence
from typing import NamedTuple

import altair as alt
import numpy as np

from sensorbench.analysis.smoothing import FACTOR, exponentially_smoothed
from sensorbench.analysis.thinning import extremes
from sensorbench.report import charts, formatting, values
from sensorbench.results import ComparisonResult
from sensorbench.results.latencies import is_held_whole, logged_latencies
from sensorbench.results.page import Block, Chart, ChartSpec, Grid, Heading
from sensorbench.results.server_use import server_use
from sensorbench.results.summary.comparison import ShownRequests

# Of each run, a chart has at most this many points.
MAX_POINTS = 600


class _View(NamedTuple):
    """Some requests of a run, from one number to before another, and what they are called."""

    name: str
    title: str
    first: int
    end: float


_FIRST, _MORE = values.FIRST_REQUESTS
VIEWS = (
    _View("all", "all requests", 0, np.inf),
    _View(f"first-{_MORE}", f"the first {_MORE}", 0, _MORE),
    _View(f"without-{_FIRST}", f"without the first {_FIRST}", _FIRST, np.inf),
    _View(f"without-{_MORE}", f"without the first {_MORE}", _MORE, np.inf),
)


class RunRequestRow(NamedTuple):
    """A request of a run, by its number, and the smoothed line through those of the run that the chart is about."""

    run: str
    request: float
    latency_s: float
    smoothed_s: float


class RunUseRow(NamedTuple):
    """What the servers of a variant used at a time of one of its runs."""

    variant: str
    run: str
    time_s: float
    processors: float
    megabytes: float
    disk_bytes_per_s: float | None


def request_blocks(shown: Sequence[ShownRequests], result: ComparisonResult) -> list[Block]:
    """The charts of some questions: for each variant its requests in all views. Nothing of runs of which not every request was logged."""
    blocks: list[Block] = []
    for of_question in shown:
        drawn = [chart for variant in of_question["variants"] for chart in _views_of(result, variant, of_question["operation"])]
        blocks += [Heading(of_question["title"]), Grid(drawn)] if drawn else []
    return blocks


def _views_of(result: ComparisonResult, variant: str, operation: str) -> list[Chart]:
    """The charts of one question at one variant. A view that leaves nothing out, or all, is not drawn again."""
    rows_of = {view: request_rows(result, variant, operation, view) for view in VIEWS}
    last = max((row.request for row in rows_of[VIEWS[0]]), default=0.0)
    runs = list(dict.fromkeys(row.run for row in rows_of[VIEWS[0]]))
    return [
        Chart(f"requests-{operation}-{variant}-{view.name}", requests(rows, runs), f"{formatting.variant(variant)}: {view.title}")
        for view, rows in rows_of.items()
        if rows and (view is VIEWS[0] or view.first > 0 or view.end <= last)
    ]


def request_rows(result: ComparisonResult, variant: str, operation: str, view: _View = VIEWS[0]) -> list[RunRequestRow]:
    """The requests of a view in all runs of a variant, as many as a chart has room for; the line is through all of them."""
    rows: list[RunRequestRow] = []
    for run in result.usable_runs(variant):
        if not is_held_whole(run):
            continue
        numbers, latencies = logged_latencies(run, operation)
        is_in_view = (numbers >= view.first) & (numbers < view.end)
        numbers, latencies = numbers[is_in_view], latencies[is_in_view]
        smoothed = np.exp(exponentially_smoothed(np.log(latencies)))
        places = extremes(latencies, MAX_POINTS)
        columns = (column[places].tolist() for column in (numbers, latencies, smoothed))
        rows += [RunRequestRow(f"run {run.manifest.repetition}", *row) for row in zip(*columns, strict=True)]
    return rows


def requests(rows: Sequence[RunRequestRow], runs: Sequence[str]) -> ChartSpec:
    """Latency over the number of the request, the runs over one another. `runs` are all that there are, so that each keeps its colour."""
    colours = {run: charts.COLOURS[place % len(charts.COLOURS)] for place, run in enumerate(runs)}
    colour = charts.coloured("run", colours, symbolOpacity=1)
    numbers = [row.request for row in rows]
    x = alt.X(
        "request:Q",
        title="number of the request in the run",
        scale=alt.Scale(domain=[min(numbers), max(numbers)], nice=False, padding=4),
        axis=alt.Axis(format="d", tickMinStep=1),
    )
    base = charts.data_of(rows).encode(x=x, color=colour)
    tooltip = [alt.Tooltip("run:N"), alt.Tooltip("request:Q"), charts.SECONDS]
    points = base.mark_circle(size=14, opacity=0.55).encode(y=charts.latency_axis(), tooltip=tooltip)
    lines = base.mark_line(strokeWidth=1.8).encode(y=alt.Y("smoothed_s:Q"))
    marks = [{"mark": mark} for mark in values.FIRST_REQUESTS if min(numbers) < mark < max(numbers)]
    rules = alt.Chart(alt.InlineData(values=marks)).mark_rule(strokeDash=[4, 4], color=charts.QUIET).encode(x=alt.X("mark:Q"))
    how = (
        f"Each dot is a request, each colour a run; lower is faster. The line smooths exponentially: each request moves it by {FACTOR:g} of the way "
        f"to its own latency (of the logarithm). Dashed lines mark the first {_FIRST} and {_MORE} requests of the run, of all questions together. Of a "
        f"run with more than {MAX_POINTS} requests, the fastest and the slowest of equally long stretches are drawn."
    )
    return charts.sized(points + lines + rules if marks else points + lines, how)


def use_blocks(variants: Sequence[str], result: ComparisonResult) -> list[Block]:
    """CPU, memory and disk of the servers over all runs of some variants; nothing if the lab knows no process of them."""
    rows = [
        RunUseRow(variant, f"run {run.manifest.repetition}", *use)
        for variant in variants
        for run in result.usable_runs(variant)
        for use in server_use(result, run, variant)
    ]
    moved = [row for row in rows if row.disk_bytes_per_s is not None]
    drawn = [
        Chart(f"use-{quantity}", use(of_quantity, quantity, y), title)
        for of_quantity, quantity, y, title in (
            (rows, "processors", alt.Y("processors:Q", title="CPUs busy"), "CPU"),
            (rows, "megabytes", alt.Y("megabytes:Q", title="megabytes of memory"), "Memory"),
            (moved, "disk_bytes_per_s", _DISK_AXIS, "Disk"),
        )
        if of_quantity
    ]
    return [Heading("What the servers used"), Grid(drawn)] if drawn else []


_DISK_AXIS = alt.Y("disk_bytes_per_s:Q", title="bytes per second, read and written", axis=charts.COUNT_AXIS)


def use(rows: Sequence[RunUseRow], quantity: str, y: alt.Y) -> ChartSpec:
    """What servers used of a quantity over time, a line for each run."""
    variants = list(dict.fromkeys(row.variant for row in rows))
    runs = list(dict.fromkeys(row.run for row in rows))
    stroke = alt.StrokeDash(
        "run:N",
        title=None,
        scale=alt.Scale(domain=runs, range=[charts.STROKES[place % len(charts.STROKES)] for place in range(len(runs))]),
        legend=alt.Legend(orient="bottom", symbolType="stroke"),
    )
    line = charts.of_variants(rows).mark_line(strokeWidth=1.6)
    drawn = line.encode(
        x=charts.time_axis(max(row.time_s for row in rows)),
        y=y,
        color=charts.variant_colour(variants),
        strokeDash=stroke,
        tooltip=[
            alt.Tooltip("variant:N"),
            alt.Tooltip("run:N"),
            alt.Tooltip("time_s:Q"),
            alt.Tooltip(f"{quantity}:Q", format=",.4~g"),
        ],
    )
    how = "Each line is a run; colours are systems, strokes the runs. A run ends where its line ends."
    return charts.sized(drawn, how)
