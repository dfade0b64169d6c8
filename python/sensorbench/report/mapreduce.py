"""The page of the MapReduce study: times against nodes, speed-up, where data lay, what set-up takes, what was read, and the claims."""

from collections.abc import Sequence
from typing import NamedTuple

import altair as alt

from sensorbench.report import charts, formatting, parts
from sensorbench.report.claims import claims_section
from sensorbench.report.published import published_section
from sensorbench.results.mapreduce import Placement
from sensorbench.results.page import (
    Chart,
    ChartSpec,
    Columns,
    Definitions,
    Facts,
    Heading,
    Items,
    Line,
    Page,
    Piece,
    Section,
    Table,
    Text,
)
from sensorbench.results.summary.mapreduce import JobFigures, MapReduceFigures, MapReduceSummary, SpeedUp, WordFigures
from sensorbench.wording import counted

# The parts of the set-up: their words, in the order in which they come.
SETUP_PARTS = {
    "context_s": "application",
    "executors_s": "executors",
    "launch_s": "jars and a first task",
    "jobs_s": "planning, splits, commits",
}


def mapreduce_page(summary: MapReduceSummary) -> Page:
    """The page of the MapReduce study."""
    result = summary.result
    on_spark = [job for job in result.cells if job.workers is not None]
    generated = ", generated" if result.dataset.generated else ""
    so_far = f"; the run is {summary.status}: {summary.reason}" if summary.status != "complete" else ""
    about = f"{result.dataset.articles:,} articles ({result.dataset.title}{generated}), {result.repetitions} executions{so_far}."
    return Page(
        kind="study mapreduce",
        title=summary.title,
        head=[Text(about, "about"), _equal(summary.answers_equal)],
        sections=[
            _times_section(result, on_spark) if on_spark else None,
            _speed_up_section(summary) if result.speed_ups else None,
            _placements(result),
            _setup_section(on_spark) if on_spark else None,
            _reads(result, on_spark) if result.cells else None,
            _words(result) if result.cells else None,
            _gaps(result),
            _environment(summary),
            published_section(summary.published),
            _claims(summary),
            parts.reproduce(summary.command, version=summary.version),
        ],
        footer=parts.footer(summary),
    )


def _equal(answers_equal: bool | None) -> Text:
    if answers_equal is None:
        return Text("Nothing was executed.")
    if answers_equal:
        return Text("All results equal those of DuckDB.", "good")
    return Text("Results differ from those of DuckDB.", "banner bad")


def _by(job: JobFigures) -> str:
    """What carried out a cell: workers of Spark, on as many nodes of the database or on another number of them."""
    if job.workers is None:
        return "native job"
    workers, nodes = counted(job.workers, "worker"), job.nodes
    return workers if nodes is None else f"{workers}, {counted(nodes, 'node')}"


def _times_section(result: MapReduceFigures, on_spark: Sequence[JobFigures]) -> Section:
    columns: Columns = [
        ("system", "text"),
        ("by", "text"),
        ("word", "text"),
        ("T", "duration_s"),
        ("of it set-up", "share"),
        ("all executions, s", "text"),
        ("results", "text"),
    ]
    rows = [row for job in result.cells for row in _time_rows(job)]
    text = (
        "From the submission of the application to the final result; each word has applications of its own. Every execution is a point; the first of "
        f"each cell, hollow, finds nothing warm and is in no mean. {_growth(result)}"
    )
    drawn = [
        Chart(f"times-{place + 1}" if place else "times", _times(on_spark, word.word), f"{word.kind}: {word.word!r}")
        for place, word in enumerate(result.words)
        if any(_word_of(job, word.word) for job in on_spark)
    ]
    title = "Time against nodes" if result.workload.grows else "Time against workers"
    return Section("times", title, [Text(text), *drawn, Table(columns, rows)])


def _growth(result: MapReduceFigures) -> str:
    if not result.workload.grows:
        return "Databases stay as they are while Spark gets more workers."
    fixed = [f"{name} ({system.why_fixed})" for name, system in result.systems.items() if system.why_fixed]
    stays = f" These stay as they are, with more workers alone: {'; '.join(fixed)}." if fixed else ""
    return f"A database has as many nodes as Spark has workers.{stays}"


