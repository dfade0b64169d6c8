"""The page of a run of another tool's workload: what became of each kind of operation, over time, and what that tool prints."""

from typing import Any

from sensorbench.report import formatting, parts
from sensorbench.report.over_time import over_time
from sensorbench.results.page import Code, Columns, Facts, Line, Page, Piece, Section, Table, Text
from sensorbench.results.summary.tools import CassandraStressSummary, KindFigures, YcsbSummary
from sensorbench.results.tools import ToolResult

_LATENCIES = {"mean": "mean", "median": "p50", "p95": "p95", "p99": "p99", "p999": "p99.9", "max": "max"}
_OUTCOMES = {"ok": "ok", "error": "failed", "timeout": "timed out", "cancelled": "cancelled"}
_NOTE = "Response times count from the intended start: when an operation was due, whether or not it could start then."


def tool_page(summary: YcsbSummary | CassandraStressSummary, result: ToolResult[Any], printed: str) -> Page:
    """The page of a run; `printed` is what the other tool prints of it."""
    figures, variant = summary.result, summary.variants[0]
    health, run_s = figures.client_health, figures.run_s
    return Page(
        kind=summary.kind,
        title=summary.title,
        head=[
            Text(f"{_about(summary)}. {summary.created.date()}.", "about"),
            _headline(figures.total, run_s),
            parts.state(summary.status, summary.reason),
            *parts.warnings(summary.warnings),
        ],
        sections=[
            Section("kinds", "Operations", [_kinds(figures.kinds, figures.total, run_s), Text(_NOTE, "note")]),
            over_time(result.run, variant.database, max(1.0, run_s)) if result.run and run_s else None,
            parts.errors(health.error_kinds),
            Section("printed", "In the tool's own words", [Code(printed)]) if printed else None,
            Section(
                "setup",
                "Setup",
                [
                    Facts(
                        [
                            *_properties(summary),
                            ("target", variant.url),
                            ("schema", f"{variant.schema_name}: {variant.schema_summary}"),
                            *parts.servers(summary.environment),
                            *([("client", _client(health.client_cpu))] if health.client_cpu is not None else []),
                            parts.machine(summary.environment),
                        ]
                    ),
                ],
            ),
            parts.reproduce(summary.command, version=summary.version),
        ],
        footer=parts.footer(summary),
    )


def _headline(total: KindFigures, run_s: float | None) -> Text | None:
    """What was reached, in a sentence."""
    if not run_s or not total.response_s:
        return None
    response = total.response_s
    line = f"{formatting.count(total.ok / run_s)} operations/s were completed, with a median of {formatting.duration(response.median)}"
    return Text(f"{line} and a p99 of {formatting.duration(response.p99)}", "headline")


def _about(summary: YcsbSummary | CassandraStressSummary) -> str:
    """What was done, in a sentence."""
    if isinstance(summary, YcsbSummary):
        return f"Seed {summary.result.plan.seed}"
    plan = summary.result.plan
    weights = ", ".join(f"{name}={weight:g}" for name, weight in plan.weights.items())
    pace = f"{formatting.count(plan.rate_per_s)} operations per second, " if plan.rate_per_s else ""
    partitions = f"partitions {plan.population.kind}({plan.population.min:,}..{plan.population.max:,})"
    return (
        f"Profile {plan.profile}. {weights}; {partitions}; {pace}at most {plan.concurrency:,} in flight; consistency level "
        f"{plan.consistency}. Seed {plan.seed}"
    )


def _properties(summary: YcsbSummary | CassandraStressSummary) -> list[tuple[str, Line]]:
    """The fact of YCSB's properties, as its files have them."""
    if not isinstance(summary, YcsbSummary):
        return []
    said = {key: value for key, value in summary.result.plan.properties.items() if value is not None}
    lines = (f"{key.replace('exponential_', 'exponential.')}={str(value).lower()}" for key, value in said.items())
    return [("properties", Piece(" ".join(lines), "code"))]


def _kinds(kinds: dict[str, KindFigures], total: KindFigures, run_s: float | None) -> Table:
    """A line for each kind of operation, and one for all where there are several."""
    columns: Columns = [
        ("", "name"),
        ("completed\n/s", "count"),
        *((title, "whole") for title in _OUTCOMES.values()),
        ("rows", "whole"),
        *((title, "duration_s") for title in _LATENCIES.values()),
    ]
    shown = {**kinds, **({"all": total} if len(kinds) > 1 else {})}
    rows: list[list[Line]] = [
        [
            name,
            figures.ok / run_s if run_s else None,
            *(getattr(figures, outcome) for outcome in _OUTCOMES),
            figures.rows,
            *(getattr(figures.response_s, metric, None) for metric in _LATENCIES),
        ]
        for name, figures in shown.items()
    ]
    return Table(columns, rows)


def _client(cpu: float) -> str:
    return f"kept {formatting.significant(cpu, 2)} CPUs busy"
