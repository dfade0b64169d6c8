"""The page of a study of factors: default against draft, the hit rate against load, what each setting does, all levels, the claims."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import altair as alt

from sensorbench.report import charts, formatting, parts
from sensorbench.report.claims import claims_section
from sensorbench.report.effects import effects
from sensorbench.report.load_curves import load_curves
from sensorbench.report.parallel import ParallelRow, parallel, places
from sensorbench.report.published import published_section
from sensorbench.results.factors import FILLED
from sensorbench.results.page import Block, Chart, ChartSpec, Columns, Facts, Line, Page, Piece, Section, Table, Text, ValueKind
from sensorbench.results.summary.claims import MeasuredFigure, verdict_counts
from sensorbench.results.summary.comparison import ShownEffect
from sensorbench.results.summary.factors import FactorCell, FactorPartFigures, FactorsFigures, FactorsSummary, LevelFigures
from sensorbench.results.summary.published import formula, printed_by_figure
from sensorbench.wording import counted

DEFAULT = "default"
OBJECTIVE = "p99_of_offered_s"
# Figures: their words, and what kind of values they are.
FIGURES: dict[str, tuple[str, ValueKind]] = {
    "hit_rate": ("hit rate", "share"),
    "steady_s": ("until steady", "duration_s"),
    "p99_of_offered_s": ("p99", "duration_s"),
    "mean_s": ("mean latency", "duration_s"),
    "per_s": ("writes/s", "count"),
    "took_s": ("time to write all", "duration_s"),
    "completed_per_s": ("completed/s", "count"),
    "server_cpu": ("server CPUs", "number"),
    "load_average": ("load average", "number"),
    "client_cpu": ("client CPUs", "number"),
    "disk_read_per_s": ("disk read/s", "bytes"),
    "disk_written_per_s": ("disk written/s", "bytes"),
    "memtable_bytes": ("memtables", "bytes"),
    "compacted_per_s": ("compacted/s", "bytes"),
    "sstables": ("SSTables", "count"),
    "table_bytes": ("tables", "bytes"),
    "disk_bytes": ("on disk", "bytes"),
}


def factors_page(summary: FactorsSummary) -> Page:
    """The page of a study of factors."""
    result, workload = summary.result, summary.result.workload
    about = (
        f"{result.question} {workload['records']:,} records of {workload['fields']} fields of {workload['field_bytes']} bytes, "
        f"{result.nodes or 1} nodes, each level on a fresh cluster, {_rounds(result)}. {summary.created.date()}."
    )
    return Page(
        kind=f"study {result.name}",
        title=summary.title,
        head=[
            Text(about, "about"),
            parts.state(summary.status, summary.reason),
            *parts.warnings(summary.warnings),
            Text(headline(summary), "headline"),
        ],
        sections=[
            _charts(summary),
            load_curves(summary),
            *(_part(summary, name) for name in result.parts),
            _own(result),
            published_section(summary.published),
            claims_section(summary.claims, study=result.name),
            _parameters(result),
            _setting(summary),
            parts.reproduce(summary.command, version=summary.version),
        ],
        footer=parts.footer(summary, " Each measurement is a stress run of its own, of which `sensorbench report` makes a page."),
    )


def headline(summary: FactorsSummary) -> str:
    """What came out, in a sentence or two."""
    return f"{_draft(summary.result)}Of {len(summary.claims)} published findings: {verdict_counts(summary.claims)}."


def _rounds(result: FactorsFigures) -> str:
    """How many rounds were made, and how many were planned if there are fewer."""
    made = max((outcome.round for cell in result.cells for outcome in cell.measurements), default=0)
    if made >= result.rounds:
        return counted(result.rounds, "round")
    return f"{made} of {'up to ' if result.looks else ''}{counted(result.rounds, 'round')}"


def _draft(result: FactorsFigures) -> str:
    """What the draft does to the objective under each load."""
    part = next((part for part in result.parts.values() if part.base == DEFAULT and "draft" in part.levels), None)
    if part is None:
        return ""
    ratios = []
    for row in (row for row in last_steps(part) if row.level == "draft"):
        ratio = _ratio(row, OBJECTIVE)
        if ratio:
            interval = formatting.interval(ratio.low, ratio.high, ratio.confidence)
            ratios.append(f"{formatting.times(ratio.value)} for {result.loads[row.load]} ({interval})")
    return f"The draft's p99 is, to the default's, {'; '.join(ratios)}. " if ratios else ""


def _ratio(row: LevelFigures, figure: str) -> MeasuredFigure | None:
    """The ratio of a row's figure to the base's, where there is one."""
    return row.figures[figure].ratio if figure in row.figures else None


def last_steps(part: FactorPartFigures) -> list[LevelFigures]:
    """The rows of a part that are of the last step of their level and load."""
    last = {(row.load, row.level): row for row in part.rows if row.where != FILLED}
    return list(last.values())


def _part(summary: FactorsSummary, name: str) -> Section:
    """A part of the study: its levels at rates, and while all records were written."""
    part = summary.result.parts[name]
    if not part.rows:
        return Section(name, part.title, [Text(part.about), Text("Nothing of it was measured yet.", "note")])
    note = (
        f"Means over the rounds. Below them is the ratio to {part.base}, then what the paper printed: hit rates as they are, all others as a ratio "
        f"to {part.base}. The paper's load has no unit; it is compared with server CPUs."
    )
    tables = (_levels(summary, name, is_filled=is_filled) for is_filled in (False, True))
    return Section(name, part.title, [Text(part.about), *tables, Text(note, "note")])


def _levels(summary: FactorsSummary, name: str, *, is_filled: bool) -> Table | None:
    """The levels of a part by what was measured: of putting records there, or of rates."""
    result, part = summary.result, summary.result.parts[name]
    rows = [row for row in part.rows if (row.where == FILLED) == is_filled]
    figures = [figure for figure in FIGURES if any(figure in row.figures for row in rows)]
    if not figures:
        return None
    printed = printed_by_figure(summary.published)
    columns: Columns = [
        ("level", "text"),
        ("writing all records" if is_filled else "load", "text"),
        *((FIGURES[figure][0], FIGURES[figure][1]) for figure in figures),
    ]
    return Table(
        columns,
        [
            [
                [row.level, parts.muted("not of the paper") if row.level in part.successors else ""],
                f"for {result.loads[row.load]}" if is_filled else _step(result, row),
                *(_figure(part, row, figure, _published(printed, name, part, row, figure)) for figure in figures),
            ]
            for row in rows
        ],
    )


def _figure(part: FactorPartFigures, row: LevelFigures, figure: str, printed: str) -> Line:
    """A figure's value, its ratio to that of the part's base, and what the paper printed."""
    found = row.figures.get(figure)
    if found is None:
        return None
    value: Line = f"{found.value:.3f}" if figure == "hit_rate" else found.value
    ratio = parts.muted(formatting.times(found.ratio.value)) if found.ratio and row.level != part.base else ""
    return [value, ratio, parts.muted(f"published {printed}") if printed else ""]


def _published(printed: Mapping[str, float], name: str, part: FactorPartFigures, row: LevelFigures, figure: str) -> str:
    """What the paper printed for a level, of all but hit rates to its base's; empty if it printed nothing."""
    value, base = (printed.get(formula(figure, row.load, name, level, row.where)) for level in (row.level, part.base))
    if figure == "hit_rate":
        return f"{value:.3f}" if value is not None else ""
    # A level to itself says nothing.
    return formatting.times(value / base) if value is not None and base and row.level != part.base else ""


