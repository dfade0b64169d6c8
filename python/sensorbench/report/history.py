"""The page of a history: each series with its changes of level, and which versions changed when."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import altair as alt

from sensorbench.report import charts, formatting
from sensorbench.results.history_entries import DoctorFigures, HistoryChange, HistorySeries, Unit, VersionChange
from sensorbench.results.page import Block, Chart, ChartSpec, Columns, Line, Page, Section, Table, Text, ValueKind
from sensorbench.wording import counted

_KINDS: dict[Unit, ValueKind] = {"s": "duration_s", "per s": "rate", "bytes": "bytes", "share": "number"}
_HOW = (
    "Each dot is a result with its confidence interval, by number. The line is the level between changes. A dashed line is where the level changed; "
    "a dotted one is where a version is another than in the result before. Point at a dot to see its versions and the doctor's figures of that day."
)
WHAT = {
    "label": "version",
    "database_version": "database",
    "schema_digest": "schema",
    "server_settings": "server settings",
    "sensorbench": "sensorbench",
    "kernel": "kernel",
    "machine": "machine",
}
# The doctor's figures, and how each is shown.
_DOCTOR: dict[str, tuple[str, Callable[[float], str]]] = {
    "timer_lag_s": ("timer lag", formatting.duration),
    "null_ops_per_s": ("no-op rate of the client", lambda per_s: f"{formatting.count(per_s)}/s"),
    "aa_variation": ("A/A variation", formatting.percent),
}
# Digests are shown as far as they distinguish two.
_DIGEST = 12


class _PointRow(NamedTuple):
    number: int
    value: float
    low: float | None
    high: float | None
    level: float
    measured: str
    versions: str
    doctor: str


class _Border(NamedTuple):
    number: float
    what: str
    kind: str


def history_page(series: Sequence[HistorySeries], store: Path) -> Page:
    """The page of some series of a history."""
    changes = [(each, change) for each in series for change in each.changes]
    return Page(
        kind="history",
        title=f"History {store.name}",
        head=[Text(_answer(series), "headline")],
        sections=[
            Section("changes", "Changes", [changes_table(changes)] if changes else [Text("No series changed its level.")]),
            *(_section(each, number) for number, each in enumerate(series, start=1)),
        ],
        footer=f"All figures are in {store}; `sensorbench history export` writes them as a table.",
    )


def change_words(change: HistoryChange) -> str:
    """How large a change is, in words: 12% slower (9 to 15%)."""
    share = formatting.percent(abs(change.ratio - 1.0))
    if change.low is None or change.high is None:
        return f"{share} {change.direction}"
    ends = sorted(abs(end - 1.0) for end in (change.low, change.high))
    return f"{share} {change.direction} ({formatting.percent(ends[0])} to {formatting.percent(ends[1])})"


def version_words(change: HistoryChange) -> str:
    """What else changed with the first result after a change: schema 1a2b → 3c4d."""
    return "; ".join(_version_words(each) for each in change.versions) or "no version"


def _version_words(change: VersionChange) -> str:
    if change.what in _DOCTOR:
        name, shown = _DOCTOR[change.what]
        return f"{name} {shown(float(change.before))} → {shown(float(change.after))}"
    return f"{WHAT[change.what]} {_shown(change.before)} → {_shown(change.after)}"


def doctor_words(doctor: DoctorFigures) -> str:
    """The doctor's figures that are known: timer lag 62 µs, A/A variation 2.1%."""
    known = {name: value for name in _DOCTOR if (value := getattr(doctor, name)) is not None}
    return ", ".join(f"{_DOCTOR[name][0]} {_DOCTOR[name][1](value)}" for name, value in known.items())


def changes_table(changes: Sequence[tuple[HistorySeries, HistoryChange]]) -> Table:
    """A row for each change."""
    columns: Columns = [
        ("experiment", "name"),
        ("variant", "variant"),
        ("operation", "name"),
        ("change", "text"),
        ("first result", "text"),
        ("what changed there", "text"),
    ]
    rows: list[list[Line]] = [
        [
            series.name,
            series.variant,
            series.operation,
            change_words(change),
            f"number {change.place + 1}, {change.measured:%Y-%m-%d %H:%M}",
            version_words(change),
        ]
        for series, change in changes
    ]
    return Table(columns, rows)


def _answer(series: Sequence[HistorySeries]) -> str:
    worse = sum(change.is_worse for each in series for change in each.changes)
    better = sum(not change.is_worse for each in series for change in each.changes)
    results = {point.result for each in series for point in each.points}
    return f"{counted(len(results), 'result')} in {len(series)} series: {counted(worse, 'change')} for the worse, {better} for the better."


