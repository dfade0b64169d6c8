"""The page of changes of a cluster: the curve of each transition with its areas and events, the scores, and what was lost."""

from collections.abc import Callable, Iterable, Mapping

import altair as alt
import numpy as np

from sensorbench.report import charts, formatting, parts
from sensorbench.results.page import Block, Chart, ChartSpec, Columns, Facts, Line, Page, Section, Table, Text
from sensorbench.results.summary.elasticity import (
    DataMoves,
    ElasticityFigures,
    ElasticitySummary,
    LawEstimate,
    NodeLoad,
    Stabilisation,
    StableAgain,
    Transition,
)
from sensorbench.results.summary.guarantees import RegisterGuarantees
from sensorbench.wording import counted

# What a page says first of the rules by which a cluster is stable again.
RULES = {
    "by_band": "the median of five is near the level at the end",
    "by_rule": "five in a row differ little (the rule of the paper)",
    "in_band": "both: five in a row differ little, near the level at the end",
}
ANOMALIES = ("lost_writes", "stale_reads", "non_monotonic_reads", "never_written")
PARTS = ("before", "during", "after")
# Scores by other readings of the definition: columns of the table.
DEFINITIONS = {
    "above_ramp": "nothing below the ramp",
    "excess_deviation": "excess deviation",
    "above_level": "above the level before",
    "trapezoid": "trapezoid",
    "minutes": "time in minutes",
}
# How many pieces the shaded areas are drawn with.
_PIECES = 200


def elasticity_page(summary: ElasticitySummary) -> Page:
    """The page of changes of a cluster."""
    result, load, variant = summary.result, summary.result.workload, summary.variants[0]
    loop = "Closed loop: each thread waits for its answer."
    if load.rate_per_node:
        loop = f"Open loop: {formatting.count(load.rate_per_node)} requests per second for each node."
    about = (
        f"{result.dataset.title}: {result.dataset.rows:,} articles at the start. A set is {load.requests_per_thread} requests of each "
        f"thread, with {counted(load.threads_per_node, 'thread')} for each node; {counted(load.executions, 'set')} "
        f"{'make' if load.executions != 1 else 'makes'} a measurement. {loop} {summary.created.date()}."
    )
    facts = [
        ("target", variant.target),
        ("schema", f"{variant.schema_name}: {variant.schema_summary}"),
        *_sharding(result),
        *parts.servers(summary.environment, " at the start"),
        *([("hosts", ", ".join(result.hosts))] if result.hosts else []),
        parts.machine(summary.environment),
    ]
    return Page(
        kind="elasticity",
        title=summary.title,
        head=[
            Text(about, "about"),
            parts.state(summary.status, summary.reason, "run"),
            *parts.warnings(summary.warnings),
        ],
        sections=[
            _scalability(result),
            *(_transition(transition) for transition in result.transitions),
            parts.errors(result.errors),
            Section("variant", "Variant", [Facts(facts)]),
            parts.reproduce(summary.command, version=summary.version),
        ],
        footer=parts.footer(summary),
    )


def _sharding(result: ElasticityFigures) -> list[tuple[str, str]]:
    """By which keys collections are sharded, or why none is, where a target says that."""
    settings = result.load["description"].get("settings", {}) if result.load else {}
    return [("sharding", settings["sharding"])] if "sharding" in settings else []


def _scalability(result: ElasticityFigures) -> Section | None:
    """How the cluster scales, and the law of that."""
    if not result.scalability:
        return None
    blocks: list[Block] = [
        Text(
            f"From {scalability.from_nodes} to {scalability.to_nodes} nodes, with data and load in proportion, sets take "
            f"{abs(scalability.scalability) * 100:.1f}% {'more' if scalability.scalability > 0 else 'less'} time.",
            "headline",
        )
        for scalability in result.scalability
    ]
    if result.law:
        law, peak = result.law, "no number of nodes: more nodes do more"
        if law.peak_nodes is not None:
            peak = f"{formatting.significant(law.peak_nodes)} nodes"
        reached = ", ".join(f"{formatting.count(per_s)}/s on {nodes}" for nodes, per_s in law.reached_per_s.items())
        note = (
            f"The universal scalability law (Gunther 2008), fitted to {reached} nodes. The intervals (95%) are those of the measurements; "
            "they do not say whether the law holds."
        )
        facts = [
            ("one node would do", _estimate(law.per_node, formatting.count, " requests per second")),
            ("contention", _estimate(law.contention, formatting.percent)),
            ("coherency", _estimate(law.coherency, formatting.percent)),
            ("most is done on", peak),
        ]
        blocks += [Facts(facts), Text(note, "note")]
    return Section("scalability", "Scalability", blocks)