def _step(result: FactorsFigures, row: LevelFigures) -> str:
    """Which step a row is of."""
    again = ", after a restart" if row.where != FILLED and row.where >= len(result.rates[row.load]) else ""
    return f"{result.loads[row.load].partition(',')[0]} at {formatting.count(row.rate_per_s)}/s{again}"


def _own(result: FactorsFigures) -> Section:
    """The study's own draft."""
    chosen: Text | Table = Text("It is the default: no level of any setting was significantly better.")
    if result.best_draft.choices:
        rows = [
            [
                result.parts[choice.part].title,
                choice.level,
                [formatting.times(choice.ratio.value), parts.between(choice.ratio.low, choice.ratio.high)],
            ]
            for choice in result.best_draft.choices
        ]
        chosen = Table([("part", "text"), ("level", "text"), ("p99 to the default's", "number")], rows)
    note = (
        "The objective: the p99 of all arrivals at the highest rate of each part's load. A level is chosen when the 95% "
        "interval of its ratio to the default lies below 1; of several, the lowest."
    )
    return Section("own", "This study's own draft", [chosen, Text(note, "note")])


def _parameters(result: FactorsFigures) -> Section:
    """What the paper's parameters are called today."""
    titles = ("in the paper", "here", "default there", "default here", "what it is", "what became of it")
    rows: list[list[Line]] = [
        [
            parameter.in_paper or None,
            Piece(parameter.setting, "code"),
            parameter.default,
            parameter.here,
            parameter.about,
            parameter.became or "as it was",
        ]
        for parameter in result.parameters
    ]
    note = (
        f"Sizes are made smaller with the data (here {formatting.significant(result.scale)} of the paper's), as far as the server takes them; "
        "lengths of time with the time that a rate is held (there 5 minutes)."
    )
    table = Table([(title, "text") for title in titles], rows, "")
    return Section("parameters", "The paper's parameters today", [table, Text(note, "note")])


