"""The page of a replay: whether it kept the recorded pace, how each template came out, and how that compares with the recording."""

from sensorbench.report import formatting, parts
from sensorbench.report.over_time import over_time
from sensorbench.results.page import Columns, Facts, Line, Page, Piece, Section, Table, Text
from sensorbench.results.replay import ReplayResult
from sensorbench.results.summary.replay import ReplayedTemplate, ReplayFigures, ReplaySummary

_WRITES = {
    "none": "refused by the server",
    "namespace": "into the namespace that sensorbench created",
    "owner": "wherever the statements say (--allow-writes)",
}
_NOTE = (
    "Response times count from the intended start: when the statement came in the trace, whether or not its session could start it then. "
    "Service times count from the start; in a session, the first statement of a template has the time for preparing it in them. "
    "Recorded times are the server's own, without the way there and back."
)


def replay_page(summary: ReplaySummary, result: ReplayResult) -> Page:
    """The page of a replay."""
    figures, variant = summary.result, summary.variants[0]
    run_s = figures.run_s
    return Page(
        kind=summary.kind,
        title=summary.title,
        head=[
            Text(f"{_about(figures)}. {summary.created.date()}.", "about"),
            parts.state(summary.status, summary.reason, "replay"),
            *parts.warnings(summary.warnings),
            Text(pace(figures), "headline"),
        ],
        sections=[
            Section("pace", "Pace", [Facts(_pace_facts(figures))]),
            Section("templates", "Statements", [_templates(figures.templates), Text(_NOTE, "note")]),
            Section("compared", "Compared with the recording", [_compared(figures.templates)]) if result.compared else None,
            _answers(figures),
            over_time(result.run, variant.database, max(1.0, run_s)) if result.run and run_s else None,
            parts.errors(figures.client_health.error_kinds),
            Section(
                "setup",
                "Setup",
                [
                    Facts(
                        [
                            ("target", variant.url),
                            ("trace", Piece(figures.plan.trace, "code")),
                            ("writes", _WRITES[figures.plan.writes]),
                            ("connections", f"at most {figures.plan.connections:,}"),
                            ("timeout", formatting.duration(figures.plan.timeout_s)),
                            *parts.servers(summary.environment),
                            parts.machine(summary.environment),
                        ]
                    )
                ],
            ),
            parts.reproduce(summary.command, version=summary.version),
        ],
        footer=parts.footer(summary),
    )


def _answers(figures: ReplayFigures) -> Section | None:
    """Answers of two targets to the same statements."""
    if figures.answers is None:
        return None
    columns: Columns = [("", "name"), ("compared", "whole"), ("other number\nof rows", "whole"), ("other\nvalues", "whole")]
    rows: list[list[Line]] = [[each.template, each.compared, each.rows_differ, each.values_differ] for each in figures.answers]
    note = "Rows are compared by the sum of their hashes, in any order; values as the server sends them, so that 1.0 and 1.00 differ."
    return Section("answers", "Answers of the two targets", [Table(columns, rows), Text(note, "note")])


def pace(figures: ReplayFigures) -> str:
    """Whether the recorded pace was kept, in a sentence."""
    if figures.plan.speed is None:
        rate = figures.counts.started / figures.run_s if figures.run_s else 0.0
        return f"{formatting.count(rate)} statements/s, each session as fast as it was answered"
    return {
        "nobody": "The recorded pace was kept",
        "replayer": "The replayer itself was late: these figures are not the target's alone",
        "target": "The target did not keep the recorded pace",
    }[figures.late_because]


def _about(figures: ReplayFigures) -> str:
    plan = figures.plan
    speed = "as fast as its sessions are answered" if plan.speed is None else f"at {plan.speed:g} × the recorded speed"
    scale = f", {plan.scale_rate:g} × its sessions" if plan.scale_rate != 1.0 else ""
    return (
        f"{plan.rows:,} statements of {plan.sessions:,} sessions over {formatting.duration(plan.recorded_s)}, recorded from "
        f"{plan.trace_database}, {speed}{scale}"
    )


def _pace_facts(figures: ReplayFigures) -> list[tuple[Line, Line] | None]:
    counts, lag = figures.counts, figures.own_lag_s
    return [
        ("statements", parts.grouped(counts.statements)),
        ("started", parts.grouped(counts.started)),
        ("not started", parts.grouped(counts.not_started)) if counts.not_started else None,
        ("succeeded", parts.grouped(counts.ok)),
        ("failed", parts.grouped(counts.error)),
        ("unknown", parts.grouped(counts.unknown)) if counts.unknown else None,
        ("replay took", formatting.duration(figures.run_s)) if figures.run_s else None,
        (
            "lag of the replayer itself",
            f"median {formatting.duration(lag.p50)}, p99 {formatting.duration(lag.p99)}, at most {formatting.duration(lag.max)}",
        )
        if lag
        else None,
        ("started more than 1 ms late", parts.grouped(figures.late_starts)) if figures.plan.speed is not None else None,
    ]


def _templates(templates: list[ReplayedTemplate]) -> Table:
    columns: Columns = [
        ("", "name"),
        ("kind", "label"),
        ("ok", "whole"),
        ("failed", "whole"),
        ("timed out", "whole"),
        ("response\np50", "duration_s"),
        ("response\np99", "duration_s"),
        ("service\np50", "duration_s"),
        ("service\np99", "duration_s"),
        ("recorded\np50", "duration_s"),
        ("recorded\np99", "duration_s"),
        ("statement", "text"),
    ]
    rows: list[list[Line]] = [
        [
            each.template,
            each.kind,
            each.ok,
            each.error,
            each.timeout,
            each.response_s.p50 if each.response_s else None,
            each.response_s.p99 if each.response_s else None,
            each.service_s.p50 if each.service_s else None,
            each.service_s.p99 if each.service_s else None,
            each.recorded_p50_s,
            each.recorded_p99_s,
            Piece(each.statement, "code"),
        ]
        for each in templates
    ]
    return Table(columns, rows)


def _compared(templates: list[ReplayedTemplate]) -> Table:
    columns: Columns = [
        ("", "name"),
        ("errors\nrecorded", "whole"),
        ("replayed", "whole"),
        ("new", "whole"),
        ("gone", "whole"),
        ("row counts\ncompared", "whole"),
        ("different", "whole"),
    ]
    rows: list[list[Line]] = [
        [
            each.template,
            each.recorded_errors,
            each.error + each.timeout,
            each.new_errors,
            each.gone_errors,
            each.rows_compared,
            each.rows_differ,
        ]
        for each in templates
    ]
    return Table(columns, rows)
