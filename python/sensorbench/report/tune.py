"""The page of a search for settings: what came out, what to paste, what was tried, how the default drifted."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from sensorbench.report import charts, formatting, parts, tune_answer
from sensorbench.report.parallel import ParallelRow, parallel, places
from sensorbench.results.page import (
    Block,
    Chart,
    ChartSpec,
    Code,
    Columns,
    Facts,
    Grid,
    Line,
    Page,
    Section,
    Table,
    Text,
    ValueKind,
)
from sensorbench.results.planned import SearchedSetting
from sensorbench.results.summary.tune import TuneFigures, TuneSummary, TuneTrial

ROLES = {"default": "default", "search": "searched", "stopped": "given up"}


def tune_page(summary: TuneSummary) -> Page:
    """The page of a search for settings."""
    result, workload = summary.result, summary.result.workload
    shares = parts.mix(workload["mix"], result.operations)
    return Page(
        kind="tune",
        title=summary.title,
        head=[
            Text(f"{workload['data']}. {shares}. {summary.created.date()}.", "about"),
            parts.state(summary.status, summary.reason),
            *parts.warnings(summary.warnings),
            Text(tune_answer.headline(result), "headline"),
        ],
        sections=[
            Section("paste", f"To paste into {result.space.file}", [Code(result.snippet)]) if result.snippet else None,
            _confirmation(result),
            _trials(result),
            _effects(result) if result.effects else None,
            _setting(summary),
            parts.reproduce(summary.command, version=summary.version),
        ],
        footer=parts.footer(summary, " Each trial is a stress run of its own, of which `sensorbench report` makes a page."),
    )


def _kind(result: TuneFigures) -> ValueKind:
    """What kind of values the figures of the goal are."""
    return "rate" if result.goal.kind == "count" else result.goal.kind


def _confirmation(result: TuneFigures) -> Section:
    """Default and best, in the search and in runs of their own."""
    blocks: list[Block] = []
    if result.best is not None:
        rows: list[list[Line]] = [
            [key, str(result.start.get(key, "as the server has it")), str(value)] for key, value in result.best.items()
        ]
        luck = (
            f"In the search it was at {formatting.times(result.search_ratio)} of the default; that is the best of many, and partly luck. Only "
            "the confirmation counts: fresh servers for each run, default and best interleaved, seeds that the search never had."
        )
        blocks += [
            Table([("setting", "text"), ("default", "text"), ("best of the search", "text")], rows, ""),
            Text(luck, "note"),
        ]
    if result.confirmation:
        columns: Columns = [
            ("run", "label"),
            ("configuration", "text"),
            ("seed", "number"),
            (tune_answer.goal(result), _kind(result)),
            ("", "text"),
        ]
        rows = [
            [str(number), measurement.role, str(measurement.seed), measurement.value, measurement.reason or ""]
            for number, measurement in enumerate(result.confirmation, 1)
        ]
        better = "smaller" if result.goal.smaller_is_better else "larger"
        note = (
            f"Ratio of best to default: {tune_answer.ratio(result.ratio)}; {better} is better. The interval is Student's t on the "
            "logarithms of the ratios of the pairs; it is a gain only if it leaves out 1. If two configurations are alike, chance alone "
            "makes a gain of them once in forty times."
        )
        blocks += [Table(columns, rows), Text(note, "note")]
    return Section("confirmation", "Default and best", blocks)


def _trials(result: TuneFigures) -> Section | None:
    """What was tried."""
    shown = [trial for trial in result.trials if trial.value is not None]
    searched = [trial for trial in shown if trial.role == "search" and trial.ratio is not None]
    if not shown:
        return None
    drawn = [Chart("history", _history(shown, result), "Each trial, in order")]
    if searched:
        drawn.append(Chart("parallel", _parallel(searched, result), "What was tried, and its ratio to the default"))
    settings = list(result.space.settings)
    columns: Columns = [
        ("trial", "label"),
        ("part", "text"),
        (tune_answer.goal(result), _kind(result)),
        ("to the default", "ratio"),
        *((key, "number") for key in settings),
        ("", "text"),
    ]
    rows = [
        [
            str(trial.number),
            trial.role if trial.outcome == "measured" else f"{trial.role}, {trial.outcome}",
            trial.value,
            trial.ratio,
            *(str(trial.configuration.get(key, "–")) for key in settings),
            trial.reason or "",
        ]
        for trial in result.trials
    ]
    return Section("trials", "The search", [Grid(drawn), _drift(result), Table(columns, rows)])


def _drift(result: TuneFigures) -> Text | None:
    drift = result.drift
    if not drift:
        return None
    note = (
        f"The default was measured {drift.repetitions} times; its highest figure is {formatting.times(drift.max_to_min)} its lowest, its last "
        f"{formatting.times(drift.last_to_first)} its first. Each trial is compared with what the default was at that time, between its "
        "repetitions before and after."
    )
    return Text(note, "note")


def _effects(result: TuneFigures) -> Section:
    """What each setting of the best seems to do."""
    columns: Columns = [
        ("setting", "label"),
        ("best", "number"),
        ("trials with", "number"),
        ("over those without", "number"),
        ("what it does", "text"),
    ]
    rows = [
        [
            effect.setting,
            str((result.best or {})[effect.setting]),
            f"{effect.with_it} ({effect.trials_with} of {effect.trials_with + effect.trials_without})",
            tune_answer.ratio(effect.ratio),
            effect.about,
        ]
        for effect in result.effects
    ]
    note = (
        "The geometric mean of the ratios of all trials in which the setting was as in the best (of a number: in the same half of what "
        "was tried) over that of the others. It costs no run of its own and is no proof: other settings differed, too, and the search "
        "looks more often where it was good."
    )
    return Section("effects", "What each setting seems to do", [Table(columns, rows), Text(note, "note")])


def _setting(summary: TuneSummary) -> Section:
    result, workload = summary.result, summary.result.workload
    budget = ", ".join(
        [
            *([f"{result.budget.runs} trials"] if result.budget.runs else []),
            *([formatting.duration(result.budget.time_s)] if result.budget.time_s else []),
        ]
    )
    client = (
        f"{workload['threads']} threads, at most {workload['concurrency']:,} operations in flight, "
        f"time-out {formatting.duration(workload['timeout_s'])}, seed {result.seed}"
    )
    facts = [
        ("target", ", ".join([str(summary.variants[0].target), *(f"{key}={value}" for key, value in result.start.items())])),
        ("goal", result.goal.text),
        ("budget", f"{budget}; {result.pairs} pairs to confirm"),
        ("left out", f"{', '.join(result.left_out)}: they trade durability for speed") if result.left_out else None,
        ("client", client),
        parts.machine(summary.environment),
    ]
    return Section("setup", "Setup", [Facts(facts)])


def _history(trials: Sequence[TuneTrial], result: TuneFigures) -> ChartSpec:
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
    colours = zip(ROLES.values(), (charts.COLOURS[1], charts.COLOURS[0], charts.QUIET), strict=True)
    shown = {kind: colour for kind, colour in colours if any(row["kind"] == kind for row in rows)}
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("number:Q", title="trial", axis=alt.Axis(tickMinStep=1, format="d")),
        y=_value_axis(result),
        color=charts.coloured("kind", shown),
    )
    line = base.transform_filter(alt.datum.kind == ROLES["default"]).mark_line(strokeWidth=1.6, strokeDash=[4, 3])
    points = base.mark_point(filled=True, size=60, opacity=1).encode(
        tooltip=[alt.Tooltip("number:Q"), alt.Tooltip("kind:N"), alt.Tooltip("value:Q"), alt.Tooltip("settings:N")]
    )
    how = "Each point is a trial, in the order in which they ran; the trials of the default show how much the machine itself varies."
    return charts.sized(line + points, how, height=300)


def _value_axis(result: TuneFigures) -> alt.Y:
    title, scale = f"{tune_answer.goal(result)}, logarithmic", alt.Scale(type="log", nice=False, padding=12)
    axis = charts.LATENCY_AXIS if result.goal.kind == "duration_s" else charts.COUNT_AXIS
    return alt.Y("value:Q", title=title, scale=scale, axis=axis)


def _parallel(trials: Sequence[TuneTrial], result: TuneFigures) -> ChartSpec:
    """A line for each trial: numbers by their order of size, words by their order in the space."""
    settings = result.space.settings
    of_setting = {key: places(_order(key, setting, trials)) for key, setting in settings.items()}
    rows = [
        ParallelRow(trial.number, key, of_setting[key][str(choice)], trial.configuration[key], trial.ratio)
        for trial in trials
        for key, choice in trial.choices.items()
    ]
    return parallel(rows, list(settings), smaller_is_better=result.goal.smaller_is_better)


def _order(key: str, setting: SearchedSetting, trials: Sequence[TuneTrial]) -> Sequence[Any]:
    """In which order the values of a setting are drawn."""
    return setting.values or sorted({trial.choices[key] for trial in trials}, key=float)