def _setting(summary: FactorsSummary) -> Section:
    result = summary.result
    rates = "; ".join(f"{load}: {', '.join(map(formatting.count, rates))}/s" for load, rates in result.rates.items())
    reached = ""
    if result.reached:
        reads, writes = formatting.count(result.reached["read"]), formatting.count(result.reached["write"])
        reached = f" (the default takes {reads} reads/s or {writes} writes/s)"
    facts = [
        ("servers", f"{result.target}, fresh for each level and round"),
        ("rates", f"{rates}{reached}, each held for {formatting.duration(result.step_s)}"),
        ("records", f"{result.workload['distribution']} choice, seed {result.seed}"),
        ("client", f"at most {result.workload['concurrency']} operations in flight, on the servers' machine"),
        parts.machine(summary.environment),
        ("paper", result.paper),
    ]
    return Section("setup", "Setup", [Facts(facts)])


def _charts(summary: FactorsSummary) -> Section | None:
    """What settings do, in pictures; those without data are left out."""
    result = summary.result
    blocks: list[Block] = []
    if hits := _hit_rows(summary):
        note = (
            "Each rate begins with empty caches; the hit rate is that of the last quarter of the step. As published: one rate after the "
            "other, so that later rates found warmer caches."
        )
        blocks += [Chart("hits", _hits(hits), "Hit rate against load", is_wide=True), Text(note, "note")]
    if found := _effects(result):
        title = "Importance: by how much each level multiplies a figure of its part's first level or default"
        note = (
            "The p99 is that of all arrivals at the highest rate: less is better. Writes per second are those while all records are "
            "written as fast as that goes: more is better. A point is filled when its 95% interval leaves out 1."
        )
        blocks += [Chart("importance", effects(found), title, is_wide=True), Text(note, "note")]
    if lines := _lines(result):
        drawn = parallel(lines, list(dict.fromkeys(row.setting for row in lines)), smaller_is_better=True)
        title = "All configurations, by the p99 at the highest rate of their load"
        blocks.append(Chart("parallel", drawn, title, is_wide=True))
    return Section("charts", "What settings do", blocks) if blocks else None


class _HitRow(NamedTuple):
    part: str
    level: str
    share: float
    hit_rate: float
    source: str


def _hit_rows(summary: FactorsSummary) -> list[_HitRow]:
    """Hit rates of the part whose levels differ in them: here and as published."""
    rows, printed = [], printed_by_figure(summary.published)
    for name, part in summary.result.parts.items():
        of_part = [row for row in part.rows if row.load == "read" and row.rate_per_s and "hit_rate" in row.figures]
        if part.base == DEFAULT or not of_part:
            continue
        rates = [row.rate_per_s for row in of_part if row.rate_per_s]
        rows += [
            _HitRow(part.title, row.level, rate / max(rates), row.figures["hit_rate"].value, "here")
            for row, rate in zip(of_part, rates, strict=True)
        ]
        shares = sorted({rate / max(rates) for rate in rates})
        rows += [
            _HitRow(part.title, level, shares[step], printed[figure], "published")
            for level in part.levels
            for step in range(len(shares))
            if (figure := formula("hit_rate", "read", name, level, step)) in printed
        ]
    return rows


