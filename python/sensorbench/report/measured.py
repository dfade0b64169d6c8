"""What was measured in a comparison: latencies, over the run, throughput, loading and size, and whether the client was sound."""

from collections.abc import Callable, Mapping, Sequence
from typing import Concatenate, ParamSpec, TypeVar

from sensorbench.report import charts, formatting, parts, values
from sensorbench.report.batched_loads import batched_loads
from sensorbench.report.load_generators import load_generators, loaded_by_generators
from sensorbench.results import ComparisonResult
from sensorbench.results.latencies import MAX_HELD
from sensorbench.results.page import Block, Chart, ChartSpec, Columns, Details, Grid, Line, Piece, Section, Table, Text
from sensorbench.results.summary.comparison import (
    ClientHealth,
    ComparisonFigures,
    ComparisonSummary,
    LoadFigures,
    OperationFigures,
)

_METRICS = {
    "mean": "mean",
    "median": "median",
    "sd": "standard deviation",
    "p75": "p75",
    "p95": "p95",
    "p99": "p99",
    "mean_to_p95": "mean to p95",
}
# The kind of warnings of what is true of all embedded databases.
EMBEDDED = "embedded"

# The rows of a chart, and what else the function that draws it takes.
R = TypeVar("R")
P = ParamSpec("P")


def ids(summary: ComparisonSummary) -> list[str]:
    """The ids of the variants, in their order."""
    return [variant.id for variant in summary.variants]


def chart(
    name: str,
    title: str,
    rows: Sequence[R],
    draw: Callable[Concatenate[Sequence[R], P], ChartSpec],
    *more: P.args,
    **named: P.kwargs,
) -> Chart | None:
    """A chart of rows, if there are any."""
    return Chart(name, draw(rows, *more, **named), title) if rows else None


def requested_once(result: ComparisonFigures) -> list[str]:
    """The operations that are not variants of one: of a variant curves say more than charts of its own."""
    return [name for name, operation in result.operations.items() if not operation.instance_of]


def _by_question(summary: ComparisonSummary, shown: Callable[[OperationFigures], list[Line]]) -> list[list[Line]]:
    """A row for each question and variant, grouped by question."""
    figures = {(figure.variant, figure.operation): figure for figure in summary.result.figures}
    return [
        ["" if place else operation.title, formatting.variant(variant), *shown(figures[variant, name])]
        for name, operation in summary.result.operations.items()
        for place, variant in enumerate(ids(summary))
    ]


def latencies(summary: ComparisonSummary, result: ComparisonResult) -> Section:
    """How latencies are distributed."""
    shows_service = is_open_loop(summary)

    def shown(figure: OperationFigures) -> list[Line]:
        service: list[Line] = [figure.service_s.p50, figure.service_s.p99] if shows_service else []
        return [*(_latency(figure, metric) for metric in _METRICS), *service, figure.rows_per_operation, figure.counts.ok]

    service_columns: Columns = [("service p50", "duration_s"), ("service p99", "duration_s")] if shows_service else []
    columns: Columns = [
        ("Operation", "label"),
        ("Variant", "name"),
        *((title, "duration_s") for title in _METRICS.values()),
        *service_columns,
        ("rows per answer", "count"),
        ("answers", "count"),
    ]
    note = (
        "Latencies are response times: they count from an operation's intended start, so that waiting for the client counts, too. Service "
        "times count from its start. A closed loop shows only those."
    )
    drawn = [
        chart(
            f"distribution-{name}",
            summary.result.operations[name].title,
            values.distribution(result, ids(summary), name),
            charts.distribution,
            ids(summary),
        )
        for name in requested_once(summary.result)
    ]
    return Section(
        "latencies",
        "How latencies are distributed",
        [
            Table(columns, _by_question(summary, shown), is_grouped=True),
            Text(note, "note") if shows_service else None,
            Grid(drawn),
        ],
    )


def is_open_loop(summary: ComparisonSummary) -> bool:
    """Whether arrivals followed a schedule."""
    schedule = summary.result.workload["schedule"]
    return bool(schedule.get("rate") or schedule.get("segments"))


def _latency(figure: OperationFigures, metric: str) -> Line:
    found = figure.latency_s.get(metric)
    if found is None:
        return None
    few = Piece("few answers", "muted", hint="fewer than 10 answers are beyond this quantile")
    return [found.value, parts.between(found.low, found.high) or few]


