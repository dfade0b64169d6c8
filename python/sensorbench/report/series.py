"""The page of a study of several datasets or parts: the way to each report, the sections of the study, how figures grow with the
data, and each claim over all of them.
"""

from pathlib import Path
from typing import Any

import altair as alt

from sensorbench.report import charts
from sensorbench.report.build import REPORT_FILE, write_templated_page
from sensorbench.report.sections import pictures
from sensorbench.results.summary.comparison import SeriesSummary

# What grows: the time to load, the size, and the latency of each question.
_AXES = {
    "load": alt.Y(
        "value:Q", title="time to loaded and settled", scale=alt.Scale(type="log", nice=False), axis=charts.LATENCY_AXIS
    ),
    "size": alt.Y(
        "value:Q", title="bytes on disk", scale=alt.Scale(type="log", nice=False), axis=alt.Axis(format="~s", tickCount=6)
    ),
}
_LATENCY = alt.Y("value:Q", title=charts.LATENCY_TITLE, scale=alt.Scale(type="log", nice=False), axis=charts.LATENCY_AXIS)


def write_series_page(folder: Path, summary: SeriesSummary) -> Path:
    """Writes the page of a series into its folder."""
    titles = _titles(summary)
    grown = {f"growth-{what}": titles[what] for what in _what_grows(summary)}
    drawn = {**{f"growth-{what}": _growth(summary, what) for what in _what_grows(summary)}, **pictures(summary.result.sections)}
    return write_templated_page(folder, "series.html.j2", drawn, summary=summary, grown=grown, report_file=REPORT_FILE)


def _what_grows(summary: SeriesSummary) -> list[str]:
    return list(dict.fromkeys(row.what for row in summary.result.growth))


def _titles(summary: SeriesSummary) -> dict[str, str]:
    """What each chart is about; the share of a variant differs from dataset to dataset."""
    titles = {"load": "Loading", "size": "Size on disk"}
    for part in summary.result.parts.values():
        for name, operation in part.operations.items():
            variant = operation.variant
            titles[name] = f"{operation.title.rpartition(',')[0]}, {variant}" if variant else operation.title
    return titles


def _growth(summary: SeriesSummary, what: str) -> dict[str, Any]:
    rows = [{"setting": row.variant, **row.model_dump(exclude={"variant"})} for row in summary.result.growth if row.what == what]
    settings = list(dict.fromkeys(row["setting"] for row in rows))
    chart = charts.line_of_settings(rows, settings).encode(
        x=alt.X("readings:Q", title="readings, logarithmic", scale=alt.Scale(type="log"), axis=charts.COUNT_AXIS),
        y=_AXES.get(what, _LATENCY),
        tooltip=[alt.Tooltip("setting:N"), alt.Tooltip("dataset:N"), alt.Tooltip("value:Q", format=".3~s")],
    )
    return charts.sized(chart, height=330)
