"""The page of a load or of queries of TSBS: rates in rows and in values, latencies, answers, and what TSBS prints."""

from sensorbench.report import formatting, parts
from sensorbench.report.answers import compared_answers
from sensorbench.results.page import Block, Code, Columns, Facts, Items, Line, Page, Section, Table, Text
from sensorbench.results.planned import PlannedTsbs
from sensorbench.results.summary.comparison import LoadFigures
from sensorbench.results.summary.tsbs import TsbsQueries, TsbsSummary
from sensorbench.results.tsbs import TsbsResult
from sensorbench.wording import counted

_LATENCIES = {"min": "min", "median": "p50", "mean": "mean", "p95": "p95", "p99": "p99", "max": "max"}
_OUTCOMES = {"ok": "ok", "error": "failed", "timeout": "timed out"}
_LOADED = (
    "TSBS calls values metrics. Loading ends when the last batch is acknowledged. Settling is what comes after it: flushes, compactions and "
    "index builds. TSBS does not count it."
)
_RESPONSE = "Response times count from the intended start. In a closed loop that is when a worker was free, as in TSBS."
_ANSWERS = (
    "Compared are the number of rows and an order-free sum of row hashes over exact values, for every query at every target. A sample of them "
    "is also compared with answers that DuckDB computed from the data. TSBS compares no answers."
)


def tsbs_page(summary: TsbsSummary, result: TsbsResult, printed: str) -> Page:
    """The page of a load or of queries; `printed` is what TSBS prints of it."""
    plan = summary.result.plan
    return Page(
        kind=summary.kind,
        title=summary.title,
        head=[
            Text(f"{_about(summary)}. {summary.created.date()}.", "about"),
            parts.state(summary.status, summary.reason),
            *parts.warnings(summary.warnings),
        ],
        sections=[
            _loads(summary.result.loads),
            _queries(summary.result.queries),
            _answers(summary),
            _caveats(plan, summary.result.queries),
            _left_out(plan.inexpressible),
            parts.errors([kind for health in summary.result.client_health.values() for kind in health.error_kinds]),
            Section("printed", "In TSBS's own words", [Code(printed)]) if printed else None,
            Section(
                "setup",
                "Setup",
                [Facts([*_setup(summary), *parts.servers(summary.environment), parts.machine(summary.environment)])],
            ),
            parts.reproduce(summary.command, version=summary.version),
        ],
        footer=parts.footer(summary, f" Folder {result.folder.name}."),
    )


def _about(summary: TsbsSummary) -> str:
    """What was done, in a sentence."""
    plan = summary.result.plan
    data = (
        f"Use case {plan.use_case}, scale {plan.scale:,}, {plan.timestamp_start:%Y-%m-%d %H:%M} to {plan.timestamp_end:%Y-%m-%d %H:%M} UTC every "
        f"{plan.log_interval_s:g} s: {plan.rows:,} rows, {plan.metrics:,} values. Seed {plan.seed}"
    )
    workers = counted(plan.workers, "worker")
    if plan.phase == "load":
        return f"{data}. Loaded by {workers} in batches of up to {plan.batch_size:,} rows"
    pace = f", {formatting.count(plan.max_rps)} queries per second" if plan.max_rps else ""
    return f"{data}. {plan.max_queries:,} queries of each kind by {workers}{pace}"


def _loads(loads: dict[str, LoadFigures]) -> Section | None:
    """How each target was loaded."""
    if not loads:
        return None
    columns: Columns = [
        ("Target", "name"),
        ("rows", "whole"),
        ("values", "whole"),
        ("load", "duration_s"),
        ("rows/s", "count"),
        ("values/s", "count"),
        ("settle", "duration_s"),
        ("values/s until settled", "count"),
        ("size", "bytes"),
        ("bytes per value", "number"),
    ]
    rows: list[list[Line]] = [
        [
            formatting.variant(variant),
            load.readings,
            load.values,
            load.load_s,
            load.readings_per_s,
            load.values_per_s,
            load.settle_s,
            load.settled_readings_per_s and load.settled_readings_per_s * load.values_per_reading,
            load.size.total_bytes,
            None if load.size.total_bytes is None else load.size.total_bytes / load.values,
        ]
        for variant, load in loads.items()
    ]
    return Section("load", "Loading", [Table(columns, rows), Text(_LOADED, "note")])


def _queries(queries: list[TsbsQueries]) -> Section | None:
    """A line for each kind of query at each target."""
    if not queries:
        return None
    columns: Columns = [
        ("Query", "label"),
        ("target", "name"),
        ("queries/s", "count"),
        *((title, "whole") for title in _OUTCOMES.values()),
        ("rows each", "number"),
        *((title, "duration_s") for title in _LATENCIES.values()),
    ]
    rows: list[list[Line]] = [
        [
            of.query,
            formatting.variant(of.variant),
            of.ended / of.run_s if of.run_s else None,
            *(getattr(of, outcome) for outcome in _OUTCOMES),
            of.rows / of.ok if of.ok else None,
            *(getattr(of.response_s, name, None) for name in _LATENCIES),
        ]
        for of in queries
    ]
    return Section("queries", "Queries", [Table(columns, rows), Text(_RESPONSE, "note")])


def _answers(summary: TsbsSummary) -> Section | None:
    """Whether the answers were equal."""
    answers = summary.result.answers
    if not answers:
        return None
    said = {True: "All answers were equal.", False: "Some answers were different.", None: "Answers were not compared."}
    blocks: list[Block] = [Text(said[summary.answers_equal], {True: "good", False: "bad", None: ""}[summary.answers_equal])]
    blocks += [compared_answers(answers, {name: name for name in answers}), Text(_ANSWERS, "note")]
    return Section("answers", "Were the answers equal?", blocks)


def _left_out(inexpressible: dict[str, dict[str, str]]) -> Section | None:
    """Queries that targets cannot express."""
    lines = [f"{formatting.variant(variant)}, {name}: {why}" for variant, of in inexpressible.items() for name, why in of.items()]
    return Section("left_out", "Queries that cannot be expressed", [Items(lines)]) if lines else None


def _caveats(plan: PlannedTsbs, queries: list[TsbsQueries]) -> Section | None:
    """What figures do not say: where all answers were empty or everything, and what is known of TSBS's queries."""
    lines = []
    for of in queries:
        at = f"{of.query}, {formatting.variant(of.variant)}"
        if of.ok and not of.rows:
            lines.append(f"{at}: every answer was empty, so that its times say little.")
        elif of.ok == plan.max_queries and of.rows == plan.whole_answers.get(of.query):
            lines.append(f"{at}: every answer was everything, so that nothing was selected.")
    lines += [f"{name}: {text}" for name, texts in plan.caveats.items() for text in texts]
    return Section("caveats", "What these figures do not say", [Items(lines)]) if lines else None


def _setup(summary: TsbsSummary) -> list[tuple[Line, Line]]:
    """Targets and schemas."""
    return [
        (variant.id, f"{variant.url}; schema {variant.schema_name}: {variant.schema_summary}") for variant in summary.variants
    ]
