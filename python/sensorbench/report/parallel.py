"""Parallel coordinates: a line for each configuration, through its value of each setting, coloured by a ratio to the default."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import altair as alt

from sensorbench.report import charts
from sensorbench.results.page import ChartSpec

_LEGEND = alt.Legend(orient="bottom", tickCount=4, titleLimit=300)


class ParallelRow(NamedTuple):
    """A setting of a configuration: where its value is drawn, between 0 and 1, and the configuration's ratio to the default."""

    line: str | int
    setting: str
    place: float
    value: str
    ratio: float | None


def parallel(rows: Sequence[ParallelRow], settings: Sequence[str], *, smaller_is_better: bool) -> ChartSpec:
    """The chart of some configurations, each of which is a line."""
    best, worst = charts.COLOURS[2], charts.COLOURS[1]
    scale = alt.Scale(type="log", range=[best, worst] if smaller_is_better else [worst, best])
    base = charts.data_of(rows).encode(
        x=alt.X("setting:N", title=None, sort=list(settings), axis=alt.Axis(labelAngle=-30)),
        y=alt.Y("place:Q", title="smallest or first value … largest or last", axis=alt.Axis(labels=False, ticks=False)),
        color=alt.Color("ratio:Q", title="ratio to the default; green is better", scale=scale, legend=_LEGEND),
        detail="line:N",
        tooltip=[alt.Tooltip("line:N"), alt.Tooltip("setting:N"), alt.Tooltip("value:N"), alt.Tooltip("ratio:Q", format=".3~g")],
    )
    how = "Each line is a configuration, and runs through its value of each setting; the greener, the better. Settings where green lines meet matter."
    return charts.sized(base.mark_line(opacity=0.6) + base.mark_point(filled=True, size=45, opacity=0.9), how, height=300)


def places(order: Sequence[Any]) -> Mapping[str, float]:
    """Where each of some values is drawn, which come in this order."""
    words = list(dict.fromkeys(map(str, order)))
    return {word: number / max(1, len(words) - 1) for number, word in enumerate(words)}
