"""Draws curves: a figure of several lines over another one, both on logarithmic axes."""

from typing import Any, Literal

import altair as alt

from sensorbench.report import charts
from sensorbench.results.page import ChartSpec
from sensorbench.results.summary.comparison import ShownCurves

# Wide intervals would press the lines together: they are cut so far beyond the outermost points, as a factor.
_MARGIN = 1.4
_HEIGHT = 300
_AXES = {"count": charts.COUNT_AXIS, "duration_s": charts.LATENCY_AXIS}


def curves(picture: ShownCurves) -> ChartSpec:
    """The chart of some curves, whose points all lie above zero."""
    points = picture["points"]
    figures = list(dict.fromkeys(point["figure"] for point in points))
    strokes = alt.Scale(domain=figures, range=[charts.STROKES[place % len(charts.STROKES)] for place in range(len(figures))])
    x, y = _axis(picture, "x"), _axis(picture, "y")
    base = alt.Chart(alt.InlineData(values=points)).encode(
        x=alt.X("x:Q", **x), color=charts.named_colour("line", [point["line"] for point in points])
    )
    stroke_legend = (
        alt.Legend(orient="bottom", symbolType="stroke", symbolSize=200, symbolStrokeColor=charts.QUIET, symbolStrokeWidth=2)
        if len(figures) > 1
        else None
    )
    tooltip = [
        alt.Tooltip("line:N"),
        alt.Tooltip("figure:N"),
        alt.Tooltip("label:N"),
        *(alt.Tooltip(f"{name}:Q", format=".3~s") for name in ("x", "y", "low", "high")),
    ]
    lines = base.mark_line(strokeWidth=1.8).encode(
        y=alt.Y("y:Q", **y),
        strokeDash=alt.StrokeDash("figure:N", title=None, scale=strokes, legend=stroke_legend),
        order=alt.Order("order:Q"),
    )
    # A layer of their own: points that belong to the lines have no stroke, and their legend hides that of the strokes.
    points = base.mark_point(filled=True, size=36, opacity=1).encode(y=alt.Y("y:Q", **y), tooltip=tooltip)
    ranges = (
        base.transform_filter("isValid(datum.low)")
        .mark_rule(opacity=0.4, clip=True)
        .encode(y=alt.Y("low:Q", **y), y2=alt.Y2("high:Q"))
    )
    how = (
        "Both axes are logarithmic. Each line joins the points of one layout in the order of what was varied, which a point says when it is pointed "
        "at; upright lines are 95% intervals."
    )
    return charts.sized(ranges + lines + points, how, height=_HEIGHT)


def _axis(picture: ShownCurves, which: Literal["x", "y"]) -> dict[str, Any]:
    """Title, scale and axis of one direction."""
    values = [point[which] for point in picture["points"]]
    scale = alt.Scale(type="log", nice=False, domain=[min(values) / _MARGIN, max(values) * _MARGIN])
    title, kind = (picture["x_title"], picture["x_kind"]) if which == "x" else (picture["y_title"], picture["y_kind"])
    return {"title": f"{title}, logarithmic", "scale": scale, "axis": _AXES[kind]}
