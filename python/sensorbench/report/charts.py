"""Charts. Each takes finished values and draws them; nothing is computed here."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import altair as alt
from altair.utils import schemapi

from sensorbench.report import formatting
from sensorbench.results.page import ChartSpec

# Specifications are checked when they are whole (`sized`), and not again for each of their parts, which takes as long as all the rest.
# For the same reason channels are written as `alt.Y("low:Q")`, and not as "low:Q", of which altair would have to find out what it is.
schemapi.disable_debug_mode()

# Okabe and Ito's colours, which people with any colour vision can distinguish, lightened to be seen on dark ground, too.
COLOURS = ["#3b82c4", "#e07b39", "#2fa37c", "#c46ca0", "#d9a521", "#6bb6e8", "#8d6fc9", "#8a8a8a"]
# For what is seen on light and on dark ground and says nothing itself.
QUIET = "#8a8a8a"
HEIGHT = 230


def variant_colour(variants: list[str]) -> alt.Color:
    """A colour for each of a few variants, and a legend below."""
    names = [formatting.variant(variant) for variant in variants]
    return alt.Color(
        "variant:N",
        title=None,
        scale=alt.Scale(domain=names, range=COLOURS[: len(names)]),
        legend=alt.Legend(orient="bottom", columns=2),
    )


def _variants_below(variants: list[str]) -> alt.Y:
    """A row for each variant, in their order; the parts of a long name one below the other."""
    is_long, words = f"length(datum.label) > {LONG_NAME}", "split(datum.label, ' · ')"
    # Lines begin at the middle of their row. Moved up by half of those that follow, they are beside it, and the last name is within the chart:
    # one beyond its edge is not drawn.
    moved = {"condition": {"test": is_long, "expr": f"{-_LINE / 2} * (length({words}) - 1)"}, "value": 0}
    axis = alt.Axis(labelExpr=f"{is_long} ? {words} : datum.label", labelLineHeight=_LINE, labelOffset=moved)
    return alt.Y("variant:N", title=None, sort=list(map(formatting.variant, variants)), axis=axis)


# Longer names take more than one line, each of this height in pixels.
LONG_NAME = 22
_LINE = 14


def colours_of(values: Sequence[str]) -> alt.Scale:
    """A colour for each of some values."""
    names = list(dict.fromkeys(values))
    return alt.Scale(domain=names, range=[COLOURS[number % len(COLOURS)] for number in range(len(names))])


def coloured(field: str, colours: Mapping[str, str], **legend: Any) -> alt.Color:
    """A colour for each value of a field, in their order, and a legend below."""
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    return alt.Color(f"{field}:N", title=None, scale=scale, legend=alt.Legend(orient="bottom", **legend))


# What a line of a legend has room for, and what a name takes for its symbol, in characters.
_LEGEND_CHARACTERS, _SYMBOL_CHARACTERS = 112, 5
_MAX_LEGEND_COLUMNS = 4


def names_legend(names: Iterable[str]) -> alt.Legend:
    """A legend below of some names, as many in a line as it has room for."""
    widest = max(map(len, names), default=0) + _SYMBOL_CHARACTERS
    columns = min(max(_LEGEND_CHARACTERS // widest, 1), _MAX_LEGEND_COLUMNS)
    return alt.Legend(orient="bottom", columns=columns, symbolOpacity=1)


def named_colour(field: str, values: Sequence[str]) -> alt.Color:
    """A colour for each of some values of a field, and a legend below."""
    return alt.Color(f"{field}:N", title=None, scale=colours_of(values), legend=names_legend(values))


# For shapes, next to the legend of colours.
STATES_LEGEND = alt.Legend(orient="bottom", symbolFillColor=QUIET, symbolStrokeColor=QUIET)


class _Rows(alt.InlineData):
    """Rows that all copies of a chart share. Altair copies a chart for each layer and each property, and would copy every value each time."""

    def __deepcopy__(self, memo: object) -> "_Rows":
        return self


class Row(Protocol):
    """A row of a chart's data: a NamedTuple."""

    def _asdict(self) -> dict[str, Any]:
        """Its fields, by which the chart's channels name them."""


class VariantRow(Row, Protocol):
    """A row about one variant."""

    @property
    def variant(self) -> str:
        """Its id."""


def data_of(rows: Iterable[Row]) -> alt.Chart:
    """The chart of some rows, of which nothing is drawn yet."""
    return alt.Chart(_Rows(values=[row._asdict() for row in rows]))


