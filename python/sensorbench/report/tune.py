"""The page of a search for settings: what came out, what to paste, what was tried, how the default drifted."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt

from sensorbench.report import charts, tune_answer
from sensorbench.report.build import CHARTS_FOLDER, FILE_WIDTH, write_chart_files, write_page
from sensorbench.report.parallel import parallel, places
from sensorbench.results.planned import SearchedSetting
from sensorbench.results.summary.tune import TuneFigures, TuneSummary, TuneTrial

ROLES = {"default": "default", "search": "searched", "stopped": "given up"}


def write_tune_page(folder: Path, summary: TuneSummary) -> Path:
    """Writes `report.html` into the folder of the results, and its charts as SVG and PNG beside it. Returns the page."""
    drawn = _charts(summary.result)
    path = write_page(folder, "tune.html.j2", drawn, summary=summary, tune_answer=tune_answer)
    write_chart_files(folder / CHARTS_FOLDER, drawn, FILE_WIDTH)
    return path


def _charts(result: TuneFigures) -> dict[str, dict[str, Any]]:
    """All charts by name; those without data are left out."""
    shown = [trial for trial in result.trials if trial.value is not None]
    searched = [trial for trial in shown if trial.role == "search" and trial.ratio is not None]
    drawn = {}
    if shown:
        drawn["history"] = _history(shown, result)
    if searched:
        drawn["parallel"] = _parallel(searched, result)
    return drawn


def _history(trials: Sequence[TuneTrial], result: TuneFigures) -> dict[str, Any]:
    """The figure of each trial in their order; repetitions of the default are joined by a line."""
    rows = [
        {
            "number": trial.number,
            "value": trial.value,
            "kind": ROLES["stopped" if trial.outcome == "stopped" else trial.role],
            "settings": ", ".join(f"{key}={value}" for key, value in trial.configuration.items()),
        }
        for trial in trials
    ]
    kinds = [kind for kind in ROLES.values() if any(row["kind"] == kind for row in rows)]
    colours = dict(zip(ROLES.values(), (charts.COLOURS[1], charts.COLOURS[0], charts.QUIET), strict=True))
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("number:Q", title="trial", axis=alt.Axis(tickMinStep=1, format="d")),
        y=_value_axis(result),
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


def _value_axis(result: TuneFigures) -> alt.Y:
    title, scale = f"{tune_answer.goal(result)}, logarithmic", alt.Scale(type="log", nice=False, padding=12)
    axis = charts.LATENCY_AXIS if result.goal.kind == "duration_s" else charts.COUNT_AXIS
    return alt.Y("value:Q", title=title, scale=scale, axis=axis)


def _parallel(trials: Sequence[TuneTrial], result: TuneFigures) -> dict[str, Any]:
    """A line for each trial: numbers by their order of size, words by their order in the space."""
    settings = result.space.settings
    of_setting = {key: places(_order(key, setting, trials)) for key, setting in settings.items()}
    rows = [
        {
            "line": trial.number,
            "setting": key,
            "place": of_setting[key][str(choice)],
            "value": trial.configuration[key],
            "ratio": trial.ratio,
        }
        for trial in trials
        for key, choice in trial.choices.items()
    ]
    return parallel(rows, list(settings), smaller_is_better=result.goal.smaller_is_better)


def _order(key: str, setting: SearchedSetting, trials: Sequence[TuneTrial]) -> Sequence[Any]:
    """In which order the values of a setting are drawn."""
    return setting.values or sorted({trial.choices[key] for trial in trials}, key=float)
