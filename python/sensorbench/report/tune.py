"""The page of a search for settings: what came out, what to paste, what was tried, how the default drifted."""

from pathlib import Path
from typing import Any

import altair as alt

from sensorbench.report import charts, tune_answer
from sensorbench.report.build import CHARTS_FOLDER, FILE_WIDTH, write_chart_files, write_page
from sensorbench.report.parallel import parallel, places

ROLES = {"default": "default", "search": "searched", "stopped": "given up"}


def write_tune_report(folder: Path, summary: dict[str, Any]) -> Path:
    """Writes `report.html` into the folder of the results, and its charts as SVG and PNG beside it. Returns the page."""
    drawn = _charts(summary)
    path = write_page(folder, "tune.html.j2", drawn, summary=summary, tune_answer=tune_answer)
    write_chart_files(folder / CHARTS_FOLDER, drawn, FILE_WIDTH)
    return path


def _charts(summary: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """All charts by name; those without data are left out."""
    shown = [one for one in summary["trials"] if one["value"] is not None]
    searched = [one for one in shown if one["role"] == "search" and one["ratio"] is not None]
    drawn = {}
    if shown:
        drawn["history"] = _history(shown, summary)
    if searched:
        drawn["parallel"] = _parallel(searched, summary)
    return drawn


def _history(trials: list[dict[str, Any]], summary: dict[str, Any]) -> dict[str, Any]:
    """The figure of each trial in their order; repeats of the default are joined by a line."""
    rows = [
        {
            "number": one["number"],
            "value": one["value"],
            "kind": ROLES["stopped" if one["outcome"] == "stopped" else one["role"]],
            "settings": ", ".join(f"{key}={value}" for key, value in one["configuration"].items()),
        }
        for one in trials
    ]
    kinds = [kind for kind in ROLES.values() if any(row["kind"] == kind for row in rows)]
    colours = dict(zip(ROLES.values(), (charts.COLOURS[1], charts.COLOURS[0], charts.QUIET), strict=True))
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("number:Q", title="trial", axis=alt.Axis(tickMinStep=1, format="d")),
        y=_value_axis(summary),
        color=alt.Color(
            "kind:N",
            title=None,
            scale=alt.Scale(domain=kinds, range=[colours[kind] for kind in kinds]),
            legend=alt.Legend(orient="bottom"),
        ),
    )
    line = base.transform_filter(alt.datum.kind == ROLES["default"]).mark_line(strokeWidth=1.6, strokeDash=[4, 3])
    points = base.mark_point(filled=True, size=60, opacity=1).encode(
        tooltip=[alt.Tooltip("number:Q"), alt.Tooltip("kind:N"), alt.Tooltip("value:Q"), alt.Tooltip("settings:N")]
    )
    return charts.sized(line + points, height=300)


def _value_axis(summary: dict[str, Any]) -> alt.Y:
    title, scale = f"{tune_answer.goal(summary)}, logarithmic", alt.Scale(type="log", nice=False, padding=12)
    axis = charts.LATENCY_AXIS if summary["goal"]["kind"] == "duration_s" else charts.COUNT_AXIS
    return alt.Y("value:Q", title=title, scale=scale, axis=axis)


def _parallel(trials: list[dict[str, Any]], summary: dict[str, Any]) -> dict[str, Any]:
    """A line for each trial: numbers by their order of size, words by their order in the space."""
    settings = summary["space"]["settings"]
    of_setting = {key: places(_order(key, setting, trials)) for key, setting in settings.items()}
    rows = [
        {
            "line": one["number"],
            "setting": key,
            "place": of_setting[key][str(choice)],
            "value": one["configuration"][key],
            "ratio": one["ratio"],
        }
        for one in trials
        for key, choice in one["choices"].items()
    ]
    return parallel(rows, list(settings), smaller_is_better=summary["goal"]["smaller_is_better"])


def _order(key: str, setting: dict[str, Any], trials: list[dict[str, Any]]) -> list[Any]:
    """In which order the values of a setting are drawn."""
    return setting.get("values") or sorted({one["choices"][key] for one in trials})