def of_variants(rows: Iterable[VariantRow]) -> alt.Chart:
    """The chart of rows about variants, which are shown by their names; nothing of it is drawn yet."""
    values = [{**row._asdict(), "variant": formatting.variant(row.variant)} for row in rows]
    return alt.Chart(_Rows(values=values))


def sized(chart: alt.LayerChart | alt.FacetChart | alt.Chart, how: str, height: int = HEIGHT) -> ChartSpec:
    """The specification of a chart that is as wide as its place; `how` says in a sentence how to read it."""
    specification: ChartSpec = chart.properties(width="container", height=height).to_dict()
    return {**specification, "usermeta": {"how": how}}


# Seconds with the prefix that fits: 100µs, 1ms, 20ms.
LATENCY_AXIS = alt.Axis(labelExpr="format(datum.value, '~s') + 's'", tickCount=6)
COUNT_AXIS = alt.Axis(format="~s", tickCount=6)
LATENCY_TITLE = "latency, logarithmic"
SECONDS = alt.Tooltip("latency_s:Q", format=".3~s", title="seconds")


def latency_axis(field: str = "latency_s") -> alt.Y:
    """Latencies upwards, logarithmic."""
    return alt.Y(f"{field}:Q", title=LATENCY_TITLE, scale=alt.Scale(type="log", nice=False), axis=LATENCY_AXIS)


_HOW_FIGURES = (
    "The dot is the figure of a variant, the line its 95% confidence interval; further left is faster. The axis is "
    "logarithmic: equal distances are equal factors."
)


class FigureRow(NamedTuple):
    """A latency of a variant with its interval, in s."""

    variant: str
    value_s: float
    low_s: float | None
    high_s: float | None


def figures(rows: Sequence[FigureRow], variants: list[str]) -> ChartSpec:
    """Latency of each variant at one question with its interval."""
    base = of_variants(rows).encode(y=_variants_below(variants), color=variant_colour(variants).legend(None))
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
    return sized(ranges + points, _HOW_FIGURES, height=_below(variants))


# Lines of one colour are distinguished by their strokes.
STROKES = [[1, 0], [6, 3], [2, 2], [8, 2, 2, 2]]