def _time_rows(job: JobFigures) -> list[list[Line]]:
    """A row for each word that had applications of its own."""
    rows: list[list[Line]] = []
    for word in job.words:
        if word.total is None:
            continue
        rows.append(
            [
                *(["", ""] if rows else [job.system, _by(job)]),
                word.word,
                [word.total.value, parts.between(word.total.low, word.total.high)],
                None if word.setup_s is None else word.setup_s / word.total.value,
                ", ".join(f"{formatting.significant(time.total_s)}{' (first)' if time.first else ''}" for time in word.times),
                "equal" if word.equal else Piece("differ", "bad"),
            ]
        )
    return rows


def _word_of(job: JobFigures, name: str) -> WordFigures | None:
    """The figures of a word that had applications of its own."""
    return next((word for word in job.words if word.word == name and word.total is not None), None)


def _speed_up_section(summary: MapReduceSummary) -> Section:
    columns: Columns = [
        ("system", "text"),
        ("word", "text"),
        ("workers", "count"),
        ("speed-up", "ratio"),
        ("without set-up", "ratio"),
        ("linear", "ratio"),
    ]
    rows = [
        [
            speed_up.system,
            speed_up.word or "–",
            f"{speed_up.from_workers} to {speed_up.workers}",
            speed_up.speed_up,
            speed_up.speed_up_without_setup,
            speed_up.linear,
        ]
        for speed_up in summary.result.speed_ups
    ]
    limit = ": more workers than it has idle CPUs cannot be faster" if summary.environment["spark"].get("started") else ""
    first = summary.result.words[0].word
    sharing = "Workers and the driver" if summary.result.hosts else "Workers, databases and the driver"
    text = f"The broken line is linear; drawn is the word {first!r}. {sharing} share this machine{limit}."
    of_first = [speed_up for speed_up in summary.result.speed_ups if speed_up.word in {first, None}]
    drawn = Chart("speed-up", _speed_up(of_first)) if of_first else None
    return Section("speed-up", "Speed-up", [Text(text), *([drawn] if drawn else []), Table(columns, rows)])


def _placements(result: MapReduceFigures) -> Section | None:
    """What each node held before each size was measured."""
    if not result.placements:
        return None
    columns: Columns = [
        ("system", "text"),
        ("nodes", "whole"),
        ("came about", "text"),
        ("node", "text"),
        ("parts", "whole"),
        ("on disk", "bytes"),
        ("share", "share"),
    ]
    rows: list[list[Line]] = []
    for placement in result.placements:
        total = sum(share.bytes or 0 for share in placement.shares.values())
        for number, (node, share) in enumerate(placement.shares.items()):
            head: list[Line] = ["", "", ""] if number else [placement.system, placement.nodes, _came_about(placement)]
            of_all = share.bytes / total if share.bytes is not None and total else None
            rows.append([*head, node, share.parts, share.bytes, of_all])
    note = (
        "Counted after the nodes had joined, data had been balanced and what had moved was deleted where it was before; parts are regions or token "
        "ranges. The bytes are those of tables, without what is still in memory."
    )
    return Section("placements", "Where the data were", [Table(columns, rows), Text(note, "note")])


def _came_about(placement: Placement) -> str:
    if placement.how == "started":
        return "loaded at this size"
    return f"grown in {formatting.duration(placement.took_s)}"


def _setup_section(on_spark: Sequence[JobFigures]) -> Section:
    text = f"Work is the time in which a stage was executed. Everything else is set-up: {'; '.join(SETUP_PARTS.values())}."
    return Section("setup", "What is set-up, and what work", [Text(text), Chart("setup", _setup(on_spark))])


