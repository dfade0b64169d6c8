"""The page of a fitted experiment: what was made of a trace, and whether it describes the half that it was not made of."""

from collections.abc import Sequence
from typing import NamedTuple

import altair as alt

from sensorbench.report import charts, formatting
from sensorbench.report.traffic import shortened
from sensorbench.results.page import Block, Chart, ChartSpec, Facts, Line, Page, Piece, Section, Table, Text
from sensorbench.results.traffic_fit import Check, Compared, FittedSource, TrafficFit
from sensorbench.wording import counted

_SHOWN = 200
_FITTED, _RECORDED = "what the experiment sends", "second half of the trace"
_NAMES = {"mix": "Mix", "skew": "Skew of parameters", "burstiness": "Burstiness"}
_HOW = (
    "The experiment is fitted to the first half of the trace, by time. What it sends is compared with the second half. A check holds where no "
    "difference is above 5%. It is undecided where chance alone explains what is beyond that, with a probability of 1%."
)


class _RateRow(NamedTuple):
    start_s: float
    what: str
    rate: float


class _ShareRow(NamedTuple):
    subject: str
    what: str
    share: float


class _DispersionRow(NamedTuple):
    windows: str
    what: str
    dispersion: float


def traffic_fit_page(fit: TrafficFit) -> Page:
    """The page of a fitted experiment."""
    return Page(
        kind="traffic-fit",
        title=f"Experiment of the traffic {fit.trace}",
        head=_head(fit),
        sections=[
            Section("overview", "Overview", [Facts([(name, value) for name, value in fit_facts(fit)])]),
            Section("holdout", "Compared with the second half", _holdout(fit)),
            Section("operations", "Operations", [_operations(fit)]),
            Section("parameters", "Parameters", [_sources(fit)]),
            Section("left-out", "Left out", [_left_out(fit)]),
        ],
        footer="All figures are in fit.json, and printed by `sensorbench traffic fit --json`.",
    )


def _head(fit: TrafficFit) -> list[Block | None]:
    warning = Text("The trace does not bear this experiment out: see below.", "banner bad") if not_holding(fit) else None
    return [warning, Text(holdout_answer(fit), "headline")]


def not_holding(fit: TrafficFit) -> list[Check]:
    """The checks that do not hold."""
    return [check for check in fit.checks if check.verdict == "does not hold"]


def holdout_answer(fit: TrafficFit) -> str:
    """In a sentence, whether the fit holds."""
    if fit.holds:
        return "The fit holds: mix, skew and burstiness of the second half are within 5% of what the experiment sends."
    said = [
        f"{_NAMES[check.name].lower()} {'is undecided' if check.verdict == 'undecided' else check.verdict}"
        for check in fit.checks
    ]
    return f"{'; '.join(said)}.".capitalize()


def fit_facts(fit: TrafficFit) -> list[tuple[str, str]]:
    """What is said of a fit as a whole: name and text."""
    schedule = fit.schedule
    steps = counted(len(schedule.steps), "step")
    rate = schedule.operations / schedule.length_s * fit.scale_rate
    return [
        ("trace", f"{counted(fit.statements, 'statement')} in {formatting.duration(fit.length_s)}"),
        ("operations", f"{len(fit.operations)}, {formatting.percent(1 - fit.share_left_out)} of the statements"),
        (
            "schedule",
            f"{formatting.duration(schedule.length_s)} in {steps}, {formatting.count(rate)} operations per second on average, "
            f"{schedule.arrival} arrivals, concurrency {schedule.concurrency}",
        ),
        ("not fitted", _not_fitted(fit)),
    ]


def _not_fitted(fit: TrafficFit) -> str:
    """What the recorded sessions had that the experiment has not."""
    had = fit.not_fitted
    transactions = (
        f"{counted(had.transactions, 'transaction')} with {formatting.percent(had.in_transactions)} of the statements"
        if had.transactions
        else "no transactions"
    )
    think = had.think_time_s
    thinking = (
        f"think times of {formatting.duration(think.median)} (median), {formatting.duration(think.p99)} (p99) between its statements"
        if think
        else "no session with two statements"
    )
    return (
        f"{counted(had.sessions, 'recorded session')} had {transactions} and {thinking}; the experiment is an open loop that sends each "
        "statement by itself. `sensorbench traffic replay` keeps sessions, transactions and think times"
    )


def described_source(source: FittedSource) -> str:
    """How parameters are chosen, in words."""
    exponent = f" {source.exponent:g}" if source.exponent is not None else ""
    return f"{source.choice}{exponent}: {source.of}"


