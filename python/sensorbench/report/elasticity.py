"""The page of a work on elasticity: the curve of each transition with its areas and events, the scores, and what was lost."""

from pathlib import Path
from typing import Any

import altair as alt
import numpy as np

from sensorbench.report import charts
from sensorbench.report.build import CHARTS_FOLDER, FILE_WIDTH, write_chart_files, write_page

# What a page says first of the rules by which a cluster is stable again.
RULES = {
    "by_band": "the median of five is near the level at the end",
    "by_rule": "five in a row differ little (the source's rule)",
    "in_band": "both: five in a row differ little, near the level at the end",
}
PARTS = ("before", "during", "after")
# How many pieces the shaded areas are drawn with.
_PIECES = 200


def write_elasticity_report(folder: Path, summary: dict[str, Any]) -> Path:
    """Writes `report.html` into the folder of the results, and its charts as SVG and PNG beside it. Returns the page."""
    drawn = {f"transition-{one['number']}": _curve(one) for one in summary["transitions"] if len(one["sets"]["time_s"]) > 1}
    path = write_page(folder, "elasticity.html.j2", drawn, summary=summary, rules=RULES, parts=PARTS)
    write_chart_files(folder / CHARTS_FOLDER, drawn, FILE_WIDTH)
    return path


def _curve(one: dict[str, Any]) -> dict[str, Any]:
    """Set times over time with their deviations, the ramp, both areas, and what happened when."""
    times_s, durations_s, deviations_s = (np.array(one["sets"][key]) for key in ("time_s", "duration_s", "sd_s"))
    rows = [
        {"time": time, "duration": duration, "low": duration - deviation, "high": duration + deviation}
        for time, duration, deviation in zip(times_s, durations_s, deviations_s, strict=True)
    ]
    x = alt.X("time:Q", title="time, s", scale=alt.Scale(nice=False, padding=8))
    base = alt.Chart(alt.InlineData(values=rows)).encode(x=x)
    y = alt.Y("duration:Q", title="a request set takes, s", scale=alt.Scale(zero=True))
    line = base.mark_line(strokeWidth=1.6, color=charts.COLOURS[0]).encode(y=y)
    points = base.mark_point(filled=True, size=24, opacity=1, color=charts.COLOURS[0]).encode(
        y=y, tooltip=[alt.Tooltip("time:Q", format=".1f"), alt.Tooltip("duration:Q", format=".4~f")]
    )
    bars = base.mark_rule(opacity=0.45, color=charts.COLOURS[0]).encode(y=alt.Y("low:Q"), y2=alt.Y2("high:Q"))
    return charts.sized(alt.layer(*_areas(one), *_events(one), bars, line, points), height=340)


def _areas(one: dict[str, Any]) -> list[alt.Chart]:
    """Area A, between the curve and the ramp, and area B, under the deviations, as far as the cluster was stable again."""
    score = one["scores"].get("by_band", {})
    if "elasticity" not in score:
        return []
    at_s = np.linspace(score["bootstrap_at_s"], score["stable_at_s"], _PIECES)
    sets = one["sets"]
    rows = [
        {"time": time, "curve": curve, "ramp": ramp, "deviation": deviation, "zero": 0.0}
        for time, curve, ramp, deviation in zip(
            at_s,
            np.interp(at_s, sets["time_s"], sets["duration_s"]),
            np.interp(at_s, at_s[[0, -1]], [score["av1_s"], score["av2_s"]]),
            np.interp(at_s, sets["time_s"], sets["sd_s"]),
            strict=True,
        )
    ]
    base = alt.Chart(alt.InlineData(values=rows)).encode(x=alt.X("time:Q"))
    return [
        base.mark_area(opacity=0.3, color=charts.COLOURS[1]).encode(y=alt.Y("curve:Q"), y2=alt.Y2("ramp:Q")),
        base.mark_area(opacity=0.3, color=charts.COLOURS[3]).encode(y=alt.Y("deviation:Q"), y2=alt.Y2("zero:Q")),
        base.mark_line(strokeDash=[5, 4], strokeWidth=1.2, color=charts.QUIET).encode(y=alt.Y("ramp:Q")),
    ]


def _events(one: dict[str, Any]) -> list[alt.Chart]:
    """What happened, as lines with words; words of events that are close follow each other downwards."""
    rows = [
        {"time": event["time_s"], "name": event["name"], "place": 8 + 13 * (place % 6)}
        for place, event in enumerate(one["events"])
    ]
    if not rows:
        return []
    base = alt.Chart(alt.InlineData(values=rows)).encode(x=alt.X("time:Q"))
    return [
        base.mark_rule(strokeDash=[2, 3], color=charts.QUIET),
        base.mark_text(align="left", dx=4, fontSize=10, color=charts.QUIET).encode(
            y=alt.Y("place:Q", scale=None, axis=None), text=alt.Text("name:N")
        ),
    ]