def _reads(result: MapReduceFigures, on_spark: Sequence[JobFigures]) -> Section:
    columns: Columns = [
        ("system", "text"),
        ("by", "text"),
        ("word", "text"),
        ("map tasks 1", "whole"),
        ("at their split's node", "whole"),
        ("articles read", "whole"),
        ("text", "bytes"),
        ("map tasks 2", "whole"),
        ("lists re-read", "bytes"),
        ("ids in them", "whole"),
        ("Spark's own: rows", "whole"),
        ("bytes", "bytes"),
    ]
    rows: list[list[Line]] = []
    for job in on_spark:
        for number, word in enumerate(job.words):
            record, two = word.jobs[0], word.jobs[1]
            rows.append(
                [
                    *(["", ""] if number else [job.system, _by(job)]),
                    word.word,
                    record.map_tasks,
                    record.local_tasks,
                    record.read_rows,
                    record.read_bytes,
                    two.map_tasks,
                    [f"{two.read_rows:,} rows, ", two.read_bytes],
                    word.list_length,
                    record.spark_read_rows or "not reported",
                    record.spark_read_bytes or "not reported",
                ]
            )
    note = (
        "Rows and bytes of text were counted row by row by accumulators as they came out of the connector. Spark's own counters are "
        "shown where a connector fills them. The list of the first job is in the database, and the second job reads it from there."
    )
    native = {name: f" Native job: {system.native_job}." if system.native_job else "" for name, system in result.systems.items()}
    systems = [(name, f"{of.connector}. A split is {of.splits}.{native[name]}") for name, of in result.systems.items()]
    title = "Splits, and what was read through each connector"
    return Section("reads", title, [Table(columns, rows), Text(note, "note"), Definitions(systems)])


def _words(result: MapReduceFigures) -> Section:
    columns: Columns = [
        ("word", "text"),
        ("kind", "text"),
        ("occurrences", "whole"),
        ("articles", "whole"),
        *((f"{job.system}, {_by(job)}", "duration_s") for job in result.cells),
    ]
    rows = [
        [
            word.word,
            word.kind,
            word.occurrences,
            word.articles,
            *(next((of.jobs_s for of in job.words if of.word == word.word), None) for job in result.cells),
        ]
        for word in result.words
    ]
    note = "What the two jobs took, without starting the application."
    return Section("words", "Words", [Table(columns, rows), Text(note, "note")])


def _gaps(result: MapReduceFigures) -> Section | None:
    if not result.gaps:
        return None
    return Section("gaps", "Not available here", [Items([f"{gap.system}, {gap.what}: {gap.why}" for gap in result.gaps])])


def _environment(summary: MapReduceSummary) -> Section:
    workload = summary.result.workload
    spark = ", ".join(f"{key} {value}" for key, value in summary.environment["spark"].items())
    workers = f"{workload.cores_per_worker} cores and {workload.memory_per_worker} per worker"
    facts = [
        ("Spark", f"{spark}; {workers}; a list in parts of {workload.articles_per_part} articles"),
        *parts.servers(summary.environment),
        *([("hosts", ", ".join(summary.result.hosts))] if summary.result.hosts else []),
        parts.machine(summary.environment),
    ]
    return Section("environment", "Environment", [Facts(facts)])


def _claims(summary: MapReduceSummary) -> Section | None:
    """The claims, and what the paper's own table says of them."""
    printed = summary.result.printed
    if printed is None:
        return claims_section(summary.claims, study="mapreduce")
    columns: Columns = [
        ("system", "text"),
        ("printed", "number"),
        ("T(3)/T(8) if an increase", "number"),
        ("if a ratio", "number"),
        ("linear", "number"),
    ]
    rows: list[list[Line]] = [
        [name, [gain.printed_percent, " %"], gain.increase, gain.ratio, 8 / 3] for name, gain in printed.gains.items()
    ]
    true_of = [
        f"{claim}: {_is_true(of.increase)} if an increase, {_is_true(of.ratio)} if a ratio."
        for claim, of in printed.claims.items()
    ]
    own = Heading("The paper's own table, in both readings")
    return claims_section(summary.claims, study="mapreduce", more=[own, Table(columns, rows), Items(true_of)])


def _is_true(is_so: bool) -> str:
    return "agrees" if is_so else "contradicts itself"


def _systems(jobs: Sequence[JobFigures] | Sequence[SpeedUp]) -> list[str]:
    return list(dict.fromkeys(job.system for job in jobs))


def _workers() -> alt.X:
    return alt.X(
        "workers:Q",
        title="workers, and nodes of databases that grow",
        axis=alt.Axis(format="d", tickMinStep=1),
        scale=alt.Scale(nice=False, padding=24),
    )


class _TimeRow(NamedTuple):
    variant: str
    workers: int | None
    time: float


class _ExecutionRow(NamedTuple):
    system: str
    workers: int | None
    time: float
    first: bool
    execution: int


