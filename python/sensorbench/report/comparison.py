"""The page of a comparison: the answer, what was guaranteed and measured, how it was loaded, and whether the answers were equal."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sensorbench.report import answer, charts, parts, values, variants, words
from sensorbench.report.findings import guarantees
from sensorbench.report.sections import own_sections
from sensorbench.results import ComparisonResult
from sensorbench.results.page import (
    Block,
    Card,
    Cards,
    Chart,
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
    AnswerChecks,
    ClientHealth,
    ComparisonFigures,
    ComparisonSummary,
    LoadFigures,
    OperationFigures,
    RankedVariant,
    Ranking,
)
from sensorbench.results.summary.envelope import Caveat

# More settings than these are shown when they are clicked at.
_MOST_PLACES = 8
_METRICS = {"mean": "mean", "median": "median", "p95": "p95", "p99": "p99", "mean_to_p95": "mean to p95"}
_EMBEDDED = "embedded"


def comparison_page(summary: ComparisonSummary, result: ComparisonResult) -> Page:
    """The page of a comparison."""
    return Page(
        kind=f"{summary.result.source} {summary.result.name}{f', part {summary.result.part}' if summary.result.part else ''}",
        title=summary.title,
        head=_head(summary),
        sections=[
            _answer(summary),
            _failures(summary.result),
            _selectivity(summary),
            guarantees(summary.result),
            *own_sections(summary.result.sections),
            _settings(summary),
            _latencies(summary, result),
            _over_run(summary, result),
            _throughput(summary, result),
            _load(summary, result),
            _models(summary.result),
            _claims(summary),
            _answers(summary),
            _client_health(summary),
            _environment(summary),
        ],
        footer=parts.footer(summary, " and the folders beside it; charts are in charts/ as SVG and PNG."),
    )


def _ids(summary: ComparisonSummary) -> list[str]:
    return [variant.id for variant in summary.variants]


def _chart(name: str, title: str, rows: list[dict[str, Any]], draw: Callable[..., dict[str, Any]], *more: Any) -> Chart | None:
    """A chart of rows, if there are any."""
    return Chart(name, draw(rows, *more), title) if rows else None


def _head(summary: ComparisonSummary) -> list[Block | None]:
    dataset, workload = summary.result.dataset, summary.result.workload
    relations = dataset["relations"]
    articles = relations.get("articles")
    rows = (articles or relations.get("measurements") or relations.get("log"))["rows"]
    about: Line = [
        f"{dataset['title']}: {words.count(rows)} {'articles' if articles else 'readings'}",
        [", ", Piece("generated, not measured", "strong")] if dataset.get("generated") else "",
        f". {len(summary.variants)} settings, {workload['repeat']} repeats each, run in turn. {summary.created.date()}.",
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
        *_warnings([caveat for caveat in summary.warnings if caveat.kind != _EMBEDDED]),
    ]


def _warnings(caveats: Sequence[Caveat]) -> list[Block]:
    """Warnings, those of a kind together: of many settings most have the same."""
    by_kind: dict[str, list[Caveat]] = {}
    for caveat in sorted(caveats, key=lambda caveat: caveat.kind):
        by_kind.setdefault(caveat.kind, []).append(caveat)
    return [_banner(kind, alike) for kind, alike in by_kind.items()]


def _banner(kind: str, alike: Sequence[Caveat]) -> Block:
    if len(alike) == 1:
        return Text([_about(alike[0]), f" {alike[0].action}"], "banner")
    actions = " ".join(dict.fromkeys(caveat.action for caveat in alike))
    return Details(f"{len(alike)} variants: {kind}. {actions}", [Items([_about(caveat) for caveat in alike])], "banner")


def _about(caveat: Caveat) -> Line:
    whose: Line = [Piece(f"{words.setting(caveat.variant)}:", "strong"), " "] if caveat.variant else ""
    return [whose, caveat.text]


def _answer(summary: ComparisonSummary) -> Section:
    """Who wins which question."""
    result = summary.result
    rankings = {ranking.operation: ranking for ranking in result.rankings}
    cards = [_group_card(summary, group, rankings) for group in variants.groups(summary).values()]
    cards += [_card(summary, rankings[name]) for name in _asked_once(result)]
    figures = f"Figures are the {result.metric} of the latency"
    if result.metric == "mean_to_p95":
        figures = "Figures are mean latencies up to the 95th percentile, as the source study reports them"
    note = (
        f"{figures}, in response time. Lines are 95\N{NO-BREAK SPACE}% intervals, found by resampling runs and blocks of requests. “As long” "
        "compares with the fastest. A difference counts when its interval does not hold 1; “equivalent” means surely within "
        "5\N{NO-BREAK SPACE}%; “no difference seen” does not mean that there is none; fewer than three repeats are inconclusive."
    )
    headline = Text(answer.headline(summary), "headline")
    return Section("answer", "The answer", [headline, Cards(cards), Text(note, "note")])


def _asked_once(result: ComparisonFigures) -> list[str]:
    """The operations that are no variants of one: of a variant curves say more than charts of its own."""
    return [name for name, operation in result.operations.items() if not operation.variant_of]


def _variant(result: ComparisonFigures, name: str) -> tuple[str, str]:
    """What a variant of an operation is called, and its share of the rows."""
    operation = result.operations[name]
    return operation.variant or "", words.percent(operation.share) if operation.share is not None else ""


def _group_card(summary: ComparisonSummary, group: list[str], rankings: dict[str, Ranking]) -> Card:
    """The answers to the variants of a question."""
    rows: list[list[Line]] = []
    for name in group:
        ranking, title = rankings[name], ", ".join(filter(None, _variant(summary.result, name)))
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
    return Card(variants.title(summary, group), summary.result.operations[group[0]].question, [table, Text(note, "note")])


def _card(summary: ComparisonSummary, ranking: Ranking) -> Card:
    """The answer to a question."""
    operation = summary.result.operations[ranking.operation]
    rows = _figure_rows(summary.result, ranking.operation)
    drawn = _chart(f"figures-{ranking.operation}", "", rows, charts.figures, _ids(summary))
    if ranking.excluded:
        text = Text(f"Not ranked: {ranking.excluded}.", "bad")
        return Card(operation.title, operation.question, [text, drawn], "excluded")
    best, *others = ranking.places
    winner = Text([answer.winners(ranking), " ", Piece(words.duration(best.value_s), "value")], "winner")
    places: Block = Items([_place(place) for place in others], "places")
    if len(ranking.places) > _MOST_PLACES:
        places = Details(f"the {len(others)} others", [places])
    return Card(operation.title, operation.question, [winner, places, drawn])


def _place(place: RankedVariant) -> Line:
    verdict = place.against_best
    if verdict is None:
        raise AssertionError("the fastest is not compared with itself")
    word: Line = Piece(verdict.word, "em")
    if verdict.word == "slower":
        word = [Piece(words.times(verdict.ratio.value), "strong"), " as long"]
    return [
        f"{words.setting(place.variant)}: {words.duration(place.value_s)}, ",
        word,
        " ",
        parts.sure(f"({answer.sure(verdict.ratio)})"),
    ]


def _figure_rows(result: ComparisonFigures, operation: str) -> list[dict[str, Any]]:
    rows = []
    for figure in result.figures:
        interval = figure.latency_s.get(result.metric)
        if figure.operation == operation and interval and interval.value:
            rows.append({"setting": figure.variant, "value_s": interval.value, "low_s": interval.low, "high_s": interval.high})
    return rows


def _failures(result: ComparisonFigures) -> Section | None:
    if not result.failures:
        return None
    rows: list[list[Line]] = [
        [words.setting(variant), [Piece(failure.cause, "bad"), " ", parts.sure(f"({failure.step})")]]
        for variant, failure in result.failures.items()
    ]
    return Section("failures", "What failed", [Table([("", "name"), ("", "text")], rows, "")])


def _selectivity(summary: ComparisonSummary) -> Section | None:
    """Latencies by the share of the rows, and where the optimiser leaves the index."""
    groups = variants.groups(summary)
    if not groups:
        return None
    drawn = [
        _chart(
            variants.chart_name(name, level),
            variants.title(summary, group) + (f" · {level}" if level else ""),
            variants.rows(summary, group, of_level),
            charts.selectivity,
            of_level,
        )
        for name, group in groups.items()
        for level, of_level in variants.settings_by_level(summary).items()
    ]
    text = (
        "Both axes are logarithmic; lines up and down are intervals. The shares are those that the ranges really have in this dataset, "
        "counted by SQL over it."
    )
    plans = _plans(summary, list(groups.values())) if summary.result.query_plans else []
    title = "Latency by the share of the rows that is asked for"
    return Section("selectivity", title, [Text(text), Grid(drawn), *plans])


def _plans(summary: ComparisonSummary, groups: Sequence[list[str]]) -> list[Block]:
    """How each database says that it goes about the variants of a question."""
    result = summary.result
    explained = [variant.id for variant in summary.variants if variant.id in result.query_plans]
    text = (
        "What each database says of how it goes about the question. An index that is left at a larger share is a choice: reading every "
        "row is cheaper then."
    )
    blocks: list[Block] = [Heading("Where the optimiser leaves the index"), Text(text)]
    for group in groups:
        titles = (_variant(result, name) for name in group)
        columns: Columns = [
            (variants.title(summary, group), "name"),
            *(([title, parts.sure(share) if share else ""], "text") for title, share in titles),
        ]
        rows: list[list[Line]] = [
            [words.setting(variant), *(variants.access(summary, variant, name) for name in group)] for variant in explained
        ]
        blocks.append(Table(columns, rows))
    texts: list[Block] = []
    for variant in explained:
        plans = result.query_plans[variant].items()
        texts += [Heading(words.setting(variant), 4), Definitions([(name, Piece(plan.text, "pre")) for name, plan in plans])]
    return [*blocks, Details("The plans", texts)]


def _settings(summary: ComparisonSummary) -> Section:
    """What was compared, and the statements."""
    rows: list[list[Line]] = []
    statements: list[Block] = []
    for variant in summary.variants:
        load = summary.result.load.get(variant.id)
        database = f"{load.description.database} {load.description.version}" if load else variant.database
        parameters = ", ".join(f"{key} = {value}" for key, value in variant.schema_parameters.items())
        rows.append(
            [
                words.setting(variant.id),
                f"{database}, inside the client" if variant.embedded else database,
                [variant.schema_summary, [" ", parts.sure(f"({parameters})")] if parameters else ""],
            ]
        )
        of_variant = [(name, Piece(_statement(statement), "pre")) for name, statement in variant.statements.items()]
        statements += [Heading(words.setting(variant.id), 4), Definitions(of_variant)]
    columns: Columns = [("Setting", "name"), ("Database", "text"), ("How the data lie there", "text")]
    return Section("settings", "What was compared", [Table(columns, rows, ""), Details("The statements", statements)])


def _statement(statement: Any) -> str:
    if isinstance(statement, dict) and isinstance(statement.get("statement"), str):
        return str(statement["statement"]).strip()
    return json.dumps(statement, indent=2, sort_keys=True)


def _by_question(summary: ComparisonSummary, shown: Callable[[OperationFigures], list[Line]]) -> list[list[Line]]:
    """A row for each question and setting, grouped by question."""
    figures = {(figure.variant, figure.operation): figure for figure in summary.result.figures}
    return [
        ["" if place else operation.title, words.setting(variant), *shown(figures[variant, name])]
        for name, operation in summary.result.operations.items()
        for place, variant in enumerate(_ids(summary))
    ]


def _latencies(summary: ComparisonSummary, result: ComparisonResult) -> Section:
    """How latencies are distributed."""
    is_open_loop = _is_open_loop(summary)

    def shown(figure: OperationFigures) -> list[Line]:
        service: list[Line] = [figure.service_s.p50, figure.service_s.p99] if is_open_loop else []
        return [*(_latency(figure, metric) for metric in _METRICS), *service, figure.rows_per_operation, figure.counts.ok]

    service_columns: Columns = [("service p50", "duration_s"), ("service p99", "duration_s")] if is_open_loop else []
    columns: Columns = [
        ("Question", "label"),
        ("Setting", "name"),
        *((title, "duration_s") for title in _METRICS.values()),
        *service_columns,
        ("rows an answer", "count"),
        ("answers", "count"),
    ]
    note = (
        "Latencies are response times: from when an operation was due, whoever made it wait. Service times, from its start, are beside "
        "them; a closed loop would show only those."
    )
    drawn = [
        _chart(
            f"distribution-{name}",
            summary.result.operations[name].title,
            values.distribution(result, _ids(summary), name),
            charts.distribution,
            _ids(summary),
        )
        for name in _asked_once(summary.result)
    ]
    return Section(
        "latencies",
        "How latencies are distributed",
        [
            Table(columns, _by_question(summary, shown), is_grouped=True),
            Text(note, "note") if is_open_loop else None,
            Grid(drawn),
        ],
    )


def _is_open_loop(summary: ComparisonSummary) -> bool:
    schedule = summary.result.workload["schedule"]
    return bool(schedule.get("rate") or schedule.get("segments"))


def _latency(figure: OperationFigures, metric: str) -> Line:
    found = figure.latency_s.get(metric)
    if found is None:
        return None
    few = Piece("few answers", "sure", hint="fewer than 10 answers lie beyond this quantile")
    return [found.value, parts.between(found.low, found.high) or few]


def _over_run(summary: ComparisonSummary, result: ComparisonResult) -> Section:
    """Latency over the run, and what servers used on the same axis."""
    variant_ids, operations = _ids(summary), summary.result.operations
    views = {(variant, name): values.views(result, variant, name) for variant in variant_ids for name in operations}
    last_s = values.longest_first_run_s(result, variant_ids)
    use = values.resources(result, variant_ids)
    drawn: list[Chart | None] = []
    for name in _asked_once(summary.result):
        title = operations[name].title
        requests, intervals = (rows(result, variant_ids, name) for rows in (values.over_run, values.over_time))
        drawn += [
            _chart(f"over-run-{name}", title, requests, charts.over_run, variant_ids, list(values.FIRST_REQUESTS)),
            _chart(f"over-time-{name}", title, intervals, charts.over_time, variant_ids, last_s),
        ]
    drawn += [
        _chart("processors", "Processors that the servers kept busy", use, charts.processors, variant_ids, last_s),
        _chart("memory", "Memory of the servers", use, charts.memory, variant_ids, last_s),
    ]
    first, second = values.FIRST_REQUESTS
    text = (
        'Median and 99th percentile in each interval of the first run. Not every request was logged (log = "all" in the workload does '
        "that)."
    )
    whole = None
    if all(view is not None for view in views.values()):
        text = (
            f"Each request of the first run and a smoothed line. The dashed lines mark the first {first} and {second} requests of the run: "
            "a database that starts cold is slower before them."
        )
        titles = ["all", *(f"first {one}" for one in (first, second)), *(f"without the first {one}" for one in (first, second))]
        columns: Columns = [("Question", "label"), ("Setting", "name"), *((title, "duration_s") for title in titles)]
        rows = _by_question(summary, lambda figure: _view(views[figure.variant, figure.operation] or {}))
        whole = Details("Mean latencies with and without the first requests", [Table(columns, rows, is_grouped=True)])
    return Section("over-run", "Latency over the run", [Text(text), Grid(drawn), whole])


def _view(view: Mapping[str, float | None]) -> list[Line]:
    names = ["all", *(f"{which}_{first}" for which in ("first", "without_first") for first in values.FIRST_REQUESTS)]
    return [view[name] for name in names]


def _throughput(summary: ComparisonSummary, result: ComparisonResult) -> Section:
    variant_ids, of_all = _ids(summary), summary.result
    drawn = [
        _chart(
            f"throughput-{name}",
            of_all.operations[name].title,
            values.throughput(result, variant_ids, name),
            charts.throughput,
            variant_ids,
        )
        for name in _asked_once(of_all)
    ]
    if of_all.workload["duration"]:
        rates = values.rate(result, variant_ids)
        drawn.append(_chart("rate", "Operations a second over the first run", rates, charts.rate, variant_ids))
    text = (
        "The inverse of the latency at each percentile: how many answers a second one client would get if every answer took that long. "
        "This is how the source study shows throughput; it says nothing of many clients at once."
    )
    changes = [
        Text(
            [
                Piece(words.setting(variant), "strong"),
                f", run {change.repeat}: from {words.count(change.time_s)} s on, throughput changed from "
                f"{words.count(change.before_per_s)}/s to {words.count(change.after_per_s)}/s.",
            ],
            "banner warn",
        )
        for variant, of_variant in of_all.rate_changes.items()
        for change in of_variant
    ]
    return Section("throughput", "Throughput", [Text(text), Grid(drawn), *changes])


def _load(summary: ComparisonSummary, result: ComparisonResult) -> Section | None:
    loads, variant_ids = summary.result.load, _ids(summary)
    if not loads:
        return None
    drawn = [
        _chart("load", "Time until loaded and settled", values.load(result, variant_ids), charts.load, variant_ids),
        _chart("size", "Size on disk after settling", values.size(result, variant_ids), charts.size, variant_ids),
    ]
    columns: Columns = [
        ("Setting", "name"),
        ("rows", "count"),
        ("load", "duration_s"),
        ("settle", "duration_s"),
        ("readings/s loading", "count"),
        ("readings/s until settled", "count"),
        ("size", "bytes"),
        ("bytes a reading", "number"),
    ]
    note = (
        "Settled means that indexes, compactions and flushes are done. Rows in were counted again in the database and were equal. Sorting "
        "and encoding happened before and are not in these times."
    )
    rows = [_loaded(variant, loads[variant]) for variant in variant_ids if variant in loads]
    return Section("load", "Loading and size", [Grid(drawn), Table(columns, rows), Text(note, "note")])


def _loaded(variant: str, load: LoadFigures) -> list[Line]:
    size = load.size.total_bytes
    rates = [load.readings_per_s, load.settled_readings_per_s]
    of_reading = size / load.readings if size is not None else None
    return [words.setting(variant), load.rows, load.load_s, load.settle_s, *rates, size, of_reading]


def _models(result: ComparisonFigures) -> Section | None:
    if not result.models:
        return None
    columns: Columns = [
        ("Question", "label"),
        ("Made for it", "name"),
        ("latency", "duration_s"),
        ("Generic", "name"),
        ("latency", "duration_s"),
        ("generic takes", "number"),
    ]
    rows: list[list[Line]] = [
        [
            result.operations[row.operation].title,
            *(cell for model in (row.shaped, row.generic) for cell in (words.setting(model.variant), model.latency_s)),
            ["× ", row.ratio.value, parts.between(row.ratio.low, row.ratio.high)] if row.ratio and row.ratio.value else None,
        ]
        for row in result.models
    ]
    text = "The same kind of system with each kind of model, so that a difference between systems is not taken for what is one between models."
    return Section("models", "Models made for the questions, and generic ones", [Text(text), Table(columns, rows)])


def _claims(summary: ComparisonSummary) -> Section | None:
    if not summary.claims:
        return None
    text = (
        "What the source study found, and whether that holds here. A finding about databases that were not measured is not tested; where "
        "embedded substitutes with schemas of the same kinds were measured, the last column says what they show, which is about the "
        "schemas and not about those databases."
    )
    return Section("claims", "Published findings", [Text(text), parts.claims_table(summary.claims)])


def _answers(summary: ComparisonSummary) -> Section:
    """Whether the answers were equal, and what the databases held after the runs."""
    result = summary.result
    written = (
        "The runs wrote. So each database was read again afterwards, and its answers were compared with the dataset and all acknowledged "
        "writes together"
    )
    return Section(
        "answers",
        "Were the answers equal?",
        [*_compared(summary), _checked(written, result.contents), _checked("Answers computed by hand", result.known_answers)],
    )


def _compared(summary: ComparisonSummary) -> list[Block]:
    result = summary.result
    if summary.answers_equal is None:
        why = f", because the work is {summary.status}" if summary.status != "complete" else ""
        return [Text(f"Answers were not compared{why}.")]
    said = "All answers were equal." if summary.answers_equal else "Some answers were different."
    style = "good" if summary.answers_equal else "bad"
    if not result.answers:
        return [Text(said, style)]
    how = (
        " Compared are the number of rows and an order-free sum of row hashes over exact values, for every request of every run; a sample "
        "of them also with answers that DuckDB computed from the dataset itself."
    )
    columns: Columns = [
        ("Question", "label"),
        ("compared", "count"),
        ("of these with the reference", "count"),
        ("different", "count"),
        ("", "text"),
    ]
    rows: list[list[Line]] = [
        [
            result.operations[name].title,
            one.compared,
            one.compared_with_reference,
            Piece(one.mismatch_count, "good" if one.equal else "bad"),
            [Piece(f"request {of.k}, {of.variant} against {of.other}: {of.problem}", "bad") for of in one.mismatches],
        ]
        for name, one in result.answers.items()
    ]
    return [Text([said, how], style), Table(columns, rows)]


def _checked(title: str, checks_by_variant: dict[str, AnswerChecks]) -> Text | None:
    """How answers, or contents after writes, compared with what was expected."""
    if not checks_by_variant:
        return None
    named = [(words.setting(variant), checks) for variant, checks in checks_by_variant.items()]
    gave = ", ".join(f"{name} {_gave(checks)}" for name, checks in named)
    unanswered = "".join(
        f" {name}: {words.count(checks.unanswered)} questions failed and were not compared."
        for name, checks in named
        if checks.unanswered
    )
    read_back = "".join(f" {name}: {_read_back(checks)}." for name, checks in named if checks.read_back)
    problems = [
        Piece(f"{name}, {problem.operation} {problem.parameters}: {problem.problem}", "bad block")
        for name, checks in named
        for problem in checks.problems
    ]
    return Text([f"{title}: {gave}.{unanswered}{read_back}", *problems])


def _gave(checks: AnswerChecks) -> str:
    if checks.not_checked:
        return f"could not be checked: {checks.not_checked}"
    return f"gave {checks.asked - checks.wrong} of {checks.asked}"


def _read_back(checks: AnswerChecks) -> str:
    sample = f" (one in {words.count(checks.one_write_in)})" if checks.one_write_in > 1 else ""
    unknown = ""
    if checks.unknown_writes:
        unknown = (
            f"; of {words.count(checks.unknown_writes)} whose outcome the client did not learn, "
            f"{words.count(checks.unknown_writes_found)} had taken place"
        )
    written = f"{words.count(checks.read_back)} acknowledged writes{sample} were read back one by one"
    return f"{written}, {words.count(checks.lost_writes)} were lost{unknown}"


def _client_health(summary: ComparisonSummary) -> Section:
    counts = ("started", "ok", "errors", "timed out", "late", "dropped", "operations/s")
    columns: Columns = [
        ("Setting", "name"),
        *((title, "count") for title in counts),
        ("no-op ceiling of the driver", "rate"),
        ("client’s CPU", "text"),
        ("timer lag p99", "duration_s"),
        ("clock drift", "number"),
    ]
    rows = [[words.setting(variant), *_health(summary.result.client_health[variant])] for variant in _ids(summary)]
    note = (
        "Every operation is accounted for: started = ok + errors + timed out + cancelled. Response times count from when an operation was "
        "due; in a closed loop that is when it started."
    )
    embedded = (Text(f"{caveat.text} {caveat.action}") for caveat in summary.warnings if caveat.kind == _EMBEDDED)
    return Section("honesty", "Load-generator health", [*embedded, Table(columns, rows), Text(note, "note")])


def _health(of: ClientHealth) -> list[Line]:
    cpu = None if of.client_cpu is None else f"{of.client_cpu * 100:.0f} %"
    if cpu and of.client_cpu_is_shared_with_database:
        cpu += ", database included"
    drift = None if of.clock_drift is None else f"{of.clock_drift:.1e}"
    counts = [of.started, of.ok, of.errors, of.timeouts, of.late, of.dropped, of.rate_per_s]
    return [*counts, of.driver_ceiling_per_s or None, cpu, of.schedule_lag_p99_s, drift]


def _environment(summary: ComparisonSummary) -> Section:
    """Where and how it was measured."""
    result, dataset = summary.result, summary.result.dataset
    source = f"{dataset['title']}. {dataset['source']}. License: {dataset['license']}. {dataset['how_made']}"
    servers = []
    for variant in summary.variants:
        if variant.id in result.load:
            options = ", ".join(f"{key} = {value}" for key, value in result.load[variant.id].description.settings.items())
            temperature = result.runs[variant.id].temperature or "not started"
            servers.append((words.setting(variant.id), f"{variant.url}; {options}; runs {temperature}"))
    machine = [
        (key.replace("_", " "), words.size(value) if key.endswith("_bytes") else str(value))
        for key, value in summary.environment.items()
        if key != "driver_ceilings_per_s" and value is not None
    ]
    facts: list[tuple[Line, Line]] = [
        parts.command(summary.command, "Command"),
        ("Dataset", [source, *(Piece(note, "block") for note in dataset["notes"])]),
        ("Workload", _workload(summary)),
        *servers,
        *machine,
    ]
    return Section("environment", "Where and how", [Facts(facts)])


def _workload(summary: ComparisonSummary) -> str:
    workload, schedule = summary.result.workload, summary.result.workload["schedule"]
    mix = ", ".join(
        f"{name} × {int(weight) if weight == int(weight) else words.significant(weight)}"
        for name, weight in workload["mix"].items()
    )
    loop = f"closed loop, {schedule.get('in_flight')} in flight"
    if _is_open_loop(summary):
        rate = f" at {words.count(schedule['rate'])}/s" if schedule.get("rate") else ""
        loop = f"open loop, {schedule['arrival']} arrivals{rate}"
    length = workload["duration"]
    if workload["operations"]:
        length = f"{words.count(workload['operations'])} operations"
    limits = f"warm-up {workload['warm_up'] or 'none'}; seed {workload['seed']}; time limit {workload['timeout']}"
    return f"{mix}; {loop}; {length} a run; {limits}"