def over_run(summary: ComparisonSummary, result: ComparisonResult) -> Section:
    """Latency over the run, and what servers used on the same axis."""
    variant_ids, operations = ids(summary), summary.result.operations
    views = {(variant, name): values.views(result, variant, name) for variant in variant_ids for name in operations}
    last_s = values.longest_first_run_s(result, variant_ids)
    use = values.resources(result, variant_ids)
    drawn: list[Chart | None] = []
    for name in requested_once(summary.result):
        title = operations[name].title
        requests, intervals = values.over_run(result, variant_ids, name), values.over_time(result, variant_ids, name)
        drawn += [
            chart(f"over-run-{name}", title, requests, charts.over_run, variant_ids, list(values.FIRST_REQUESTS)),
            chart(f"over-time-{name}", title, intervals, charts.over_time, variant_ids, last_s),
        ]
    drawn += [
        chart("processors", "CPUs that the servers kept busy", use, charts.processors, variant_ids, last_s),
        chart("memory", "Memory of the servers", use, charts.memory, variant_ids, last_s),
    ]
    first, second = values.FIRST_REQUESTS
    text = (
        "Median and 99th percentile in each interval of the first run. Single requests are shown where every one was logged "
        f'(log = "all" in the workload) and a run has at most {MAX_HELD:,} of them.'
    )
    whole = None
    if all(view is not None for view in views.values()):
        text = (
            f"Each request of the first run and a smoothed line. The dashed lines mark the first {first} and {second} requests of the run: "
            "a database that starts cold is slower before them."
        )
        titles = [
            "all",
            *(f"first {number}" for number in (first, second)),
            *(f"without the first {number}" for number in (first, second)),
        ]
        columns: Columns = [("Operation", "label"), ("Variant", "name"), *((title, "duration_s") for title in titles)]
        rows = _by_question(summary, lambda figure: _view(views[figure.variant, figure.operation] or {}))
        whole = Details("Mean latencies with and without the first requests", [Table(columns, rows, is_grouped=True)])
    return Section("over-run", "Latency over the run", [Text(text), Grid(drawn), whole])


def _view(view: Mapping[str, float | None]) -> list[Line]:
    names = ["all", *(f"{which}_{first}" for which in ("first", "without_first") for first in values.FIRST_REQUESTS)]
    return [view[name] for name in names]


def throughput(summary: ComparisonSummary, result: ComparisonResult) -> Section:
    """The inverse of the latencies, and moments at which the throughput changed."""
    variant_ids, of_all = ids(summary), summary.result
    drawn = [
        chart(
            f"throughput-{name}",
            of_all.operations[name].title,
            values.throughput(result, variant_ids, name),
            charts.throughput,
            variant_ids,
        )
        for name in requested_once(of_all)
    ]
    if of_all.workload["duration"]:
        rates = values.rate(result, variant_ids)
        drawn.append(chart("rate", "Operations per second over the first run", rates, charts.rate, variant_ids))
    text = (
        "The inverse of the latency at each percentile: how many answers per second one client would get if every answer took that long. "
        "It says nothing about many clients at once."
    )
    changes = [
        Text(
            [
                Piece(formatting.variant(variant), "strong"),
                f", run {change.repetition}: from {formatting.count(change.time_s)} s on, throughput changed from "
                f"{formatting.count(change.before_per_s)}/s to {formatting.count(change.after_per_s)}/s.",
            ],
            "banner warn",
        )
        for variant, of_variant in of_all.rate_changes.items()
        for change in of_variant
    ]
    return Section("throughput", "Throughput", [Text(text), Grid(drawn), *changes])


def load_and_size(summary: ComparisonSummary, result: ComparisonResult) -> Section | None:
    """How long loading took and how large the data are, where anything was loaded."""
    loads, variant_ids = summary.result.load, ids(summary)
    if not loads:
        return None
    drawn = [
        chart("load", "Time until loaded and settled", values.load(result, variant_ids), charts.load, variant_ids),
        chart("size", "Size on disk after settling", values.size(result, variant_ids), charts.size, variant_ids),
    ]
    of_reading = max(load.values_per_reading for load in loads.values())
    columns: Columns = [
        ("Variant", "name"),
        ("rows", "count"),
        ("load", "duration_s"),
        ("settle", "duration_s"),
        ("readings/s loading", "count"),
        ("readings/s until settled", "count"),
        ("size", "bytes"),
        ("bytes per reading", "number"),
    ]
    if of_reading > 1:
        columns = [*columns, ("values/s loading", "count"), ("bytes per value", "number")]
    note = (
        "Settled means that indexes, compactions and flushes are done. Rows in were counted again in the database and were equal. Sorting "
        "and encoding happened before and are not in these times."
    )
    if of_reading > 1:
        note += f" Each reading has {of_reading:g} values."
    rows = [_loaded(variant, loads[variant], with_values=of_reading > 1) for variant in variant_ids if variant in loads]
    apart = [
        *loaded_by_generators(loads, variant_ids),
        *batched_loads(loads, variant_ids),
        *_memory(loads, variant_ids),
        *_by_tools(loads, variant_ids),
        *_snapshots(loads, variant_ids),
    ]
    return Section("load", "Loading and size", [Grid(drawn), Table(columns, rows), Text(note, "note"), *apart])


def _memory(loads: dict[str, LoadFigures], variant_ids: list[str]) -> list[Block]:
    """Memory while variants were loaded, of those of which it is known."""
    known = {variant: load.memory for variant in variant_ids if (load := loads.get(variant)) is not None and load.memory}
    if not known:
        return []
    columns: Columns = [
        ("Variant", "name"),
        ("memory of", "text"),
        ("before", "bytes"),
        ("at its peak", "bytes"),
        ("loaded", "bytes"),
    ]
    whose = {"server": "its server", "client": "this process"}
    rows: list[list[Line]] = [
        [formatting.variant(variant), whose[of["of"]], of["before_bytes"], of["peak_bytes"], of["end_bytes"]]
        for variant, of in known.items()
    ]
    note = (
        "Memory of all processes of the server while it was loaded and settled, read twice per second. A library has the memory of the process that it is in, with "
        "its client. Variants that share a server, or are libraries, share its memory."
    )
    return [Table(columns, rows), Text(note, "note")]


