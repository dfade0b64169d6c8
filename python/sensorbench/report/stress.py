"""The page of a stress run: how latency grows with the rate, what became of every operation, and what the servers said meanwhile."""

from collections.abc import Sequence

import altair as alt

from sensorbench.analysis.capacity import PERCENTILES
from sensorbench.report import charts, formatting, parts
from sensorbench.report.load_generators import load_generators
from sensorbench.report.over_time import over_time
from sensorbench.results.page import Chart, ChartSpec, Columns, Facts, Grid, Line, Page, Piece, Section, Table, Text
from sensorbench.results.quantities import QUANTITIES
from sensorbench.results.stress import StressResult
from sensorbench.results.summary.stress import ServerFigures, StressFigures, StressStep, StressSummary
from sensorbench.wording import counted

_QUANTILES = {"median": "p50", "p99": "p99", "p999": "p99.9"}


def stress_page(summary: StressSummary, result: StressResult) -> Page:
    """The page of a stress run."""
    of_all, variant = summary.result, summary.variants[0]
    workload = of_all.workload
    choice = f"Choice: {workload['choice']}. " if workload["choice"] else ""
    generators = workload.get("generators", 1)
    shared = f"{generators} load generators with " if generators > 1 else ""
    client = f"{shared}{counted(workload['threads'], 'thread')}, time-out {formatting.duration(workload['timeout_s'])}, seed {workload['seed']}"
    return Page(
        kind="stress",
        title=summary.title,
        head=[
            Text(
                f"{workload['data']}. {parts.mix(workload['mix'], of_all.operations)}. {choice}Arrivals: {workload['arrival']}. "
                f"At most {workload['concurrency']:,} operations in flight. {summary.created.date()}.",
                "about",
            ),
            parts.state(summary.status, summary.reason),
            *parts.warnings(summary.warnings),
        ],
        sections=[
            _capacity(of_all) or _reached(of_all),
            _curves(summary),
            _steps(of_all),
            _over_time(result, summary) if len(result.runs) == 1 else None,
            _servers(of_all.steps),
            parts.errors(of_all.errors),
            Section("load-generators", "Load generators", load_generators(of_all.load_generators))
            if of_all.load_generators
            else None,
            Section(
                "setup",
                "Setup",
                [
                    Facts(
                        [
                            ("target", variant.url),
                            ("schema", f"{variant.schema_name}: {variant.schema_summary}"),
                            *parts.servers(summary.environment),
                            ("client", client),
                            parts.machine(summary.environment),
                        ]
                    )
                ],
            ),
            parts.reproduce(summary.command, version=summary.version),
        ],
        footer=parts.footer(summary),
    )


def _capacity(result: StressFigures) -> Section | None:
    """The highest rate, and how it was searched."""
    found, objective, search = result.capacity, result.objective, result.search
    if not found or not objective or not search:
        return None
    note = (
        f"A rate meets the objective when at least {formatting.percent(PERCENTILES[objective.percentile])} of all operations that were due "
        f"succeeded within {formatting.duration(objective.limit_s)} from when they were due. Those that failed, timed out or never started "
        "count as too late. The rate is doubled or halved until it is bracketed. Then the bracket is halved (geometrically) to "
        f"{formatting.percent(search.precision)}. A rate that missed once is tried again, and each end is repeated until it has "
        f"{search.confirm} trials. The lower end met in each of its trials, the upper end in none; between them it is a matter of "
        f"chance. {found.trials} trials, each a run of its own: {formatting.duration(search.held_s)} at the rate after "
        f"{formatting.duration(search.ramp_s)} of climbing."
    )
    return Section("capacity", "Capacity", [Text(formatting.capacity(found, objective), "headline"), Text(note, "note")])


def _reached(result: StressFigures) -> Section | None:
    """The answer of rates that were held: what was completed at the highest one that was kept, and from which on it was not."""
    line = formatting.reached(result.steps)
    return Section("answer", "The answer", [Text(line, "headline")]) if line else None


