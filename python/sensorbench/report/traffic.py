"""The page of a trace: what was recorded, in figures."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import altair as alt

from sensorbench.report import charts, formatting
from sensorbench.results.page import Chart, ChartSpec, Facts, Line, Page, Piece, Section, Table, Text
from sensorbench.results.traffic import Quantiles, TemplateFigures, TrafficDescription
from sensorbench.wording import counted

_LONGEST = 110
_SHOWN_TEMPLATES = 100
_SHOWN_PARAMETERS = 100
_DRAWN_TEMPLATES = 20
_BURSTINESS = (
    "The index of dispersion is the variance of the number of arrivals per window over its mean (Cox and Lewis 1966). Arrivals that do not know "
    "of one another (Poisson) have 1 at each length; more is bursty, and growth with the window means that bursts are long."
)


class _RateRow(NamedTuple):
    start_s: float
    kind: str
    rate: float


class _DispersionRow(NamedTuple):
    window_s: float
    dispersion: float
    windows: int


class _SkewRow(NamedTuple):
    parameter: str
    values: int
    share: float


class _RowsRow(NamedTuple):
    template: str
    median: float
    p99: float


class _HourRow(NamedTuple):
    hour: int
    statements: int


def traffic_page(description: TrafficDescription, folder: Path) -> Page:
    """The page of a trace that lies in a folder."""
    return Page(
        kind="traffic",
        title=f"Traffic {folder.name}",
        head=[Text(_answer(description), "headline")],
        sections=[
            Section("overview", "Overview", [Facts([(name, value) for name, value in traffic_facts(description)])]),
            Section("templates", "Templates and mix", [_templates(description), _result_sizes(description)]),
            Section("rate", "Arrivals", _arrivals(description)),
            Section(
                "parameters",
                "Parameters",
                [_skew(description), _parameters(description)] if description.parameters else [_NO_PARAMETERS],
            ),
            Section("tables", "Tables", [_tables(description)]),
        ],
        footer="All figures are printed by `sensorbench traffic describe --json`; the trace itself is statements.parquet and trace.json.",
    )


_NO_PARAMETERS = Text("No statement has a parameter.")


def traffic_facts(description: TrafficDescription) -> list[tuple[str, str]]:
    """What is said of a trace as a whole: name and text."""
    sessions, transactions = description.sessions, description.transactions
    facts = [
        ("database", f"{description.database} {description.version}".strip()),
        ("length", formatting.duration(description.length_s)),
        ("errors", f"{description.errors:,}"),
        (
            "sessions",
            f"{sessions.sessions:,}, at most {sessions.open_at_most:,} at the same time; "
            f"statements of each: {_counts(sessions.statements)}",
        ),
    ]
    if sessions.think_time_s:
        facts.append(("think time", _durations(sessions.think_time_s)))
    if transactions:
        facts += [
            (
                "transactions",
                f"{transactions.transactions:,}: {transactions.committed:,} committed, {transactions.rolled_back:,} rolled back",
            ),
            ("statements per transaction", _counts(transactions.statements)),
            ("length of a transaction", _durations(transactions.length_s)),
        ]
    if description.dispersion:
        said = ", ".join(f"{each.index:.1f} in {formatting.duration(each.window_s)}" for each in description.dispersion)
        facts.append(("index of dispersion", f"{said} (Poisson: 1)"))
    return facts


def shown_statement(template: TemplateFigures, longest: int = _LONGEST) -> str:
    """A template in one line that is not too long, followed by its consistency level as a comment."""
    return shortened(template.statement, longest) + (f" -- {template.consistency}" if template.consistency else "")


def shortened(statement: str, longest: int = _LONGEST) -> str:
    """A statement in one line that is not too long."""
    line = " ".join(statement.split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def _answer(description: TrafficDescription) -> str:
    mix = {kind: sum(each.share for each in description.templates if each.kind == kind) for kind in ("read", "write")}
    rate = description.statements / description.length_s if description.length_s else None
    per_second = f", {formatting.count(rate)} per second on average" if rate else ""
    return (
        f"{counted(description.statements, 'statement')} of {counted(len(description.templates), 'template')}"
        f"{per_second}: {formatting.percent(mix['read'])} reads, {formatting.percent(mix['write'])} writes."
    )


def _counts(quantiles: Quantiles) -> str:
    return f"median {quantiles.median:g}, p99 {quantiles.p99:g}, at most {quantiles.maximum:g}"


def _durations(quantiles: Quantiles) -> str:
    shown = [formatting.duration(value) for value in (quantiles.median, quantiles.p99, quantiles.maximum)]
    return f"median {shown[0]}, p99 {shown[1]}, at most {shown[2]}"


def _templates(description: TrafficDescription) -> Table:
    rows: list[Sequence[Line]] = []
    for template in description.templates[:_SHOWN_TEMPLATES]:
        took, answer = template.duration_s, template.rows
        rows.append(
            [
                template.number,
                template.kind,
                template.statements,
                template.share,
                took.median if took else None,
                took.p99 if took else None,
                answer.median if answer else None,
                answer.p99 if answer else None,
                template.errors,
                Piece(shown_statement(template, 400), "code"),
            ]
        )
    return Table(
        [
            ("number", "whole"),
            ("kind", "label"),
            ("statements", "whole"),
            ("share", "share"),
            ("median", "duration_s"),
            ("p99", "duration_s"),
            ("rows, median", "count"),
            ("rows, p99", "count"),
            ("errors", "whole"),
            ("statement", "text"),
        ],
        rows,
    )


def _result_sizes(description: TrafficDescription) -> Chart | None:
    """The sizes of answers, where the log has them."""
    rows = [
        _RowsRow(f"{template.number}: {shortened(template.statement, 40)}", template.rows.median, template.rows.p99)
        for template in description.templates
        if template.rows and template.kind == "read"
    ][:_DRAWN_TEMPLATES]
    if not rows:
        return None
    across = alt.Y("template:N", title=None, sort=[row.template for row in rows])
    axis = alt.X("median:Q", title="rows of an answer", scale=alt.Scale(type="symlog"), axis=charts.COUNT_AXIS)
    base = charts.data_of(rows)
    lines = base.mark_rule(strokeWidth=2, color=charts.COLOURS[0]).encode(x=axis, x2=alt.X2("p99"), y=across)
    dots = base.mark_point(filled=True, size=60, color=charts.COLOURS[0]).encode(x=axis, y=across)
    how = "The dot is the median number of rows, and the line ends at the 99th percentile."
    drawn = charts.sized(alt.layer(lines, dots), how, height=max(charts.HEIGHT, 22 * len(rows)))
    return Chart("traffic-rows", drawn, "Sizes of answers")


def _skew(description: TrafficDescription) -> Chart:
    """How much of the executions the most frequent values make up, for the parameters that come most often."""
    rows = [
        _SkewRow(f"template {each.template} ${each.position}", point.values, point.share)
        for each in description.parameters[: len(charts.COLOURS)]
        for point in each.curve
    ]
    drawn = (
        charts.data_of(rows)
        .mark_line(strokeWidth=1.8, point=alt.OverlayMarkDef(size=30))
        .encode(
            x=alt.X("values:Q", title="number of most frequent values", scale=alt.Scale(type="log"), axis=charts.COUNT_AXIS),
            y=alt.Y("share:Q", title="share of executions", axis=alt.Axis(format="~%"), scale=alt.Scale(zero=True)),
            color=charts.named_colour("parameter", [row.parameter for row in rows]),
        )
    )
    how = "The further a line lies at the top left, the fewer values make up most of the executions."
    return Chart("traffic-skew", charts.sized(drawn, how), "Skew of parameters")


def _arrivals(description: TrafficDescription) -> list[Chart | Text]:
    blocks: list[Chart | Text] = [
        Chart("traffic-rate", _rate_chart(description), "Statements per second over time", is_wide=True)
    ]
    if description.hours:
        blocks.append(Chart("traffic-hours", _hours_chart(description), "Statements by hour of the day (UTC)"))
    if description.dispersion:
        blocks += [Chart("traffic-dispersion", _dispersion_chart(description), "Burstiness"), Text(_BURSTINESS, "note")]
    else:
        blocks.append(Text("The trace is too short to say how bursty its arrivals are.", "note"))
    return blocks


def _rate_chart(description: TrafficDescription) -> ChartSpec:
    rows = [
        _RateRow(bucket.start_s, kind, rate)
        for bucket in description.rate
        for kind, rate in (("reads", bucket.reads), ("writes", bucket.writes), ("others", bucket.others))
    ]
    drawn = (
        charts.data_of(rows)
        .mark_area(interpolate="step-after")
        .encode(
            x=alt.X("start_s:Q", title="s since the first statement"),
            y=alt.Y("rate:Q", title="statements per second", axis=charts.COUNT_AXIS),
            color=charts.named_colour("kind", ["reads", "writes", "others"]),
        )
    )
    how = f"Each step is {formatting.duration(description.bucket_s)} long; kinds of statements are stacked."
    return charts.sized(drawn, how)


def _hours_chart(description: TrafficDescription) -> ChartSpec:
    drawn = (
        charts.data_of([_HourRow(hour, count) for hour, count in enumerate(description.hours)])
        .mark_bar(color=charts.COLOURS[0])
        .encode(x=alt.X("hour:O", title="hour"), y=alt.Y("statements:Q", title="statements", axis=charts.COUNT_AXIS))
    )
    return charts.sized(drawn, "Each bar has the statements of this hour, of all days of the trace.")


def _dispersion_chart(description: TrafficDescription) -> ChartSpec:
    drawn = (
        charts.data_of([_DispersionRow(each.window_s, each.index, each.windows) for each in description.dispersion])
        .mark_line(strokeWidth=1.8, point=alt.OverlayMarkDef(size=36), color=charts.COLOURS[0])
        .encode(
            x=alt.X("window_s:Q", title="length of the window", scale=alt.Scale(type="log"), axis=charts.LATENCY_AXIS),
            y=alt.Y("dispersion:Q", title="index of dispersion", scale=alt.Scale(zero=True)),
            tooltip=[
                alt.Tooltip("dispersion:Q", title="index of dispersion", format=".3"),
                alt.Tooltip("windows:Q", title="windows"),
            ],
        )
    )
    return charts.sized(drawn, "Each dot is the index of dispersion for windows of one length; Poisson arrivals lie at 1.")


def _parameters(description: TrafficDescription) -> Table:
    return Table(
        [
            ("template", "whole"),
            ("parameter", "label"),
            ("type", "label"),
            ("distinct values", "whole"),
            ("most frequent value", "share"),
            ("most frequent 1% of the values", "share"),
        ],
        [
            [each.template, f"${each.position}", each.type, each.values, each.top_share, each.top_percent_share]
            for each in description.parameters[:_SHOWN_PARAMETERS]
        ],
    )


def _tables(description: TrafficDescription) -> Table:
    return Table(
        [("table", "name"), ("statements that read it", "whole"), ("statements that write it", "whole")],
        [[each.table, each.reads, each.writes] for each in description.tables],
    )