def _hits(rows: Sequence[_HitRow]) -> ChartSpec:
    """The hit rate against the load, a line for each level; as published dashed."""
    levels = list(dict.fromkeys(row.level for row in rows))
    base = charts.data_of(rows).encode(
        x=alt.X(
            "share:Q",
            title="load, to the highest rate",
            axis=alt.Axis(format=".0%", tickCount=6),
            scale=alt.Scale(zero=False, padding=15),
        ),
        y=alt.Y("hit_rate:Q", title="hit rate of the key cache", axis=alt.Axis(format="%")),
        color=charts.named_colour("level", levels),
        detail="source:N",
    )
    dash = alt.StrokeDash(
        "source:N",
        title=None,
        scale=alt.Scale(domain=["here", "published"], range=[[1, 0], [5, 4]]),
        legend=alt.Legend(orient="bottom", symbolType="stroke", symbolStrokeColor=charts.QUIET, symbolStrokeWidth=2),
    )
    tooltip = ["level:N", "source:N", alt.Tooltip("hit_rate:Q", format=".3f"), alt.Tooltip("share:Q", format=".0%")]
    lines, points = base.mark_line(strokeWidth=2).encode(strokeDash=dash), base.mark_point(filled=True, size=50, opacity=1)
    how = "Each line is a configuration: the share of requests that caches answered at each load. Higher is better."
    return charts.sized(lines + points.encode(tooltip=tooltip), how, height=320)


def _effects(result: FactorsFigures) -> list[ShownEffect]:
    """What each level does, to its part's base, to the objective at the highest rate and to the writes per second."""
    found: list[ShownEffect] = []
    for part in result.parts.values():
        for row in [*last_steps(part), *(row for row in part.rows if row.where == FILLED)]:
            figure = "per_s" if row.where == FILLED else OBJECTIVE
            ratio = _ratio(row, figure)
            if ratio and ratio.value is not None and row.level != part.base and (figure == OBJECTIVE or row.load == "write"):
                load = result.loads[row.load].partition(",")[0]
                found.append(
                    {
                        "factor": part.title,
                        "change": row.level,
                        "operation": "writes per second, as fast as they go" if figure == "per_s" else f"p99 of {load}",
                        "ratio": ratio.value,
                        "low": ratio.low,
                        "high": ratio.high,
                        "runs": ratio.runs,
                    }
                )
    return found


def _lines(result: FactorsFigures) -> list[ParallelRow]:
    """Each configuration that was compared with the default, or with its part's base, by the objective at the highest rate."""
    cells = {(part, level, cell.load): cell for cell in result.cells for part, level in cell.levels}
    varied = [
        key
        for key in dict.fromkeys(key for cell in result.cells for key in cell.settings)
        if len({cell.settings.get(key) for cell in result.cells}) > 1
    ]
    of_setting = {key: places(sorted({_value(cell, key) for cell in result.cells}, key=_by_size)) for key in varied}
    rows = []
    for name, part in result.parts.items():
        for row in last_steps(part):
            ratio = _ratio(row, OBJECTIVE)
            cell = cells.get((name, row.level, row.load))
            if ratio and cell:
                line = f"{part.title}: {row.level}, {result.loads[row.load]}"
                rows += [
                    ParallelRow(line, key, of_setting[key][_value(cell, key)], _value(cell, key), ratio.value) for key in varied
                ]
    return rows


def _value(cell: FactorCell, key: str) -> str:
    return str(cell.settings.get(key, "as the server has it"))


def _by_size(value: str) -> tuple[float, str]:
    """Numbers by their size, before words."""
    digits = value.rstrip("MiBshm")
    try:
        return float(digits), value
    except ValueError:
        return float("inf"), value
