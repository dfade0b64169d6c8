"""Charts. Each takes finished values and draws them; nothing is computed here."""

from typing import Any

import altair as alt
from altair.utils import schemapi

from sensorbench.report import formatting

# Specifications are checked when they are whole (`sized`), and not again for each of their parts, which takes as long as all the rest.
# For the same reason channels are written as `alt.Y("low:Q")`, and not as "low:Q", of which altair would have to find out what it is.
schemapi.disable_debug_mode()

# Okabe and Ito's colours, which people with any colour vision can tell apart, lightened to be seen on dark ground, too.
COLOURS = ["#3b82c4", "#e07b39", "#2fa37c", "#c46ca0", "#d9a521", "#6bb6e8", "#8d6fc9", "#8a8a8a"]
# For what is seen on light and on dark ground and says nothing itself.
QUIET = "#8a8a8a"
HEIGHT = 230


def _colour(variants: list[str]) -> alt.Color:
    names = [formatting.variant(variant) for variant in variants]
    return alt.Color(
        "variant:N",
        title=None,
        scale=alt.Scale(domain=names, range=COLOURS[: len(names)]),
        legend=alt.Legend(orient="bottom", columns=2),
    )


def colours_of(values: list[str]) -> alt.Scale:
    """A colour for each of some values."""
    names = list(dict.fromkeys(values))
    return alt.Scale(domain=names, range=[COLOURS[number % len(COLOURS)] for number in range(len(names))])


NAMES_LEGEND = alt.Legend(orient="bottom", columns=4, symbolOpacity=1)
# Beside colours, what shapes say.
STATES_LEGEND = alt.Legend(orient="bottom", symbolFillColor=QUIET, symbolStrokeColor=QUIET)


class _Rows(alt.InlineData):
    """Rows that all copies of a chart share. Altair copies a chart for each layer and each property, and would copy every value each time."""

    def __deepcopy__(self, memo: object) -> "_Rows":
        return self


def _rows(rows: list[dict[str, Any]]) -> alt.InlineData:
    return _Rows(values=[{**row, "variant": formatting.variant(row["variant"])} for row in rows])


def sized(chart: alt.LayerChart | alt.FacetChart | alt.Chart, height: int = HEIGHT) -> dict[str, Any]:
    """The specification of a chart that is as wide as its place."""
    specification: dict[str, Any] = chart.properties(width="container", height=height).to_dict()
    return specification


# Seconds with the prefix that fits: 100µs, 1ms, 20ms.
LATENCY_AXIS = alt.Axis(labelExpr="format(datum.value, '~s') + 's'", tickCount=6)
COUNT_AXIS = alt.Axis(format="~s", tickCount=6)
LATENCY_TITLE = "latency, logarithmic"


def figures(rows: list[dict[str, Any]], variants: list[str]) -> dict[str, Any]:
    """Latency of each variant at one question with its interval. Rows: variant, value_s, low_s, high_s."""
    y = alt.Y("variant:N", title=None, sort=[formatting.variant(variant) for variant in variants], axis=alt.Axis(labelLimit=220))
    base = alt.Chart(_rows(rows)).encode(y=y, color=_colour(variants).legend(None))
    axis = alt.X("value_s:Q", title=LATENCY_TITLE, scale=alt.Scale(type="log", nice=False, padding=12), axis=LATENCY_AXIS)
    tooltip = [
        alt.Tooltip("variant:N"),
        alt.Tooltip("value_s:Q", format=".3~s", title="seconds"),
        alt.Tooltip("low_s:Q", format=".3~s"),
        alt.Tooltip("high_s:Q", format=".3~s"),
    ]
    points = base.mark_point(filled=True, size=90, opacity=1).encode(x=axis, tooltip=tooltip)
    ranges = (
        base.transform_filter("isValid(datum.low_s)").mark_rule(strokeWidth=2.5).encode(x=alt.X("low_s:Q"), x2=alt.X2("high_s:Q"))
    )
    return sized(ranges + points, height=34 * len(variants) + 10)


# Lines of one colour are distinguished by their strokes.
STROKES = [[1, 0], [6, 3], [2, 2], [8, 2, 2, 2]]