def _by_tools(loads: dict[str, LoadFigures], variant_ids: list[str]) -> list[Block]:
    """What was loaded by a database's own tool: of the file that it read, and of rows that it lost."""
    by_tool = {variant: load for variant in variant_ids if (load := loads.get(variant)) is not None and load.loader is not None}
    if not by_tool:
        return []
    columns: Columns = [
        ("Variant", "name"),
        ("loaded by", "text"),
        ("file", "bytes"),
        ("bytes/s loading", "bytes"),
        ("making the file", "duration_s"),
        ("rows lost", "count"),
    ]
    rows: list[list[Line]] = []
    lost: list[Block] = []
    for variant, load in by_tool.items():
        tool = load.loader
        if tool is None:
            continue
        rate = tool["file_bytes"] / load.load_s if load.load_s else None
        missing = (load.rows_sent or load.rows) - load.rows
        rows.append(
            [
                formatting.variant(variant),
                f"{tool['program']} {tool['version']}",
                tool["file_bytes"],
                rate,
                tool["files_s"],
                missing,
            ]
        )
        lost += (
            [Text(f"{variant} lost {missing:,} of {load.rows_sent:,} rows: {'; '.join(tool['problems'])}.")] if missing else []
        )
    note = (
        "These were loaded by a tool of the database's own instead of this project's driver. Its start is in the time of loading; making its file is not. "
        "The rows were counted afterwards as all others."
    )
    return [Table(columns, rows), Text(note, "note"), *lost]


def _snapshots(loads: dict[str, LoadFigures], variant_ids: list[str]) -> list[Block]:
    """What snapshots of data in memory take on disk."""
    taken = {variant: load.snapshot for variant in variant_ids if (load := loads.get(variant)) is not None and load.snapshot}
    if not taken:
        return []
    columns: Columns = [
        ("Variant", "name"),
        ("snapshot", "bytes"),
        ("of others, before", "bytes"),
        ("writing all of it", "duration_s"),
        ("of others, before", "duration_s"),
    ]
    rows: list[list[Line]] = [
        [formatting.variant(variant), of["total_bytes"], of.get("others_bytes"), of["took_s"], of.get("others_took_s")]
        for variant, of in taken.items()
    ]
    note = (
        "After loading, the server wrote everything that it held to its snapshot file. Variants that share a server are there together. The size is what the file "
        "grew by. The time is that of the whole file, after what it took before."
    )
    return [Table(columns, rows), Text(note, "note")]


def _loaded(variant: str, load: LoadFigures, *, with_values: bool) -> list[Line]:
    size = load.size.total_bytes
    rates = [load.readings_per_s, load.settled_readings_per_s]
    of_reading = size / load.readings if size is not None else None
    cells: list[Line] = [formatting.variant(variant), load.rows, load.load_s, load.settle_s, *rates, size, of_reading]
    if not with_values:
        return cells
    of_value = of_reading / load.values_per_reading if of_reading is not None else None
    return [*cells, load.values_per_s, of_value]


def client_health(summary: ComparisonSummary) -> Section:
    """Whether the load generator was sound."""
    counts = ("started", "ok", "errors", "timed out", "late", "dropped", "operations/s")
    columns: Columns = [
        ("Variant", "name"),
        *((title, "count") for title in counts),
        ("no-op ceiling of the driver", "rate"),
        ("client’s CPU", "text"),
        ("timer lag p99", "duration_s"),
        ("clock drift", "number"),
    ]
    rows = [[formatting.variant(variant), *_health(summary.result.client_health[variant])] for variant in ids(summary)]
    note = (
        "Every operation is accounted for: started = ok + errors + timed out + cancelled. Response times count from an "
        "operation's intended start; in a closed loop that is its start."
    )
    generators = summary.result.generators
    shared: list[Block] = []
    if generators > 1:
        shared.append(Text(f"{generators} load generators shared each run; figures are of all of them."))
    embedded = (Text(f"{caveat.text} {caveat.action}") for caveat in summary.warnings if caveat.kind == EMBEDDED)
    return Section(
        "health",
        "Load-generator health",
        [*shared, *embedded, Table(columns, rows), Text(note, "note"), *load_generators(summary.result.load_generators)],
    )


def _health(of: ClientHealth) -> list[Line]:
    cpu = None if of.client_cpu is None else f"{of.client_cpu * 100:.0f}%"
    if cpu and of.client_cpu_is_shared_with_database:
        cpu += ", database included"
    drift = None if of.clock_drift is None else f"{of.clock_drift:.1e}"
    counts = [of.started, of.ok, of.errors, of.timeouts, of.late, of.dropped, of.rate_per_s]
    return [*counts, of.driver_ceiling_per_s or None, cpu, of.schedule_lag_p99_s, drift]