def _steps(result: StressFigures) -> Section:
    """What became of the operations of each step."""
    of_search: Columns = [("objective", "text")] if result.search else []
    columns: Columns = [
        ("rate", "name"),
        *of_search,
        ("completed\n/s", "count"),
        *((title, "duration_s") for title in ("p50", "p99", "p99.9", "p99 of\nservice")),
        *((title, "whole") for title in _FATES.values()),
        ("in flight", "count"),
        ("client's\nCPUs", "number"),
    ]
    rows = [
        [
            [formatting.count(step.rate_per_s), parts.muted(_flags(step))],
            *([_met(step)] if result.search else []),
            step.completed_per_s,
            *(getattr(step.response_s, metric, None) for metric in _QUANTILES),
            step.service_s.p99 if step.service_s else None,
            *(getattr(step.counts, fate) for fate in _FATES),
            step.concurrency,
            None if step.client_cpu is None else formatting.significant(step.client_cpu, 2),
        ]
        for step in result.steps
    ]
    note = (
        "offered = started + dropped; started = ok + failed + timed out + cancelled. Late: started more than 1 ms after the intended "
        "start. Dropped: never started, because the concurrency limit was reached. No figure includes what arrives while the rate climbs."
    )
    return Section("steps", "The trials" if result.search else "The steps", [Table(columns, rows), Text(note, "note")])


_FATES = {
    "offered": "offered",
    "started": "started",
    "late": "late",
    "dropped": "dropped",
    "ok": "ok",
    "error": "failed",
    "timeout": "timed out",
    "cancelled": "cancelled",
}


def _flags(step: StressStep) -> str:
    return ", ".join(mark for key, mark in formatting.STEP_NOTES.items() if getattr(step, key))


def _met(step: StressStep) -> Line:
    if step.met is None or step.share_within is None:
        return ""
    return [Piece("met", "good") if step.met else Piece("missed", "bad"), parts.muted(formatting.percent(step.share_within))]


def _servers(steps: Sequence[StressStep]) -> Section | None:
    """What the servers reported during each step."""
    names = dict.fromkeys(
        (kind, name) for step in steps for kind in ("hit_rates", "rates", "means") for name in getattr(step.servers, kind)
    )
    if not names:
        return None
    columns: Columns = [("during", "name"), *((f"{formatting.count(step.rate_per_s)}/s", "number") for step in steps)]
    rows = [[_quantity_title(kind, name), *(_said(step.servers, kind, name) for step in steps)] for kind, name in names]
    note = (
        "A hit rate is called steady from when no later window of the step was further than one percentage point from the mean of the "
        "last quarter. That quarter has no trend itself."
    )
    return Section("servers", "What the servers reported", [Table(columns, rows), Text(note, "note")])


def _quantity_title(kind: str, name: str) -> Line:
    if kind == "hit_rates":
        return f"hit rate, {name.replace('_', ' ')}"
    of_time = " per second" if kind == "rates" else ", mean"
    return [QUANTITIES[name].title, parts.muted(f"{QUANTITIES[name].unit}{of_time}")]


def _said(servers: ServerFigures, kind: str, name: str) -> Line:
    value: float | None = getattr(servers, kind).get(name)
    if value is None or kind != "hit_rates":
        return value
    if name not in servers.steady_after_s:
        return formatting.percent(value)
    steady_s = servers.steady_after_s[name]
    return [
        formatting.percent(value),
        parts.muted("not steady" if steady_s is None else f"steady after {formatting.duration(steady_s)}"),
    ]


def _curves(summary: StressSummary) -> Section | None:
    """How steps compare, whenever they were."""
    steps = [step for step in summary.result.steps if step.response_s]
    if not steps:
        return None
    drawn = [
        Chart("curve", _curve(steps, summary), "Latency by what was completed"),
        Chart("completed", _completed(steps), "What was completed of what was requested"),
    ]
    note = (
        "Response times count from the intended start of an operation, whether or not it could start then: so the numbers are free of "
        "coordinated omission."
    )
    return Section("curve", "Latency and throughput", [Grid(drawn), Text(note, "note")])


