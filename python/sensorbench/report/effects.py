"""Draws effects: by how much the change of one factor multiplies a figure, as a forest plot."""

from collections.abc import Sequence

import altair as alt

from sensorbench.report import charts, formatting
from sensorbench.results.page import ChartSpec
from sensorbench.results.summary.comparison import ShownEffect

_ROW_HEIGHT = 21
_CERTAIN, _OPEN = "a significant change", "not known to be one"
# Wide intervals would press the others together: they are cut so far beyond the outermost effects, as a factor.
_MARGIN = 1.5
# The share of the width that is left for the numbers.
_FOR_NUMBERS = 0.12
# The names of rows begin with their number and with what they are, so that equal words make different rows.
_HEADING, _EFFECT = "h", "e"
_PLACE_OF_KIND, _PLACE_OF_WORDS = 3, 4

_ROW_AXIS = alt.Axis(
    labelExpr=f"slice(datum.label, {_PLACE_OF_WORDS})",
    labelFontWeight={
        "condition": {"test": f"slice(datum.label, {_PLACE_OF_KIND}, {_PLACE_OF_WORDS}) === '{_HEADING}'", "value": "bold"},
        "value": "normal",
    },
    ticks=False,
    domain=False,
)
_FACTOR_AXIS = alt.Axis(labelExpr="'× ' + format(datum.value, '~g')", tickCount=7, labelOverlap="greedy", labelSeparation=12)
_FIGURES = [alt.Tooltip(f"{name}:Q", format=".3~g") for name in ("ratio", "low", "high")]


def effects(found: Sequence[ShownEffect]) -> ChartSpec:
    """The chart of some effects, factor by factor, a row each."""
    names, rows = _rows(found)
    low, high = _ends(found)
    operations = [row["operation"] for row in rows]
    colours = charts.colours_of(operations)
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        y=alt.Y("row:N", title=None, sort=names, scale=alt.Scale(domain=names), axis=_ROW_AXIS),
        color=charts.named_colour("operation", operations),
    )
    scale = alt.Scale(type="log", nice=False, domain=[low, low * (high / low) ** (1.0 / (1.0 - _FOR_NUMBERS))])
    x = alt.X("ratio:Q", title="times as much, logarithmic", scale=scale, axis=_FACTOR_AXIS)
    equal = alt.Chart(alt.InlineData(values=[{"ratio": 1.0}])).mark_rule(strokeDash=[4, 4], color=charts.QUIET).encode(x=x)
    ranges = (
        base.transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=2.2)
        .encode(x=alt.X("low_shown:Q"), x2=alt.X2("high_shown:Q"))
    )
    numbers = base.mark_text(align="right", baseline="middle", fontSize=11).encode(x=alt.value("width"), text=alt.Text("times:N"))
    how = (
        "Each row is the change of one factor, and by how much it multiplies the figure, with its 95% interval; a point is "
        "filled when that leaves out 1, which is the dashed line."
    )
    return charts.sized(equal + ranges + _points(base, x, colours) + numbers, how, height=_ROW_HEIGHT * len(names) + 10)


def _points(base: alt.Chart, x: alt.X, colours: alt.Scale) -> alt.Chart:
    states = alt.Scale(domain=[_CERTAIN, _OPEN], range=[1.0, 0.0])
    points: alt.Chart = base.mark_point(size=70, strokeWidth=1.8, opacity=1).encode(
        x=x,
        fill=alt.Fill("operation:N", scale=colours, legend=None),
        fillOpacity=alt.FillOpacity("state:N", scale=states, legend=None),
        tooltip=[alt.Tooltip("factor:N"), alt.Tooltip("change:N"), alt.Tooltip("operation:N"), *_FIGURES, alt.Tooltip("runs:Q")],
    )
    return points


class _EffectRow(ShownEffect):
    """An effect, the name of its row, what is known of it, its number as text, and the ends of its interval as far as they are shown."""

    row: str
    state: str
    times: str
    low_shown: float | None
    high_shown: float | None


def _rows(found: Sequence[ShownEffect]) -> tuple[list[str], list[_EffectRow]]:
    """The names of all rows in order, of which each factor's heading is one, and the rows with an effect."""
    first, last = _ends(found)
    names: list[str] = []
    rows: list[_EffectRow] = []
    for factor in dict.fromkeys(effect["factor"] for effect in found):
        names.append(f"{len(names):0{_PLACE_OF_KIND}}{_HEADING}{factor}")
        for effect in (entry for entry in found if entry["factor"] == factor):
            names.append(f"{len(names):0{_PLACE_OF_KIND}}{_EFFECT}{effect['change']} · {effect['operation']}")
            rows.append(_row(effect, names[-1], first, last))
    return names, rows


def _row(effect: ShownEffect, name: str, first: float, last: float) -> _EffectRow:
    low, high, times = effect["low"], effect["high"], f"× {formatting.significant(effect['ratio'])}"
    if low is None or high is None:
        return {**effect, "row": name, "state": _OPEN, "times": times, "low_shown": None, "high_shown": None}
    state = _OPEN if low <= 1.0 <= high else _CERTAIN
    ends = max(low, first), min(high, last)
    return {**effect, "row": name, "state": state, "times": times, "low_shown": ends[0], "high_shown": ends[1]}


def _ends(found: Sequence[ShownEffect]) -> tuple[float, float]:
    """Between which factors the picture shows effects and their intervals."""
    ratios = [1.0, *(effect["ratio"] for effect in found)]
    return min(ratios) / _MARGIN, max(ratios) * _MARGIN
