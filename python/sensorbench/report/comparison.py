"""The page of a comparison: the answer, what was guaranteed and measured, how it was loaded, and whether the answers were equal."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sensorbench.report import answer, charts, formatting, instances, parts
from sensorbench.report.accounting import accounting_section
from sensorbench.report.answers import answers
from sensorbench.report.blocks import how_interleaved, one_at_a_time
from sensorbench.report.claims import claims_section
from sensorbench.report.findings import guarantees
from sensorbench.report.freshness import freshness_section
from sensorbench.report.gate import gate_section
from sensorbench.report.measured import (
    EMBEDDED,
    chart,
    client_health,
    ids,
    is_open_loop,
    latencies,
    load_and_size,
    over_run,
    requested_once,
    throughput,
)
from sensorbench.report.published import published_section
from sensorbench.report.retention import retention_section
from sensorbench.report.sections import own_sections
from sensorbench.report.slowdowns import slowdowns
from sensorbench.report.stall import stall_section
from sensorbench.results import ComparisonResult
from sensorbench.results.described import DescribedDataset
from sensorbench.results.page import (
    Block,
    Card,
    Cards,
    Columns,
    Definitions,
    Details,
    Facts,
    Grid,
    Heading,
    Items,
    Line,
    Page,
    Piece,
    Section,
    Table,
    Text,
)
from sensorbench.results.summary.comparison import (
    ComparisonFigures,
    ComparisonSummary,
    RankedVariant,
    Ranking,
)
from sensorbench.results.summary.envelope import Caveat
from sensorbench.wording import counted

# More variants than these are shown when they are clicked at.
_MAX_PLACES = 8


def comparison_page(summary: ComparisonSummary, result: ComparisonResult) -> Page:
    """The page of a comparison."""
    return Page(
        kind=_kind(summary.result),
        title=summary.title,
        head=_head(summary, result.manifest.plan.stopped_after or summary.result.workload["repetitions"]),
        sections=[
            gate_section(result.gate),
            _answer(summary),
            slowdowns(summary),
            stall_section(summary, result),
            _failures(summary.result),
            _refused(summary.result),
            _selectivity(summary),
            guarantees(summary.result),
            freshness_section(summary, result),
            accounting_section(summary.result),
            retention_section(summary, result),
            *own_sections(summary.result.sections, result),
            _variants(summary),
            latencies(summary, result),
            over_run(summary, result),
            throughput(summary, result),
            load_and_size(summary, result),
            one_at_a_time(summary.result),
            _models(summary.result),
            published_section(summary.published),
            claims_section(summary.claims, study=result.manifest.plan.name),
            answers(summary),
            client_health(summary),
            _environment(summary),
            parts.reproduce(summary.command, version=summary.version),
        ],
        footer=parts.footer(summary),
    )


# What the rows of a relation are called. A dataset has one of these, or those that lie beside one another.
_ROWS = {
    "articles": "articles",
    "measurements": "readings",
    "log": "readings",
    "cpu": "rows",
    "readings": "rows",
    "diagnostics": "rows",
    "stations": "rows",
}


# The dataset of fitted traffic has the user's own tables, which may be called like any other, the operations, and the values of parameters.
_OPERATIONS, _VALUES = "traffic", "values_"


def _extent(dataset: DescribedDataset) -> str:
    """How much a dataset has."""
    relations = dataset["relations"]
    is_fitted = _OPERATIONS in relations
    names = (
        [name for name in relations if name != _OPERATIONS and not name.startswith(_VALUES)]
        if is_fitted
        else [name for name in _ROWS if name in relations]
    )
    rows = formatting.count(sum(relations[name]["rows"] for name in names))
    if not is_fitted:
        return f"{rows} {_ROWS[names[0]]}"
    operations = counted(relations[_OPERATIONS]["rows"], "operation")
    return f"{rows} rows in {counted(len(names), 'table')}, for {operations} of recorded traffic"


def _head(summary: ComparisonSummary, repetitions: int) -> list[Block | None]:
    dataset = summary.result.dataset
    about: Line = [
        f"{dataset['title']}: {_extent(dataset)}",
        [", ", Piece("generated, not measured", "strong")] if dataset.get("generated") else "",
        f". {counted(len(summary.variants), 'variant')}, {counted(repetitions, 'repetition')} each, {how_interleaved(summary.result)}. {summary.created.date()}.",
    ]
    unequal: Line = [
        "The databases did ",
        Piece("not give equal answers", "strong"),
        ". Questions with different answers are not ranked; see ",
        Piece("the answers", href="#answers"),
        ".",
    ]
    return [
        Text(about, "about"),
        parts.state(summary.status, summary.reason),
        Text(unequal, "banner bad") if summary.answers_equal is False else None,
        *_warnings([caveat for caveat in summary.warnings if caveat.kind != EMBEDDED]),
    ]


def _warnings(caveats: Sequence[Caveat]) -> list[Block]:
    """Warnings, those of a kind together."""
    return [_banner(kind, alike) for kind, alike in sorted(parts.warnings_by_kind(caveats).items())]


def _kind(result: ComparisonFigures) -> str:
    """What was run: a study, perhaps a part of it, or an experiment, by the name of its file."""
    # A file that is called experiment.toml says no more than that it is one.
    named = result.source if result.name == result.source else f"{result.source} {result.name}"
    return f"{named}, part {result.part}" if result.part else named


def _banner(kind: str, alike: Sequence[Caveat]) -> Block:
    if len(alike) == 1:
        return Text([_about(alike[0]), f" {alike[0].action}"], "banner")
    about, actions = parts.of_many_variants(kind, alike)
    return Details(f"{about}. {actions}", [Items([_about(caveat) for caveat in alike])], "banner")


def _about(caveat: Caveat) -> Line:
    whose: Line = [Piece(f"{formatting.variant(caveat.variant)}:", "strong"), " "] if caveat.variant else ""
    return [whose, caveat.text]


def _answer(summary: ComparisonSummary) -> Section:
    """Who wins which question."""
    result = summary.result
    rankings = {ranking.operation: ranking for ranking in result.rankings}
    cards = [_group_card(summary, group, rankings) for group in instances.groups(summary).values()]
    cards += [_card(summary, rankings[name]) for name in requested_once(result)]
    of_paper = ", as the paper reports it" if result.metric == "mean_to_p95" else ""
    note = (
        f"Figures are the {formatting.metric(result.metric)} response time{of_paper}. Intervals are 95% confidence intervals, found by "
        "resampling runs and blocks of requests. “As long” compares with the fastest. A difference counts when its interval does not "
        "contain 1. “Equivalent” means within 5%. “No significant difference” does not mean that there is none. Fewer "
        "than three repetitions are inconclusive."
    )
    headline = Text(answer.headline(summary), "headline")
    return Section("answer", "The answer", [headline, Cards(cards), Text(note, "note")])


def _instance(result: ComparisonFigures, name: str) -> tuple[str, str]:
    """What an instance of an operation is called, and its share of the rows."""
    operation = result.operations[name]
    return operation.instance or "", formatting.percent(operation.share) if operation.share is not None else ""


def _group_card(summary: ComparisonSummary, group: list[str], rankings: dict[str, Ranking]) -> Card:
    """The answers to the instances of an operation."""
    rows: list[list[Line]] = []
    for name in group:
        ranking, title = rankings[name], ", ".join(filter(None, _instance(summary.result, name)))
        if ranking.excluded:
            rows.append([title, Piece(f"not ranked: {ranking.excluded}", "bad"), ""])
        else:
            rows.append([title, answer.winners(ranking), ranking.places[0].value_s])
    note: Line = [
        "The fastest at each, and those not known to be slower. ",
        Piece("All of them", href="#selectivity"),
        ".",
    ]
    table = Table([("", "text"), ("", "text"), ("", "duration_s")], rows, "plain")
    return Card(instances.title(summary, group), summary.result.operations[group[0]].question, [table, Text(note, "note")])


def _card(summary: ComparisonSummary, ranking: Ranking) -> Card:
    """The answer to a question."""
    operation = summary.result.operations[ranking.operation]
    rows = _figure_rows(summary.result, ranking.operation)
    drawn = chart(f"figures-{ranking.operation}", "", rows, charts.figures, ids(summary))
    if ranking.excluded:
        text = Text(f"Not ranked: {ranking.excluded}.", "bad")
        return Card(operation.title, operation.question, [text, drawn], "excluded")
    best, *others = ranking.places
    winner = Text([answer.winners(ranking), " ", Piece(formatting.duration(best.value_s), "value")], "winner")
    p99_s = {
        figure.variant: p99.value
        for figure in summary.result.figures
        if figure.operation == ranking.operation and summary.result.metric != "p99" and (p99 := figure.latency_s.get("p99"))
    }
    places: Block = Items([*_p99_of(best, p99_s), *(_place(place, p99_s.get(place.variant)) for place in others)], "places")
    if len(ranking.places) > _MAX_PLACES:
        places = Details(f"the {len(others)} others", [places])
    return Card(operation.title, operation.question, [winner, places, drawn])


def _p99_of(best: RankedVariant, p99_s: Mapping[str, float | None]) -> list[Line]:
    """The p99 of the fastest, where it is not the figure that ranks."""
    p99 = p99_s.get(best.variant)
    return (
        [f"{formatting.variant(best.variant)}: {formatting.duration(best.value_s)}, p99 {formatting.duration(p99)}"]
        if p99
        else []
    )


def _place(place: RankedVariant, p99_s: float | None) -> Line:
    verdict = place.against_best
    if verdict is None:
        alone = f"the fastest of its class ({place.ranked_within})"
        return [f"{formatting.variant(place.variant)}: {formatting.duration(place.value_s)}, ", parts.muted(alone)]
    word: Line = Piece(verdict.word, "em")
    p99 = f"p99 {formatting.duration(p99_s)}, " if p99_s else ""
    if verdict.word == "slower":
        word = [Piece(formatting.times(verdict.ratio.value), "strong"), " as long"]
    return [
        f"{formatting.variant(place.variant)}: {formatting.duration(place.value_s)}, {p99}",
        word,
        " ",
        parts.muted(f"({answer.confidence(verdict.ratio)})"),
    ]


def _figure_rows(result: ComparisonFigures, operation: str) -> list[charts.FigureRow]:
    rows = []
    for figure in result.figures:
        interval = figure.latency_s.get(result.metric)
        if figure.operation == operation and interval and interval.value:
            rows.append(charts.FigureRow(figure.variant, interval.value, interval.low, interval.high))
    return rows


def _failures(result: ComparisonFigures) -> Section | None:
    if not result.failures:
        return None
    rows: list[list[Line]] = [
        [formatting.variant(variant), [Piece(failure.cause, "bad"), " ", parts.muted(f"({failure.step})")]]
        for variant, failure in result.failures.items()
    ]
    return Section("failures", "What failed", [Table([("", "name"), ("", "text")], rows, "")])


def _refused(result: ComparisonFigures) -> Section | None:
    if not result.refused:
        return None
    rows: list[list[Line]] = [[formatting.variant(variant), why] for variant, why in result.refused.items()]
    return Section(
        "refused", "What makes no sense on this dataset, and was not run", [Table([("", "name"), ("", "text")], rows, "")]
    )


def _selectivity(summary: ComparisonSummary) -> Section | None:
    """Latencies by the share of the rows, and where the optimiser leaves the index."""
    groups = instances.groups(summary)
    if not groups:
        return None
    drawn = [
        chart(
            instances.chart_name(name, level),
            instances.title(summary, group) + (f" · {level}" if level else ""),
            instances.rows(summary, group, of_level),
            charts.selectivity,
            of_level,
        )
        for name, group in groups.items()
        for level, of_level in instances.variants_by_level(summary).items()
    ]
    text = (
        "Both axes are logarithmic; lines up and down are intervals. The shares are those that the ranges really have in this dataset, "
        "counted by SQL over it."
    )
    plans = _plans(summary, list(groups.values())) if summary.result.query_plans else []
    title = "Latency by the share of the rows that is read"
    return Section("selectivity", title, [Text(text), Grid(drawn), *plans])


def _plans(summary: ComparisonSummary, groups: Sequence[list[str]]) -> list[Block]:
    """How each database says that it goes about the instances of an operation."""
    result = summary.result
    explained = [variant.id for variant in summary.variants if variant.id in result.query_plans]
    text = (
        "What each database says of how it goes about the question. An index that is left at a larger share is a choice: reading every "
        "row is cheaper then."
    )
    blocks: list[Block] = [Heading("Where the optimiser leaves the index"), Text(text)]
    for group in groups:
        titles = (_instance(result, name) for name in group)
        columns: Columns = [
            (instances.title(summary, group), "name"),
            *(([title, parts.muted(share) if share else ""], "text") for title, share in titles),
        ]
        rows: list[list[Line]] = [
            [formatting.variant(variant), *(instances.access(summary, variant, name) for name in group)] for variant in explained
        ]
        blocks.append(Table(columns, rows))
    texts: list[Block] = []
    for variant in explained:
        plans = result.query_plans[variant].items()
        texts += [Heading(formatting.variant(variant), 4), Definitions([(name, Piece(plan.text, "pre")) for name, plan in plans])]
    return [*blocks, Details("The plans", texts)]


def _variants(summary: ComparisonSummary) -> Section:
    """What was compared, and the statements."""
    rows: list[list[Line]] = []
    statements: list[Block] = []
    for variant in summary.variants:
        load = summary.result.load.get(variant.id)
        database = f"{load.description.database} {load.description.version}" if load else variant.database
        parameters = ", ".join(f"{key} = {value}" for key, value in variant.schema_parameters.items())
        rows.append(
            [
                formatting.variant(variant.id),
                f"{database}, inside the client" if variant.embedded else database,
                [variant.schema_summary, [" ", parts.muted(f"({parameters})")] if parameters else ""],
            ]
        )
        of_variant = [(name, Piece(_statement(statement), "pre")) for name, statement in variant.statements.items()]
        statements += [Heading(formatting.variant(variant.id), 4), Definitions(of_variant)]
    columns: Columns = [("Variant", "name"), ("Database", "text"), ("How the data are stored", "text")]
    return Section("variants", "What was compared", [Table(columns, rows, ""), Details("The statements", statements)])


def _statement(statement: Any) -> str:
    if isinstance(statement, dict) and isinstance(statement.get("statement"), str):
        return str(statement["statement"]).strip()
    return json.dumps(statement, indent=2, sort_keys=True)


def _models(result: ComparisonFigures) -> Section | None:
    if not result.models:
        return None
    columns: Columns = [
        ("Operation", "label"),
        ("Made for it", "name"),
        ("latency", "duration_s"),
        ("Generic", "name"),
        ("latency", "duration_s"),
        ("generic takes", "number"),
    ]
    rows: list[list[Line]] = [
        [
            result.operations[row.operation].title,
            *(cell for model in (row.shaped, row.generic) for cell in (formatting.variant(model.variant), model.latency_s)),
            ["× ", row.ratio.value, parts.between(row.ratio.low, row.ratio.high)] if row.ratio and row.ratio.value else None,
        ]
        for row in result.models
    ]
    text = "The same kind of system with each kind of model, so that a difference between systems is not taken for what is one between models."
    return Section("models", "Models made for the questions, and generic ones", [Text(text), Table(columns, rows)])


def _environment(summary: ComparisonSummary) -> Section:
    """Where and how it was measured."""
    result, dataset = summary.result, summary.result.dataset
    source = f"{dataset['title']}. {dataset['source']}. License: {dataset['license']}. {dataset['how_made']}"
    servers = []
    for variant in summary.variants:
        if variant.id in result.load:
            options = ", ".join(f"{key} = {value}" for key, value in result.load[variant.id].description.settings.items())
            temperature = result.runs[variant.id].temperature or "not started"
            servers.append((formatting.variant(variant.id), f"{variant.url}; {options}; runs {temperature}"))
    machine = [
        (key.replace("_", " "), formatting.size(value) if key.endswith("_bytes") and isinstance(value, int) else str(value))
        for key, value in summary.environment.items()
        if key not in {"driver_ceilings_per_s", "client"} and value is not None
    ]
    if client := summary.environment.get("client"):
        lag, per_s = formatting.duration(client["timer_lag_s"]), formatting.count(client["null_ops_per_s"])
        machine.append(("client", f"timer lag {lag} (p99), {per_s} operations per second on a database that does nothing"))
    facts: list[tuple[Line, Line]] = [
        ("Dataset", [source, *(Piece(note, "block") for note in dataset["notes"])]),
        ("Workload", _workload(summary)),
        *servers,
        *machine,
    ]
    return Section("environment", "Where and how", [Facts(facts)])


def _workload(summary: ComparisonSummary) -> str:
    workload, schedule = summary.result.workload, summary.result.workload["schedule"]
    mix = ", ".join(
        f"{name} × {int(weight) if weight == int(weight) else formatting.significant(weight)}"
        for name, weight in workload["mix"].items()
    )
    loop = f"closed loop, {schedule.get('concurrency')} in flight"
    if is_open_loop(summary):
        rate = f" at {formatting.count(schedule['rate'])}/s" if schedule.get("rate") else ""
        loop = f"open loop, {schedule['arrival']} arrivals{rate}"
    length = workload["duration"]
    if workload["operations"]:
        length = f"{formatting.count(workload['operations'])} operations"
    # Earlier versions could count the operations of a warm-up.
    warmup = workload["warmup"]
    warmed = f"{warmup:,} operations" if isinstance(warmup, int) else "none" if warmup == "0" else warmup
    limits = f"warm-up {warmed}; seed {workload['seed']}; time limit {workload['timeout']}"
    return f"{mix}; {loop}; {length} a run; {limits}"