class _SpeedUpRow(NamedTuple):
    variant: str
    workers: int
    speed_up: float


def _times(jobs: Sequence[JobFigures], name: str) -> ChartSpec:
    """Of a word every execution as a point (the first of each hollow), and a line through the means."""
    systems = _systems(jobs)
    found = [(job, word) for job in jobs if (word := _word_of(job, name))]
    means = [_TimeRow(job.system, job.workers, word.total.value) for job, word in found if word.total]
    points = [
        _ExecutionRow(job.system, job.workers, time.total_s, time.first, time.execution)
        for job, word in found
        for time in word.times
    ]
    y = alt.Y("time:Q", title="from submission to result, s", scale=alt.Scale(zero=True))
    lines = charts.line_of_variants(means, systems).encode(x=_workers(), y=y)
    colour = alt.Color(
        "system:N", scale=alt.Scale(domain=systems, range=[*charts.COLOURS, *charts.COLOURS][: len(systems)]), legend=None
    )
    tooltip = [alt.Tooltip("system:N"), alt.Tooltip("execution:Q"), alt.Tooltip("time:Q", format=".3~s", title="seconds")]
    base = charts.data_of(points).encode(x=_workers(), y=alt.Y("time:Q"), color=colour, tooltip=tooltip)
    later = base.transform_filter("!datum.first").mark_point(filled=True, size=26, opacity=0.7)
    first = base.transform_filter("datum.first").mark_point(filled=False, size=34, opacity=0.8)
    how = "Each line is a system; lower is faster. A line that falls to the right gains from more workers."
    return charts.sized(alt.layer(lines, later, first).resolve_scale(color="independent"), how, height=320)


def _speed_up(speed_ups: Sequence[SpeedUp]) -> ChartSpec:
    """Speed-up of each system beside what is linear."""
    fewest, systems = speed_ups[0].from_workers, _systems(speed_ups)
    rows = [_SpeedUpRow(speed_up.system, speed_up.workers, speed_up.speed_up) for speed_up in speed_ups]
    rows += [_SpeedUpRow(system, fewest, 1.0) for system in systems]
    y = alt.Y("speed_up:Q", title=f"T({fewest}) over T(n)", scale=alt.Scale(zero=True))
    lines = charts.line_of_variants(rows, systems).encode(x=_workers(), y=y)
    largest = max(speed_up.workers for speed_up in speed_ups)
    linear = [{"workers": fewest, "speed_up": 1.0}, {"workers": largest, "speed_up": largest / fewest}]
    rule = (
        alt.Chart(alt.InlineData(values=linear))
        .mark_line(strokeDash=[5, 4], color=charts.QUIET)
        .encode(x=_workers(), y=alt.Y("speed_up:Q"))
    )
    how = "The dashed line is a speed-up that grows with the workers; the further a system stays below it, the less it gains from them."
    return charts.sized(alt.layer(rule, lines), how, height=280)


def _setup(jobs: Sequence[JobFigures]) -> ChartSpec:
    """What the time of each cell consists of: the parts of the set-up, and work."""
    kinds = [*SETUP_PARTS.values(), "work"]
    rows = []
    for job in jobs:
        parts = {title: getattr(job.setup_parts, part) for part, title in SETUP_PARTS.items()}
        parts["work"] = job.total.value - (job.setup_s or 0.0)
        label = f"{job.system}, {job.workers}"
        rows += [{"cell": label, "part": part, "seconds": seconds, "place": kinds.index(part)} for part, seconds in parts.items()]
    names = list(dict.fromkeys(row["cell"] for row in rows))
    colours = dict(zip(kinds, [*charts.COLOURS[1:5], charts.COLOURS[0]], strict=True))
    bars = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_bar()
        .encode(
            y=alt.Y("cell:N", title=None, sort=names),
            x=alt.X("seconds:Q", title="s"),
            color=charts.coloured("part", colours),
            order=alt.Order("place:Q"),
            tooltip=[alt.Tooltip("cell:N"), alt.Tooltip("part:N"), alt.Tooltip("seconds:Q", format=".3~s")],
        )
    )
    how = "A bar is the time of one execution, divided into setting up and work; where most is set-up, more data would cost little more."
    return charts.sized(bars, how, height=22 * len(names) + 20)