def _holdout(fit: TrafficFit) -> list[Block | None]:
    blocks: list[Block | None] = [Text(_HOW, "note")]
    blocks.append(
        Table(
            [("check", "name"), ("verdict", "label"), ("largest difference", "share"), ("why", "text")],
            [[_NAMES[check.name], check.verdict, check.difference, check.why] for check in fit.checks],
        )
    )
    compared = {check.name: check.compared for check in fit.checks}
    blocks.append(Chart("fit-mix", _mix_chart(compared["mix"]), "Share of each operation"))
    blocks.append(Chart("fit-rate", _rate_chart(fit), "Operations per second over time", is_wide=True))
    dispersions = [each for each in compared["burstiness"] if each.subject.startswith("windows")]
    if dispersions:
        blocks.append(Chart("fit-dispersion", _dispersion_chart(dispersions), "Burstiness"))
    rows: list[Sequence[Line]] = [
        [_NAMES[check.name], each.subject, each.figure, each.fitted, each.recorded, each.difference, each.chance, each.verdict]
        for check in fit.checks
        for each in check.compared[:_SHOWN]
    ]
    blocks.append(
        Table(
            [
                ("check", "label"),
                ("of", "text"),
                ("figure", "text"),
                ("sent", "number"),
                ("second half", "number"),
                ("difference", "share"),
                ("by chance", "share"),
                ("verdict", "label"),
            ],
            rows,
        )
    )
    return blocks


def _two(rows: Sequence[str]) -> alt.Color:
    return charts.named_colour("what", rows)


def _mix_chart(compared: Sequence[Compared]) -> ChartSpec:
    rows = [
        _ShareRow(each.subject, what, share)
        for each in compared
        for what, share in ((_FITTED, each.fitted), (_RECORDED, each.recorded))
    ]
    drawn = (
        charts.data_of(rows)
        .mark_point(filled=True, size=70)
        .encode(
            x=alt.X("share:Q", title="share of statements", axis=alt.Axis(format="~%")),
            y=alt.Y("subject:N", title=None, sort=[each.subject for each in compared]),
            color=_two([_FITTED, _RECORDED]),
            tooltip=[alt.Tooltip("share:Q", title="share", format=".2%")],
        )
    )
    how = "Each row is an operation; the closer its two dots, the better the fit."
    return charts.sized(drawn, how, height=max(charts.HEIGHT, 22 * len(compared)))


def _rate_chart(fit: TrafficFit) -> ChartSpec:
    rows = [
        _RateRow(point.start_s, what, rate)
        for point in fit.rates
        for what, rate in ((_FITTED, point.fitted_per_s), (_RECORDED, point.recorded_per_s))
    ]
    drawn = (
        charts.data_of(rows)
        .mark_line(interpolate="step-after", strokeWidth=1.5)
        .encode(
            x=alt.X("start_s:Q", title="s since the beginning of the half"),
            y=alt.Y("rate:Q", title="operations per second", axis=charts.COUNT_AXIS, scale=alt.Scale(zero=True)),
            color=_two([_FITTED, _RECORDED]),
        )
    )
    return charts.sized(drawn, "The rate of the schedule, before it is scaled, and what arrived in the second half.")


def _dispersion_chart(compared: Sequence[Compared]) -> ChartSpec:
    rows = [
        _DispersionRow(each.subject.removeprefix("windows of "), what, index)
        for each in compared
        for what, index in ((_FITTED, each.fitted), (_RECORDED, each.recorded))
    ]
    drawn = (
        charts.data_of(rows)
        .mark_line(strokeWidth=1.5, point=alt.OverlayMarkDef(size=40))
        .encode(
            x=alt.X("windows:O", title="length of the window", sort=[row.windows for row in rows]),
            y=alt.Y("dispersion:Q", title="index of dispersion", scale=alt.Scale(zero=True)),
            color=_two([_FITTED, _RECORDED]),
        )
    )
    return charts.sized(drawn, "The variance of arrivals per window over their mean: independent arrivals have 1.")


def _operations(fit: TrafficFit) -> Table:
    return Table(
        [("operation", "name"), ("kind", "label"), ("statements", "whole"), ("share", "share"), ("recorded as", "text")],
        [
            [each.name, each.kind, each.statements, each.share, Piece(shortened(each.statement, 400), "code")]
            for each in fit.operations
        ],
    )


def _sources(fit: TrafficFit) -> Table | Text:
    rows: list[Sequence[Line]] = [
        [operation.name, ", ".join(source.parameters), source.choice, source.exponent, source.values or None, source.of]
        for operation in fit.operations
        for source in operation.sources
    ]
    if not rows:
        return Text("No operation has a parameter.")
    return Table(
        [
            ("operation", "label"),
            ("parameters", "label"),
            ("chosen", "label"),
            ("exponent", "number"),
            ("values", "whole"),
            ("of", "text"),
        ],
        rows[:_SHOWN],
    )


def _left_out(fit: TrafficFit) -> Table | Text:
    if not fit.left_out:
        return Text("The experiment has all statements of the first half.")
    return Table(
        [("statements", "text"), ("number", "whole"), ("share", "share"), ("why", "text")],
        [[Piece(shortened(part.what, 300), "code"), part.statements, part.share, part.reason] for part in fit.left_out[:_SHOWN]],
    )