def line_of_variants(rows: Sequence[VariantRow], variants: list[str]) -> alt.Chart:
    """A line with points for each of many variants, distinguished by colour and stroke."""
    names = [formatting.variant(variant) for variant in variants]
    strokes = [STROKES[number // len(COLOURS) % len(STROKES)] for number in range(len(names))]
    colours = [COLOURS[number % len(COLOURS)] for number in range(len(names))]
    legend = alt.Legend(orient="bottom", columns=2, symbolType="stroke", symbolSize=200, symbolStrokeWidth=3)
    line: alt.Chart = of_variants(rows).mark_line(strokeWidth=1.8, point=alt.OverlayMarkDef(size=30))
    coloured: alt.Chart = line.encode(
        color=alt.Color("variant:N", title=None, scale=alt.Scale(domain=names, range=colours), legend=legend),
        strokeDash=alt.StrokeDash("variant:N", scale=alt.Scale(domain=names, range=strokes), legend=None),
    )
    return coloured


class ShareRow(NamedTuple):
    """The same of an instance of an operation, which asks for a share of the rows."""

    variant: str
    share: float
    instance: str | None
    value_s: float
    low_s: float | None
    high_s: float | None


def selectivity(rows: Sequence[ShareRow], variants: list[str]) -> ChartSpec:
    """Latency of each variant by the share of the rows that is asked for."""
    lines = line_of_variants(rows, variants)
    x = alt.X(
        "share:Q", title="share of the rows, logarithmic", scale=alt.Scale(type="log"), axis=alt.Axis(format="~%", tickCount=6)
    )
    # Wide intervals would press the curves together: they are cut at the edge.
    shown = [row.value_s for row in rows]
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
        of_variants(rows)
        .transform_filter("isValid(datum.low_s)")
        .mark_rule(opacity=0.4, clip=True)
        .encode(x=x, y=alt.Y("low_s:Q", scale=scale), y2=alt.Y2("high_s:Q"), color=alt.Color("variant:N"))
    )
    how = (
        "Each line is a variant; lower is faster. To the right the operation reads a larger share of the rows: where two lines "
        "cross, the other variant becomes the faster one."
    )
    return sized(ranges + line, how, height=330)


class QuantileRow(NamedTuple):
    """Within which time so large a share of the answers of a variant came."""

    variant: str
    latency_s: float
    share: float


def distribution(rows: Sequence[QuantileRow], variants: list[str]) -> ChartSpec:
    """Which share of the answers came within which time."""
    x = alt.X("latency_s:Q", title=LATENCY_TITLE, scale=alt.Scale(type="log", nice=False), axis=LATENCY_AXIS)
    y = alt.Y("share:Q", title="share of answers within", axis=alt.Axis(format="%", tickCount=5))
    shown = [SECONDS, alt.Tooltip("share:Q", format=".1%")]
    how = (
        "At each latency, the curve is the share of answers that came within it; a curve further left is faster. How long the curve "
        "takes for its last few percent is the tail, which p99 measures."
    )
    return _lines(rows, variants, x, y, shown, how, strokeWidth=2, interpolate="step-after")


class RequestRow(NamedTuple):
    """A request of a run, by its number, and the smoothed line through all of them."""

    variant: str
    request: float
    latency_s: float
    smoothed_s: float


def over_run(rows: Sequence[RequestRow], variants: list[str], marks: list[int]) -> ChartSpec:
    """Latency over the requests of the first run; `marks` are requests to mark."""
    base = of_variants(rows).encode(
        x=alt.X("request:Q", title="number of the request in the run"), color=variant_colour(variants)
    )
    y = latency_axis()
    points = base.mark_circle(size=10, opacity=0.35).encode(
        y=y,
        tooltip=[alt.Tooltip("variant:N"), alt.Tooltip("request:Q"), SECONDS],
    )
    line = base.mark_line(strokeWidth=1.8).encode(y=alt.Y("smoothed_s:Q"))
    rules = (
        alt.Chart(alt.InlineData(values=[{"mark": mark} for mark in marks]))
        .mark_rule(strokeDash=[4, 4], color=QUIET)
        .encode(x=alt.X("mark:Q"))
    )
    how = "Each dot is a request, the line smooths them; lower is faster. A line that falls at its beginning is a database that warms up."
    return sized(points + line + rules, how)


class IntervalRow(NamedTuple):
    """A quantile of the latencies in an interval of a run."""

    variant: str
    time_s: float
    quantile: str
    latency_s: float


def over_time(rows: Sequence[IntervalRow], variants: list[str], last_s: float) -> ChartSpec:
    """Median and 99th percentile over the time of the first run, which ends at `last_s`."""
    line = of_variants(rows).mark_line(strokeWidth=1.8, point=_DOTS)
    return sized(
        line.encode(
            x=time_axis(last_s),
            y=latency_axis(),
            color=variant_colour(variants),
            strokeDash=alt.StrokeDash("quantile:N", title=None, legend=alt.Legend(orient="bottom", symbolType="stroke")),
            tooltip=[alt.Tooltip("variant:N"), alt.Tooltip("quantile:N"), alt.Tooltip("time_s:Q"), SECONDS],
        ),
        "A solid line is the median of each interval, a dashed one its p99; lower is faster. Where only p99 rises, a few requests were slow.",
    )


class InverseRow(NamedTuple):
    """The inverse of a percentile of the latency."""

    variant: str
    percentile: float
    per_s: float


def throughput(rows: Sequence[InverseRow], variants: list[str]) -> ChartSpec:
    """Answers a second of one client, if every answer took as long as at this percentile."""
    x = alt.X("percentile:Q", title="percentile of the latency")
    scale = alt.Scale(type="log", nice=False)
    y = alt.Y("per_s:Q", title="1 / latency, per second", scale=scale, axis=COUNT_AXIS)
    how = "Higher is faster. How far a line falls to the right is how much slower the slowest answers are than the median."
    return _lines(rows, variants, x, y, [alt.Tooltip("percentile:Q"), _PER_S], how, strokeWidth=2)


class LoadRow(NamedTuple):
    """How long a step of loading took."""

    variant: str
    step: str
    seconds: float


def load(rows: Sequence[LoadRow], variants: list[str]) -> ChartSpec:
    """How long loading and settling took."""
    bars = _bars(rows, variants, [alt.Tooltip("step:N"), alt.Tooltip("seconds:Q", format=".3~g")])
    colour = coloured("step", {"load": "#3b82c4", "settle": "#a8c8e6"})
    drawn = bars.encode(x=alt.X("sum(seconds):Q", title="seconds"), color=colour, order=alt.Order("step:N"))
    how = "A bar is the time until a variant was loaded and had settled; shorter is faster."
    return sized(drawn, how, height=_below(variants))


def _bars(rows: Sequence[VariantRow], variants: list[str], shown: Sequence[alt.Tooltip]) -> alt.Chart:
    """A bar for each variant; `shown` is what its tooltip shows, besides the variant."""
    bars: alt.Chart = of_variants(rows).mark_bar()
    encoded: alt.Chart = bars.encode(y=_variants_below(variants), tooltip=[alt.Tooltip("variant:N"), *shown])
    return encoded


def _below(variants: list[str]) -> int:
    """The height of a chart with a row for each variant, which has room for the lines of the longest name."""
    lines = max((variant.count("-") + 1 for variant in variants if len(formatting.variant(variant)) > LONG_NAME), default=1)
    return max(34, _LINE * lines + 6) * len(variants) + 10


class SizeRow(NamedTuple):
    """What the data of a variant take."""

    variant: str
    megabytes: float


def size(rows: Sequence[SizeRow], variants: list[str]) -> ChartSpec:
    """Bytes on disk."""
    bars = _bars(rows, variants, [alt.Tooltip("megabytes:Q", format=",.4~g")])
    drawn = bars.encode(x=alt.X("megabytes:Q", title="megabytes on disk"), color=variant_colour(variants).legend(None))
    return sized(drawn, "A bar is what the data of a variant take; shorter takes less.", height=_below(variants))


class RateRow(NamedTuple):
    """Operations per second in an interval of a run."""

    variant: str
    time_s: float
    per_s: float


def rate(rows: Sequence[RateRow], variants: list[str]) -> ChartSpec:
    """Operations per second over time."""
    x = alt.X("time_s:Q", title="seconds since the run began")
    y = alt.Y("per_s:Q", title="operations per second", axis=COUNT_AXIS)
    how = "Higher means more operations per second. A line that drops shows when the database, or the machine, was slowed down."
    return _lines(rows, variants, x, y, [alt.Tooltip("time_s:Q"), _PER_S], how, strokeWidth=1.8, interpolate="step-after")


class UseRow(NamedTuple):
    """What the servers of a variant used at a time of its run."""

    variant: str
    time_s: float
    processors: float
    megabytes: float


def processors(rows: Sequence[UseRow], variants: list[str], last_s: float) -> ChartSpec:
    """CPUs that servers kept busy, over time."""
    return _use_over_time(rows, variants, last_s, "processors", "CPUs busy")


def memory(rows: Sequence[UseRow], variants: list[str], last_s: float) -> ChartSpec:
    """Memory of servers over time."""
    return _use_over_time(rows, variants, last_s, "megabytes", "megabytes of memory")


def time_axis(last_s: float) -> alt.X:
    """One axis for all charts over time, so that they can be read below one another."""
    return alt.X("time_s:Q", title="seconds since the run began", scale=alt.Scale(domain=[0.0, last_s], nice=False))


def _use_over_time(rows: Sequence[UseRow], variants: list[str], last_s: float, quantity: str, title: str) -> ChartSpec:
    y = alt.Y(f"{quantity}:Q", title=title)
    shown = [alt.Tooltip("time_s:Q"), alt.Tooltip(f"{quantity}:Q", format=",.4~g")]
    how = (
        "A line is what the servers of a variant used; the time is the same as in the charts of latency, so that you can compare."
    )
    return _lines(rows, variants, time_axis(last_s), y, shown, how, strokeWidth=1.8, point=_DOTS)


_DOTS = alt.OverlayMarkDef(size=14)
_PER_S = alt.Tooltip("per_s:Q", format=",.4~g")


def _lines(
    rows: Sequence[VariantRow],
    variants: list[str],
    x: alt.X,
    y: alt.Y,
    shown: Sequence[alt.Tooltip],
    how: str,
    **mark: Any,
) -> ChartSpec:
    """A line for each variant; `shown` is what its tooltip shows, besides the variant."""
    line = of_variants(rows).mark_line(**mark)
    return sized(line.encode(x=x, y=y, color=variant_colour(variants), tooltip=[alt.Tooltip("variant:N"), *shown]), how)