def _curve(steps: Sequence[StressStep], summary: StressSummary) -> ChartSpec:
    """Throughput–latency curve: response times at what was completed a second."""
    rows = [
        {
            "completed": step.completed_per_s,
            "latency_s": getattr(step.response_s, metric),
            "percentile": name,
            "rate": step.rate_per_s,
            "limit": "client" if step.client_bound else "server or none",
        }
        for step in sorted(steps, key=lambda step: step.rate_per_s)
        for metric, name in _QUANTILES.items()
    ]
    x = alt.X(
        "completed:Q",
        title="completed, operations per second",
        axis=charts.COUNT_AXIS,
        scale=alt.Scale(zero=False, nice=False, padding=14),
    )
    colour = charts.coloured("percentile", dict(zip(_QUANTILES.values(), charts.COLOURS, strict=False)))
    base = alt.Chart(alt.InlineData(values=rows)).encode(x=x, y=charts.latency_axis(), color=colour)
    # In the order of the rates: beyond capacity the line turns back. Trials of a search are no such order.
    line = base.mark_line(strokeWidth=1.8).encode(order=alt.Order("rate:Q"))
    shape = alt.Shape(
        "limit:N",
        title=None,
        scale=alt.Scale(domain=["server or none", "client"], range=["circle", "triangle"]),
        legend=charts.STATES_LEGEND if any(row["limit"] == "client" for row in rows) else None,
    )
    points = base.mark_point(filled=True, size=55, opacity=1).encode(
        shape=shape,
        tooltip=[
            alt.Tooltip("percentile:N"),
            charts.SECONDS,
            alt.Tooltip("completed:Q", format=",.4~g"),
            alt.Tooltip("rate:Q", format=",.4~g", title="requested"),
        ],
    )
    layers = [points] if summary.result.search else [line, points]
    how = (
        "Each point is a rate: how many operations per second were completed, and how long they took; lower and further right is better. "
        "Where a line turns back, more was requested than the server completes."
    )
    return charts.sized(alt.layer(*layers, *_objective(summary)), how, height=340)


def _objective(summary: StressSummary) -> list[alt.Chart]:
    """The limit as a line, and between which rates the capacity lies."""
    found, objective = summary.result.capacity, summary.result.objective
    if objective is None:
        return []
    layers = []
    limit = alt.Chart(alt.InlineData(values=[{"limit_s": objective.limit_s}]))
    layers.append(limit.mark_rule(strokeDash=[5, 4], color=charts.QUIET).encode(y=alt.Y("limit_s:Q")))
    if found and found.met_per_s:
        ends = [{"low": found.met_per_s, "high": found.missed_per_s or found.met_per_s}]
        band = alt.Chart(alt.InlineData(values=ends))
        layers.append(band.mark_rect(opacity=0.25, color=charts.COLOURS[2]).encode(x=alt.X("low:Q"), x2=alt.X2("high:Q")))
        layers.append(band.mark_rule(color=charts.COLOURS[2]).encode(x=alt.X("low:Q")))
    return layers


def _completed(steps: Sequence[StressStep]) -> ChartSpec:
    """Of what was asked for a second, what was completed, and what became of the rest."""
    fates = {
        "ok": "completed",
        "timeout": "timed out",
        "error": "failed",
        "cancelled": "cancelled",
        "dropped": "dropped (never started)",
    }
    rows = [
        {
            "rate": formatting.count(step.rate_per_s),
            "fate": name,
            "per_s": getattr(step.counts, key) / max(step.end_s - step.start_s, 1e-9),
            "order": place,
        }
        for step in sorted(steps, key=lambda step: step.rate_per_s)
        for place, (key, name) in enumerate(fates.items())
        if getattr(step.counts, key) or key == "ok"
    ]
    order = list(dict.fromkeys(row["rate"] for row in rows))
    colours = dict(zip(fates.values(), (charts.COLOURS[place] for place in (2, 4, 1, 7, 3)), strict=True))
    shown = {fate: colour for fate, colour in colours.items() if any(row["fate"] == fate for row in rows)}
    bars = alt.Chart(alt.InlineData(values=rows)).mark_bar()
    return charts.sized(
        bars.encode(
            x=alt.X("rate:N", title="requested rate", sort=order, axis=alt.Axis(labelAngle=-45)),
            y=alt.Y("mean(per_s):Q", title="operations per second", axis=charts.COUNT_AXIS, stack="zero"),
            color=charts.coloured("fate", shown, columns=3),
            order=alt.Order("order:Q"),
            tooltip=[alt.Tooltip("rate:N"), alt.Tooltip("fate:N"), alt.Tooltip("mean(per_s):Q", format=",.4~g")],
        ),
        "Each bar is a rate, and what became of the operations that it requested. Anything but completed means that the server could not follow.",
        height=340,
    )


def _over_time(result: StressResult, summary: StressSummary) -> Section | None:
    """Everything that shares the clock of the one run."""
    steps = summary.result.steps
    last_s = max([1.0, *(step.end_s for step in steps)])
    return over_time(result.runs[0], result.manifest.variants[0].database, last_s, [step.start_s for step in steps])
