"""Draws what the levels of a setting do over the load average of the machine, as a paper has it, beside the same over the rate of requests."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import altair as alt

from sensorbench.report import charts
from sensorbench.results.factors import FILLED
from sensorbench.results.page import Block, Chart, ChartSpec, Grid, Section, Text
from sensorbench.results.summary.factors import (
    CurveFigure,
    FactorPartFigures,
    FactorsFigures,
    FactorsSummary,
    LevelFigures,
    LoadCurves,
)
from sensorbench.results.summary.published import formula, printed_by_figure

_LOAD = "load_average"
# Of each figure its title, what stands on its axis, and how the numbers of the axis are written.
_FIGURES: Mapping[CurveFigure, tuple[str, str, alt.Axis]] = {
    "hit_rate": ("Hit rate", "hit rate of the cache", alt.Axis(format="%")),
    "disk_read_per_s": ("Disk reads", "bytes read from the disk per second", charts.COUNT_AXIS),
    "steady_s": ("Cold start", "time until the hit rate is steady", alt.Axis(labelExpr="format(datum.value, '~s') + 's'")),
}
_HOW = (
    "Each line joins the rates of a level, from the lowest to the highest. A line further left takes less load for the same figure; for hit rates higher "
    "is better, for the time of a cold start lower."
)


class CurveRow(NamedTuple):
    """A level at a rate: a figure over the load average, or over the rate; `step` orders the points of a line."""

    level: str
    step: int
    x: float
    y: float


class _Pass(NamedTuple):
    """The rates of a load that were held one after the other: at once, or after restarts. The first of them is step `first`."""

    name: str
    title: str
    load: str
    first: int
    length: int

    @property
    def steps(self) -> range:
        """Its steps."""
        return range(self.first, self.first + self.length)


def load_curves(summary: FactorsSummary) -> Section | None:
    """The section of these charts; None of a study without them, or of which nothing of it was measured."""
    result = summary.result
    wanted = result.curves
    if wanted is None:
        return None
    printed = printed_by_figure(summary.published)
    grids: list[Block] = [
        Grid(drawn)
        for name in wanted.parts
        if name in result.parts
        for figure in wanted.figures
        for passed in _passes(result, result.parts[name])
        if (drawn := _charts(result, wanted, printed, name, figure, passed))
    ]
    if not grids:
        return None
    lacking = not any(_LOAD in row.figures for name in wanted.parts if name in result.parts for row in result.parts[name].rows)
    note = (
        Text("These results are from before the load average was sampled: charts over it are left out.", "note")
        if lacking
        else None
    )
    return Section("load-curves", wanted.title, [Text(wanted.about), note, *grids])


def _passes(result: FactorsFigures, part: FactorPartFigures) -> list[_Pass]:
    """How often the rates of each load of a part were held."""
    found = []
    for load in dict.fromkeys(row.load for row in part.rows):
        count = len(result.rates[load])
        steps = {row.where for row in part.rows if row.load == load and row.where != FILLED}
        found.append(_Pass("", "", load, 0, count))
        if max(map(int, steps), default=0) >= count:
            found[-1] = found[-1]._replace(title=", at once")
            found.append(_Pass("-again", ", after restarts", load, count, count))
    return found


def _charts(
    result: FactorsFigures, wanted: LoadCurves, printed: Mapping[str, float], name: str, figure: CurveFigure, passed: _Pass
) -> list[Chart]:
    """The charts of a figure of a part: as published, here over the load average, here over the rate. Those without a line are left out."""
    part = result.parts[name]
    measured = [row for row in part.rows if row.load == passed.load and row.where in passed.steps and figure in row.figures]
    if not measured:
        return []
    title, id_ = f"{_FIGURES[figure][0]}, {part.title.lower()}{passed.title}", f"load-{name}-{figure}{passed.name}"
    levels = part.levels
    drawn = [
        (
            "published",
            "as the paper printed them",
            f"load of the paper's servers{_unit(wanted)}",
            _printed(wanted, printed, name, part, figure, passed),
        ),
        ("load", "here, over the load average", "load average of the machine", _over_load(measured, figure)),
        ("rate", "here, over the rate", "requests per second", _over_rate(measured, figure)),
    ]
    return [
        Chart(f"{id_}-{over}", _drawn(rows, levels, figure, x_title), f"{title}: {words}")
        for over, words, x_title, rows in drawn
        if len({row.step for row in rows}) > 1
    ]


def _unit(wanted: LoadCurves) -> str:
    return f", {wanted.printed_unit}" if wanted.printed_unit else ""


def _printed(
    wanted: LoadCurves, printed: Mapping[str, float], name: str, part: FactorPartFigures, figure: CurveFigure, passed: _Pass
) -> list[CurveRow]:
    """What the paper printed of the levels of a part, over the load that it printed."""
    return [
        CurveRow(level, step, printed[x], printed[y])
        for level in part.levels
        for step in passed.steps
        if (x := formula(wanted.printed_load, passed.load, name, level, step)) in printed
        and (y := formula(figure, passed.load, name, level, step)) in printed
    ]


def _over_load(measured: Sequence[LevelFigures], figure: CurveFigure) -> list[CurveRow]:
    return [
        CurveRow(row.level, int(row.where), row.figures[_LOAD].value, row.figures[figure].value)
        for row in measured
        if _LOAD in row.figures
    ]


def _over_rate(measured: Sequence[LevelFigures], figure: CurveFigure) -> list[CurveRow]:
    return [
        CurveRow(row.level, int(row.where), row.rate_per_s, row.figures[figure].value)
        for row in measured
        if row.rate_per_s is not None
    ]


def _drawn(rows: Sequence[CurveRow], levels: list[str], figure: CurveFigure, x_title: str) -> ChartSpec:
    """A line for each level. All charts give a level the same colour, whether they have it or not."""
    _, title, axis = _FIGURES[figure]
    names = [level for level in levels if any(row.level == level for row in rows)]
    colours = alt.Scale(domain=names, range=[charts.COLOURS[levels.index(name) % len(charts.COLOURS)] for name in names])
    lines = (
        charts.data_of(rows)
        .mark_line(strokeWidth=1.8, point=alt.OverlayMarkDef(size=36))
        .encode(
            x=alt.X("x:Q", title=x_title, axis=charts.COUNT_AXIS, scale=alt.Scale(zero=False, padding=15)),
            y=alt.Y("y:Q", title=title, axis=axis),
            color=alt.Color("level:N", title=None, scale=colours, legend=charts.names_legend(names)),
            order=alt.Order("step:Q"),
            tooltip=[alt.Tooltip("level:N"), alt.Tooltip("x:Q", format=".3~s"), alt.Tooltip("y:Q", format=".3~s")],
        )
    )
    return charts.sized(lines, _HOW)