def _estimate(found: LawEstimate, shown: Callable[[float], str], unit: str = "") -> str:
    return f"{shown(found.value)}{unit} ({shown(found.low)} to {shown(found.high)})"


def _transition(transition: Transition) -> Section:
    """A change: its curve, when the cluster was stable again by which rule, what it cost, and what each node did."""
    name, blocks = f"transition-{transition.number}", list[Block]()
    if len(transition.sets.time_s) > 1:
        blocks.append(Chart(name, _curve(transition), "Set times"))
    if transition.stability:
        blocks.append(_stability(transition.stability))
    blocks.append(Facts(_costs(transition)))
    if transition.servers:
        blocks.append(_served(transition.servers))
    cluster = f"Cluster of {counted(transition.nodes, 'node')}"
    return Section(name, f"{transition.number}. {cluster}: {transition.change.title}", blocks)


def _stability(stability: Stabilisation) -> Table:
    columns: Columns = [
        ("stable again by", "text"),
        ("after", "duration_s"),
        ("of it after\nthe change", "duration_s"),
        ("elasticity", "number"),
        *((title, "number") for title in DEFINITIONS.values()),
        ("a set\nbefore", "duration_s"),
        ("after", "duration_s"),
    ]
    rows: list[list[Line]] = []
    for rule, title in RULES.items():
        stable: StableAgain = getattr(stability, rule)
        score = stable.score
        if score is None:
            rows.append([title, stable.reason or "not stable in time"])
            continue
        definitions = [getattr(score.definitions, definition) for definition in DEFINITIONS]
        rows.append([title, stable.total_s, stable.additional_s, score.elasticity, *definitions, score.av1_s, score.av2_s])
    return Table(columns, rows)


def _costs(transition: Transition) -> list[tuple[Line, Line] | None]:
    took = f"{formatting.duration(transition.transfer_s)}, until the database said that all data are where they belong"
    facts: list[tuple[Line, Line] | None] = [
        ("the change took", took),
        ("data moved", _moved(transition.data)) if transition.data and transition.change.kind in ("join", "leave") else None,
        ("all at once costs", transition.change.costs) if transition.change.costs else None,
        ("noticed by the others", f"after {formatting.duration(transition.noticed_s)}")
        if transition.noticed_s is not None
        else None,
    ]
    if dip := transition.dip:
        recovered = "never as good as before"
        if dip.recovered_s is not None:
            recovered = f"as good as before after {formatting.duration(dip.recovered_s)}"
        done = (
            f"{formatting.count(dip.level_per_s)} operations per second before; at worst {formatting.count(dip.lowest_per_s)} afterwards; "
            f"{formatting.count(dip.area)} operations fewer than at the level before; {recovered}"
        )
        available = "all the time: no operation failed"
        if dip.available_s != 0:
            available = f"after {formatting.duration(dip.available_s)}: nothing failed from then on"
        facts += [("what clients got done", done), ("all data available", available)]
    if counts := transition.counts:
        fates = f"{counts.ok:,} ok, {counts.error:,} failed, {counts.timeout:,} timed out"
        facts.append(
            ("operations", f"{counts.offered:,} offered: {fates}, {counts.cancelled:,} cancelled, {counts.dropped:,} dropped")
        )
    if found := transition.guarantees:
        anomalies = ", ".join(_anomaly(found, name) for name in ANOMALIES)
        facts.append(("registers", f"{found.counts.writes:,} writes, {found.counts.reads:,} reads: {anomalies}"))
    return facts


def _moved(data: DataMoves) -> str:
    """How many parts went to other nodes, how long that took, and what nodes had before and have now."""
    if data.without_data:
        return f"none to {', '.join(data.without_data)}"
    lines = []
    if data.moved_parts is not None:
        within = f" within {formatting.duration(data.moving_s)}" if data.moving_s is not None else ""
        before, after = (range_of(getattr(of.parts, when) for of in data.nodes.values()) for when in ("before", "after"))
        lines.append(f"{data.moved_parts:,} parts (regions or token ranges){within}; a node had {before}, and has {after}")
    if data.moved_bytes is not None:
        lines.append(f"nodes that joined have {formatting.size(data.moved_bytes)}")
    return "; ".join(lines) or "not known"


def range_of(values: Iterable[float | None]) -> str:
    """The fewest and the most of some whole numbers; empty if none is known."""
    known = sorted(value for value in values if value is not None)
    if not known:
        return ""
    return f"{known[0]:.0f}" if known[0] == known[-1] else f"{known[0]:.0f} to {known[-1]:.0f}"


