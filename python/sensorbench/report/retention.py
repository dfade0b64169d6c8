"""Retention and rollups while readings were written: what is there afterwards, what the actions cost, and the size over time."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import altair as alt

from sensorbench.report import charts, formatting, parts
from sensorbench.report.accounting import described_rollup, failed_actions, retained_accounts
from sensorbench.report.charts import IntervalRow
from sensorbench.results import ComparisonResult, RunResult
from sensorbench.results.latencies import of_kind
from sensorbench.results.manifest import MEASURE
from sensorbench.results.page import Block, Chart, ChartSpec, Columns, Heading, Line, Piece, Section, Table, Text
from sensorbench.results.retention import EXPIRE, ROLLUP, RetentionEvent, read_retention
from sensorbench.results.summary.comparison import ComparisonSummary


class SizeRow(NamedTuple):
    """The size of a variant on disk at a time of its run."""

    variant: str
    time_s: float
    megabytes: float


class ActionRow(NamedTuple):
    """An action of a variant: when it began, and how long it took."""

    variant: str
    time_s: float
    length_s: float
    kind: str


def retention_section(summary: ComparisonSummary, result: ComparisonResult) -> Section | None:
    """What expired of each variant, where something did."""
    found = summary.result.retention
    if not found:
        return None
    wanted: Mapping[str, object] = summary.result.workload.get("retention") or {}
    text = (
        f"The times of the readings advanced by {wanted.get('span')} in the run. Each {wanted.get('every')} of that time, an action rolled up what had come "
        f"since, and what had come late, and then had readings expire that were older than {wanted.get('keep')}. Afterwards, with everything arrived, "
        "one more action did the same. DuckDB computes from the acknowledged readings what must be there then: each reading that is "
        "young enough, none that is older, and each row of the rollup."
    )
    variants = [variant.id for variant in summary.variants if variant.id in found]
    events = {variant: _events(result, variant) for variant in variants}
    last_s = max((event.end_ns / 1e9 for of_variant in events.values() for event in of_variant), default=1.0)
    actions = [
        ActionRow(variant, event.start_ns / 1e9, (event.end_ns - event.start_ns) / 1e9, event.kind)
        for variant in variants
        for event in events[variant]
        if event.kind in {ROLLUP, EXPIRE}
    ]
    sizes = [
        SizeRow(variant, event.start_ns / 1e9, event.bytes / 1e6)
        for variant in variants
        for event in events[variant]
        if event.bytes is not None
    ]
    blocks: list[Block | None] = [
        Text(text),
        _means(summary),
        Heading("Is what is left right?"),
        _correctness(summary),
        *_notes(summary),
        Heading("What did it cost?"),
        _costs(summary),
        _latencies(summary),
        Text(
            "An operation counts as during an action where both overlapped in time. Response times count from the intended start, so an operation that waited for an action counts, too.",
            "note",
        ),
        Chart("retention-size", _drawn_sizes(sizes, actions, variants, last_s), "Size on disk over the run") if sizes else None,
    ]
    for name in summary.result.operations:
        rows = [row for variant in variants for row in _intervals(result, variant, name)]
        if rows:
            title = f"{summary.result.operations[name].title}: latency over the run"
            blocks.append(Chart(f"retention-latency-{name}", _drawn_latencies(rows, actions, variants, last_s), title))
    return Section("retention", "What expired, and what did that cost?", blocks)


def _means(summary: ComparisonSummary) -> Table:
    """By what means each variant does it."""
    columns: Columns = [
        ("Variant", "name"),
        ("readings expire by", "text"),
        ("the rollup is kept by", "text"),
        ("who keeps it", "text"),
    ]
    rows: list[list[Line]] = [
        [
            formatting.variant(variant),
            of.expires_by,
            of.rolls_up_by or "no rollup",
            ("the database" if of.is_kept_by_database else "a statement of our client") if of.rolls_up_by else "",
        ]
        for variant, of in summary.result.retention.items()
    ]
    return Table(columns, rows)


def _correctness(summary: ComparisonSummary) -> Table:
    columns: Columns = [
        ("Variant", "name"),
        ("readings to keep", "whole"),
        ("lost", "whole"),
        ("readings to expire", "whole"),
        ("still there", "whole"),
        ("rows of the rollup", "whole"),
        ("right", "whole"),
        ("wrong", "whole"),
        ("of these, by late readings", "whole"),
        ("undecided", "whole"),
    ]
    rows: list[list[Line]] = []
    for variant, of_write, retention in retained_accounts(summary.result):
        rollup = retention.rollup
        of_rollup: list[Line] = (
            [rollup.rows, rollup.right, _counted(rollup.wrong), rollup.by_late, rollup.undecided] if rollup else [None] * 5
        )
        rows.append(
            [
                formatting.variant(variant),
                retention.kept,
                _counted(of_write.lost),
                retention.expired,
                _counted(retention.not_expired),
                *of_rollup,
            ]
        )
    return Table(columns, rows)


def _counted(wrong: int) -> Piece:
    return Piece(wrong, "bad" if wrong else "good")


def _notes(summary: ComparisonSummary) -> list[Text]:
    notes: list[Text] = []
    for variant, _, retention in retained_accounts(summary.result):
        if retention.rollup is not None and retention.rollup.wrong:
            notes.append(Text(f"{formatting.variant(variant)}: {described_rollup(retention)}.", "bad"))
        if retention.ttl_s is not None:
            notes.append(
                Text(
                    f"{formatting.variant(variant)}: readings expire {formatting.duration(retention.ttl_s)} after their write, by the wall clock. What was "
                    "loaded before the run stays. Readings of about that age when they were read are neither kept nor expired here.",
                    "note",
                )
            )
    return [*notes, *(Text(failed, "bad") for failed in failed_actions(summary.result))]


def _costs(summary: ComparisonSummary) -> Table:
    columns: Columns = [
        ("Variant", "name"),
        ("action", "text"),
        ("actions", "whole"),
        ("median", "duration_s"),
        ("max", "duration_s"),
        ("all", "duration_s"),
        ("last one", "duration_s"),
        ("rows removed", "whole"),
        ("size before", "bytes"),
        ("largest", "bytes"),
        ("at the end", "bytes"),
    ]
    rows: list[list[Line]] = [
        [
            formatting.variant(variant),
            actions.kind,
            actions.count,
            actions.duration_s.get("p50"),
            actions.duration_s.get("max"),
            actions.total_s,
            actions.last_s,
            actions.removed
            if actions.removed is not None or actions.kind != "expire"
            else parts.muted("not said by the database"),
            of.first_bytes,
            of.max_bytes,
            of.last_bytes,
        ]
        for variant, of in summary.result.retention.items()
        for actions in of.actions
    ]
    rows += [
        [formatting.variant(variant), "none: they expire by themselves", *[None] * 6, of.first_bytes, of.max_bytes, of.last_bytes]
        for variant, of in summary.result.retention.items()
        if not of.actions
    ]
    return Table(columns, rows)


def _latencies(summary: ComparisonSummary) -> Table:
    columns: Columns = [
        ("Variant", "name"),
        ("operation", "label"),
        ("during an action", "whole"),
        ("median", "duration_s"),
        ("p99", "duration_s"),
        ("others", "whole"),
        ("median of others", "duration_s"),
        ("p99 of others", "duration_s"),
    ]
    rows: list[list[Line]] = [
        [
            formatting.variant(variant),
            summary.result.operations[beside.operation].title,
            beside.beside,
            *(beside.beside_s.get(name) for name in ("p50", "p99")),
            beside.others,
            *(beside.others_s.get(name) for name in ("p50", "p99")),
        ]
        for variant, of in summary.result.retention.items()
        for beside in of.latency
    ]
    return Table(columns, rows)


def _run(result: ComparisonResult, variant: str) -> RunResult | None:
    return next(iter(result.usable_runs(variant)), None)


def _events(result: ComparisonResult, variant: str) -> Sequence[RetentionEvent]:
    run = _run(result, variant)
    return (read_retention(run.folder) or []) if run is not None else []


def _intervals(result: ComparisonResult, variant: str, operation: str) -> list[IntervalRow]:
    """Median and p99 of one kind of operation in each interval of the run."""
    run = _run(result, variant)
    table = run.table("intervals") if run is not None else None
    if run is None or table is None or MEASURE not in run.manifest.phases or operation not in run.manifest.operations:
        return []
    rows = of_kind(table, run.manifest.phases.index(MEASURE), run.manifest.operations.index(operation)).sort_by("start_ns")
    return [
        IntervalRow(variant, row["start_ns"] / 1e9, quantile, row[f"response_{quantile}_ns"] / 1e9)
        for row in rows.to_pylist()
        for quantile in ("p50", "p99")
        if row[f"response_{quantile}_ns"] is not None
    ]


def _with_marks(
    lines: alt.Chart, actions: Sequence[ActionRow], variants: list[str]
) -> alt.Chart | alt.LayerChart | alt.FacetChart:
    """The same with a line up and down where each action began; a legend of none has no size, and cannot be drawn."""
    if not actions:
        return lines
    marks: alt.Chart = (
        charts.of_variants(actions)
        .mark_rule(strokeWidth=1, opacity=0.45)
        .encode(
            x=alt.X("time_s:Q"),
            color=charts.variant_colour(variants),
            strokeDash=alt.StrokeDash("kind:N", title=None, legend=alt.Legend(orient="bottom", symbolType="stroke")),
            tooltip=[
                alt.Tooltip("variant:N"),
                alt.Tooltip("kind:N"),
                alt.Tooltip("time_s:Q", format=".2f", title="began at (s)"),
                alt.Tooltip("length_s:Q", format=".3~s", title="took (s)"),
            ],
        )
    )
    return lines + marks


def _drawn_sizes(sizes: Sequence[SizeRow], actions: Sequence[ActionRow], variants: list[str], last_s: float) -> ChartSpec:
    line = charts.of_variants(sizes).mark_line(strokeWidth=1.8, interpolate="step-after")
    lines = line.encode(
        x=charts.time_axis(last_s),
        y=alt.Y("megabytes:Q", title="megabytes on disk"),
        color=charts.variant_colour(variants),
        tooltip=[alt.Tooltip("variant:N"), alt.Tooltip("time_s:Q", format=".2f"), alt.Tooltip("megabytes:Q", format=",.4~g")],
    )
    how = (
        "A step is the size on disk of a variant; the lines up and down are where its actions began. Many databases keep the room of removed "
        "rows for new ones: then the size stays, and only its growth ends. The last marks are the action after the run."
    )
    return charts.sized(_with_marks(lines, actions, variants), how)


def _drawn_latencies(rows: Sequence[IntervalRow], actions: Sequence[ActionRow], variants: list[str], last_s: float) -> ChartSpec:
    points = charts.of_variants(rows).mark_line(strokeWidth=1.6, point=alt.OverlayMarkDef(size=14))
    lines = points.encode(
        x=charts.time_axis(last_s),
        y=charts.latency_axis(),
        color=charts.variant_colour(variants),
        detail=alt.Detail("quantile:N"),
        opacity=alt.Opacity("quantile:N", title=None, scale=alt.Scale(domain=["p50", "p99"], range=[1.0, 0.55])),
        tooltip=[alt.Tooltip("variant:N"), alt.Tooltip("quantile:N"), alt.Tooltip("time_s:Q", format=".2f"), charts.SECONDS],
    )
    how = (
        "The strong line is the median of each interval, the weak one its p99; lower is faster. The lines up and down are where actions began: where the "
        "p99 rises at them, operations waited for retention."
    )
    return charts.sized(_with_marks(lines, actions, variants), how)