def line_of_variants(rows: list[dict[str, Any]], variants: list[str]) -> alt.Chart:
    """A line with points for each of many variants, distinguished by colour and stroke."""
    names = [formatting.variant(variant) for variant in variants]
    strokes = [STROKES[number // len(COLOURS) % len(STROKES)] for number in range(len(names))]
    colours = [COLOURS[number % len(COLOURS)] for number in range(len(names))]
    legend = alt.Legend(orient="bottom", columns=2, labelLimit=320, symbolType="stroke", symbolSize=200, symbolStrokeWidth=3)
    line: alt.Chart = alt.Chart(_rows(rows)).mark_line(strokeWidth=1.8, point=alt.OverlayMarkDef(size=30))
    coloured: alt.Chart = line.encode(
        color=alt.Color("variant:N", title=None, scale=alt.Scale(domain=names, range=colours), legend=legend),
        strokeDash=alt.StrokeDash("variant:N", scale=alt.Scale(domain=names, range=strokes), legend=None),
    )
    return coloured


def selectivity(rows: list[dict[str, Any]], variants: list[str]) -> dict[str, Any]:
    """Latency of each variant by the share of the rows that is asked for. Rows: variant, share, instance, value_s, low_s, high_s."""
    lines = line_of_variants(rows, variants)
    x = alt.X(
        "share:Q", title="share of the rows, logarithmic", scale=alt.Scale(type="log"), axis=alt.Axis(format="~%", tickCount=6)
    )
    # Wide intervals would press the curves together: they are cut at the edge.
    shown = [row["value_s"] for row in rows]
    scale = alt.Scale(type="log", nice=False, domain=[min(shown) / 1.6, max(shown) * 1.6])
    line = lines.encode(
        x=x,
        y=alt.Y("value_s:Q", title=LATENCY_TITLE, scale=scale, axis=LATENCY_AXIS),
        tooltip=[
            alt.Tooltip("variant:N"),
            alt.Tooltip("instance:N"),
            alt.Tooltip("share:Q", format=".3~%"),
            alt.Tooltip("value_s:Q", format=".3~s", title="seconds"),
        ],
    )
    ranges = (
        alt.Chart(_rows(rows))
        .transform_filter("isValid(datum.low_s)")
        .mark_rule(opacity=0.4, clip=True)
        .encode(x=x, y=alt.Y("low_s:Q", scale=scale), y2=alt.Y2("high_s:Q"), color=alt.Color("variant:N"))
    )
    return sized(ranges + line, height=330)


def distribution(rows: list[dict[str, Any]], variants: list[str]) -> dict[str, Any]:
    """Which share of the answers came within which time. Rows: variant, latency_s, share."""
    line = alt.Chart(_rows(rows)).mark_line(strokeWidth=2, interpolate="step-after")
    return sized(
        line.encode(
            x=alt.X("latency_s:Q", title=LATENCY_TITLE, scale=alt.Scale(type="log", nice=False), axis=LATENCY_AXIS),
            y=alt.Y("share:Q", title="share of answers within", axis=alt.Axis(format="%", tickCount=5)),
            color=_colour(variants),
            tooltip=[
                alt.Tooltip("variant:N"),
                alt.Tooltip("latency_s:Q", format=".3~s", title="seconds"),
                alt.Tooltip("share:Q", format=".1%"),
            ],
        )
    )


def over_run(rows: list[dict[str, Any]], variants: list[str], marks: list[int]) -> dict[str, Any]:
    """Latency over the requests of the first run. Rows: variant, request, latency_s, smoothed_s; `marks` are requests to mark."""
    base = alt.Chart(_rows(rows)).encode(x=alt.X("request:Q", title="number of the request in the run"), color=_colour(variants))
    y = alt.Y("latency_s:Q", title=LATENCY_TITLE, scale=alt.Scale(type="log", nice=False), axis=LATENCY_AXIS)
    points = base.mark_circle(size=10, opacity=0.35).encode(
        y=y,
        tooltip=[alt.Tooltip("variant:N"), alt.Tooltip("request:Q"), alt.Tooltip("latency_s:Q", format=".3~s", title="seconds")],
    )
    line = base.mark_line(strokeWidth=1.8).encode(y=alt.Y("smoothed_s:Q"))
    rules = (
        alt.Chart(alt.InlineData(values=[{"mark": mark} for mark in marks]))
        .mark_rule(strokeDash=[4, 4], color=QUIET)
        .encode(x=alt.X("mark:Q"))
    )
    return sized(points + line + rules)


def over_time(rows: list[dict[str, Any]], variants: list[str], last_s: float) -> dict[str, Any]:
    """Median and 99th percentile over the time of the first run, which ends at `last_s`. Rows: variant, time_s, quantile,
    latency_s.
    """
    line = alt.Chart(_rows(rows)).mark_line(strokeWidth=1.8, point=alt.OverlayMarkDef(size=14))
    return sized(
        line.encode(
            x=time_axis(last_s),
            y=alt.Y("latency_s:Q", title=LATENCY_TITLE, scale=alt.Scale(type="log", nice=False), axis=LATENCY_AXIS),
            color=_colour(variants),
            strokeDash=alt.StrokeDash("quantile:N", title=None, legend=alt.Legend(orient="bottom", symbolType="stroke")),
            tooltip=[
                alt.Tooltip("variant:N"),
                alt.Tooltip("quantile:N"),
                alt.Tooltip("time_s:Q"),
                alt.Tooltip("latency_s:Q", format=".3~s", title="seconds"),
            ],
        )
    )


def throughput(rows: list[dict[str, Any]], variants: list[str]) -> dict[str, Any]:
    """Answers a second of one client, if every answer took as long as at this percentile. Rows: variant, percentile, per_s."""
    line = alt.Chart(_rows(rows)).mark_line(strokeWidth=2)
    return sized(
        line.encode(
            x=alt.X("percentile:Q", title="percentile of the latency"),
            y=alt.Y("per_s:Q", title="1 / latency, per second", scale=alt.Scale(type="log", nice=False), axis=COUNT_AXIS),
            color=_colour(variants),
            tooltip=[alt.Tooltip("variant:N"), alt.Tooltip("percentile:Q"), alt.Tooltip("per_s:Q", format=",.4~g")],
        )
    )


def load(rows: list[dict[str, Any]], variants: list[str]) -> dict[str, Any]:
    """How long loading and settling took. Rows: variant, step, seconds."""
    bars = alt.Chart(_rows(rows)).mark_bar()
    return sized(
        bars.encode(
            y=alt.Y(
                "variant:N", title=None, sort=[formatting.variant(variant) for variant in variants], axis=alt.Axis(labelLimit=220)
            ),
            x=alt.X("sum(seconds):Q", title="seconds"),
            color=alt.Color(
                "step:N",
                title=None,
                scale=alt.Scale(domain=["load", "settle"], range=["#3b82c4", "#a8c8e6"]),
                legend=alt.Legend(orient="bottom"),
            ),
            order=alt.Order("step:N"),
            tooltip=[alt.Tooltip("variant:N"), alt.Tooltip("step:N"), alt.Tooltip("seconds:Q", format=".3~g")],
        ),
        height=34 * len(variants) + 10,
    )


def size(rows: list[dict[str, Any]], variants: list[str]) -> dict[str, Any]:
    """Bytes on disk. Rows: variant, megabytes."""
    bars = alt.Chart(_rows(rows)).mark_bar()
    return sized(
        bars.encode(
            y=alt.Y(
                "variant:N", title=None, sort=[formatting.variant(variant) for variant in variants], axis=alt.Axis(labelLimit=220)
            ),
            x=alt.X("megabytes:Q", title="megabytes on disk"),
            color=_colour(variants).legend(None),
            tooltip=[alt.Tooltip("variant:N"), alt.Tooltip("megabytes:Q", format=",.4~g")],
        ),
        height=34 * len(variants) + 10,
    )


def rate(rows: list[dict[str, Any]], variants: list[str]) -> dict[str, Any]:
    """Operations a second over time. Rows: variant, time_s, per_s."""
    line = alt.Chart(_rows(rows)).mark_line(strokeWidth=1.8, interpolate="step-after")
    return sized(
        line.encode(
            x=alt.X("time_s:Q", title="seconds since the run began"),
            y=alt.Y("per_s:Q", title="operations a second", axis=COUNT_AXIS),
            color=_colour(variants),
            tooltip=[alt.Tooltip("variant:N"), alt.Tooltip("time_s:Q"), alt.Tooltip("per_s:Q", format=",.4~g")],
        )
    )


def processors(rows: list[dict[str, Any]], variants: list[str], last_s: float) -> dict[str, Any]:
    """Processors that servers kept busy, over time. Rows: variant, time_s, processors."""
    return _use_over_time(rows, variants, last_s, "processors", "processors busy")


def memory(rows: list[dict[str, Any]], variants: list[str], last_s: float) -> dict[str, Any]:
    """Memory of servers over time. Rows: variant, time_s, megabytes."""
    return _use_over_time(rows, variants, last_s, "megabytes", "megabytes of memory")


def time_axis(last_s: float) -> alt.X:
    """One axis for all charts over time, so that they can be read below one another."""
    return alt.X("time_s:Q", title="seconds since the run began", scale=alt.Scale(domain=[0.0, last_s], nice=False))


def _use_over_time(rows: list[dict[str, Any]], variants: list[str], last_s: float, quantity: str, title: str) -> dict[str, Any]:
    line = alt.Chart(_rows(rows)).mark_line(strokeWidth=1.8, point=alt.OverlayMarkDef(size=14))
    return sized(
        line.encode(
            x=time_axis(last_s),
            y=alt.Y(f"{quantity}:Q", title=title),
            color=_colour(variants),
            tooltip=[alt.Tooltip("variant:N"), alt.Tooltip("time_s:Q"), alt.Tooltip(f"{quantity}:Q", format=",.4~g")],
        )
    )