def _anomaly(found: RegisterGuarantees, name: str) -> str:
    promised = ""
    if found.promised:
        promised = f" ({'promised not to occur' if found.promised[name].is_made else 'not promised'})"
    return f"{found.seen[name].count:,} {name.replace('_', ' ')}{promised}"


def _served(servers: Mapping[str, NodeLoad]) -> Table:
    columns: Columns = [
        ("requests served by", "name"),
        *((part, "count") for part in PARTS),
        ("CPUs busy:", "text"),
        *((part, "number") for part in PARTS),
    ]
    rows = [
        [node, *(getattr(of.requests, part) for part in PARTS), "", *(getattr(of.cpus, part, None) for part in PARTS)]
        for node, of in servers.items()
    ]
    return Table(columns, rows)


def _curve(transition: Transition) -> ChartSpec:
    """Set times over time with their deviations, the ramp, both areas, and what happened when."""
    rows = [
        {"time": time, "duration": duration, "low": duration - deviation, "high": duration + deviation}
        for time, duration, deviation in zip(
            transition.sets.time_s, transition.sets.duration_s, transition.sets.sd_s, strict=True
        )
    ]
    x = alt.X("time:Q", title="time, s", scale=alt.Scale(nice=False, padding=8))
    base = alt.Chart(alt.InlineData(values=rows)).encode(x=x)
    y = alt.Y("duration:Q", title="a request set takes, s", scale=alt.Scale(zero=True))
    line = base.mark_line(strokeWidth=1.6, color=charts.COLOURS[0]).encode(y=y)
    points = base.mark_point(filled=True, size=24, opacity=1, color=charts.COLOURS[0]).encode(
        y=y, tooltip=[alt.Tooltip("time:Q", format=".1f"), alt.Tooltip("duration:Q", format=".4~f")]
    )
    bars = base.mark_rule(opacity=0.45, color=charts.COLOURS[0]).encode(y=alt.Y("low:Q"), y2=alt.Y2("high:Q"))
    how = (
        "Each point is a set of requests, and how long it took; lower is faster. Bars are the standard deviation within a measurement. "
        "Orange is area A, between the curve and the dashed ramp from the level before to the level after; pink is area B, the deviations. "
        "Both end when the cluster is stable again."
    )
    return charts.sized(alt.layer(*_areas(transition), *_events(transition), bars, line, points), how, height=340)


def _areas(transition: Transition) -> list[alt.Chart]:
    """Area A, between the curve and the ramp, and area B, under the deviations, as far as the cluster was stable again."""
    score, sets = transition.stability.by_band.score if transition.stability else None, transition.sets
    if score is None:
        return []
    at_s = np.linspace(score.bootstrap_at_s, score.stable_at_s, _PIECES)
    rows = [
        {"time": time, "curve": curve, "ramp": ramp, "deviation": deviation, "zero": 0.0}
        for time, curve, ramp, deviation in zip(
            at_s,
            np.interp(at_s, sets.time_s, sets.duration_s),
            np.interp(at_s, at_s[[0, -1]], [score.av1_s, score.av2_s]),
            np.interp(at_s, sets.time_s, sets.sd_s),
            strict=True,
        )
    ]
    base = alt.Chart(alt.InlineData(values=rows)).encode(x=alt.X("time:Q"))
    return [
        base.mark_area(opacity=0.3, color=charts.COLOURS[1]).encode(y=alt.Y("curve:Q"), y2=alt.Y2("ramp:Q")),
        base.mark_area(opacity=0.3, color=charts.COLOURS[3]).encode(y=alt.Y("deviation:Q"), y2=alt.Y2("zero:Q")),
        base.mark_line(strokeDash=[5, 4], strokeWidth=1.2, color=charts.QUIET).encode(y=alt.Y("ramp:Q")),
    ]


def _events(transition: Transition) -> list[alt.Chart]:
    """What happened, as lines with words; words of events that are close follow each other downwards."""
    rows = [
        {"time": event.time_s, "name": event.name, "place": 8 + 13 * (place % 6)} for place, event in enumerate(transition.events)
    ]
    if not rows:
        return []
    base = alt.Chart(alt.InlineData(values=rows)).encode(x=alt.X("time:Q"))
    return [
        base.mark_rule(strokeDash=[2, 3], color=charts.QUIET),
        base.mark_text(align="left", dx=4, fontSize=10, color=charts.QUIET).encode(
            y=alt.Y("place:Q", scale=None, axis=None), text=alt.Text("name:N")
        ),
    ]