def _section(series: HistorySeries, number: int) -> Section:
    spread = "not known yet" if series.variation is None else formatting.percent(series.variation)
    detectable = (
        "too few results to say which step would be found"
        if series.detectable is None
        else f"a step of {formatting.percent(series.detectable)} is found within five results in nine of ten cases"
    )
    last = series.points[-1]
    doctor = doctor_words(last.doctor) or "not known"
    blocks: list[Block | None] = [
        Text(
            f"{series.metric}, {len(series.points)} results on {series.machine_words}. Last: {formatting.of_kind(last.value, _KINDS[series.unit])}. "
            f"Variation between results: {spread}; {detectable}. The doctor's figures of the last result: {doctor}.",
            "note",
        ),
        Chart(f"history-{number}", _chart(series), is_wide=True) if len(series.points) > 1 else None,
        changes_table([(series, change) for change in series.changes]) if series.changes else None,
    ]
    title = f"{series.name}: {formatting.variant(series.variant)}, {series.operation}"
    return Section(f"series-{number}", title, blocks)


def _chart(series: HistorySeries) -> ChartSpec:
    rows, borders = _rows(series), _borders(series)
    number = alt.X("number:Q", title="result", axis=alt.Axis(format="d", tickMinStep=1), scale=alt.Scale(nice=False, padding=12))
    title = {"s": f"{series.metric}", "per s": f"{series.metric} per second", "bytes": "bytes", "share": "multiple of a no-op"}[
        series.unit
    ]
    axis = charts.LATENCY_AXIS if series.unit == "s" else charts.COUNT_AXIS
    value = alt.Y("value:Q", title=title, axis=axis, scale=alt.Scale(zero=False))
    tooltip = [alt.Tooltip(f"{name}:N") for name in ("measured", "versions", "doctor")] + [alt.Tooltip("value:Q", format=".4~s")]
    base = charts.data_of(rows)
    dots = base.mark_point(filled=True, size=60, opacity=1, color=charts.COLOURS[0]).encode(x=number, y=value, tooltip=tooltip)
    ranges = (
        base.transform_filter("isValid(datum.low)")
        .mark_rule(color=charts.COLOURS[0])
        .encode(x=number, y=alt.Y("low:Q"), y2=alt.Y2("high:Q"))
    )
    levels = base.mark_line(interpolate="step", color=charts.QUIET).encode(x=number, y=alt.Y("level:Q"))
    rules = (
        charts.data_of(borders)
        .mark_rule(color=charts.COLOURS[1])
        .encode(
            x=alt.X("number:Q"),
            strokeDash=alt.StrokeDash(
                "kind:N", legend=None, scale=alt.Scale(domain=["change", "version"], range=[[6, 3], [1, 4]])
            ),
            tooltip=[alt.Tooltip("what:N")],
        )
    )
    return charts.sized(rules + levels + ranges + dots, _HOW, height=220)


def _rows(series: HistorySeries) -> list[_PointRow]:
    ends = [0, *(change.place for change in series.changes), len(series.points)]
    levels: dict[int, float] = {}
    for begin, end in pairwise(ends):
        values = sorted(point.value for point in series.points[begin:end])
        levels |= dict.fromkeys(range(begin, end), values[len(values) // 2])
    return [
        _PointRow(
            number + 1,
            point.value,
            point.low,
            point.high,
            levels[number],
            f"{point.measured:%Y-%m-%d %H:%M}",
            ", ".join(filter(None, [point.versions["label"], point.versions["database_version"]])),
            doctor_words(point.doctor),
        )
        for number, point in enumerate(series.points)
    ]


def _borders(series: HistorySeries) -> list[_Border]:
    """Where the level changed, and where a version did."""
    found = [
        _Border(change.place + 0.5, f"{change_words(change)}; {version_words(change)}", "change") for change in series.changes
    ]
    for number, (before, after) in enumerate(pairwise(series.points), start=1):
        changed = [WHAT[name] for name in WHAT if before.versions[name] != after.versions[name] and name != "label"]
        if changed:
            found.append(_Border(number + 0.5, f"other {', '.join(changed)}", "version"))
    return found


def _shown(version: str) -> str:
    is_digest = len(version) == 64 and all(digit in "0123456789abcdef" for digit in version)
    return (version[:_DIGEST] if is_digest else version) or "none"
