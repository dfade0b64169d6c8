"""The page of several clusters side by side: what was measured beside what the paper has, and the claims."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from sensorbench.paths import REPORT_FILE
from sensorbench.report import charts, elasticity_curves, formatting, parts
from sensorbench.report.claims import claims_section
from sensorbench.report.elasticity import DEFINITIONS, range_of
from sensorbench.report.published import published_section
from sensorbench.results.page import (
    Chart,
    ChartSpec,
    Columns,
    Details,
    Grid,
    Items,
    Line,
    Page,
    Piece,
    Section,
    Table,
    Text,
)
from sensorbench.results.summary.elasticity import (
    ComparedTransition,
    ElasticityComparisonSummary,
    TransitionFigure,
)
from sensorbench.results.summary.envelope import Caveat
from sensorbench.results.summary.published import formula, printed_by_figure
from sensorbench.wording import counted

# Figures: their words, and what kind of values they are.
FIGURES = {
    "transfer_s": ("data transfer", "duration_s"),
    "additional_s": ("until stable after that", "duration_s"),
    "total_s": ("stabilisation in all", "duration_s"),
    "elasticity": ("elasticity (0 is perfect)", "number"),
    "scalability": ("scalability (0 is perfect)", "number"),
    "av_s": ("mean set time before", "duration_s"),
    "sd_s": ("its deviation over sets", "duration_s"),
    "hottest_share": ("share of the busiest node", "number"),
}


def elasticity_comparison_page(summary: ElasticityComparisonSummary) -> Page:
    """The page of several clusters side by side."""
    works = summary.result.works
    links: list[Line] = [
        # Repetitions have one title; their folders differ.
        [
            Piece(Path(work.folder).name, href=f"{work.folder}/{REPORT_FILE}"),
            f" ({work.status})" if work.status != "complete" else "",
        ]
        for work in works
    ]
    note = (
        "The paper's authors doubled clusters of 6, 12 and 24 nodes in a cloud of 2011: its transitions are compared with the first, second "
        "and third here. Compare orders, not values: the paper's charts are in minutes, its scores probably of mixed units."
    )
    return Page(
        kind="elasticity",
        title=summary.title,
        head=[Text([parts.joined(links), "."], "about"), _warnings(summary.warnings)],
        sections=[
            Section("figures", "Stabilisation and scores", [*_left(summary), _figures(summary), Text(note, "note")]),
            *_growth(summary),
            _scores(summary),
            _data(summary),
            _faults(summary),
            _stable(summary),
            published_section(summary.published),
            claims_section(summary.claims, study="elasticity"),
            parts.reproduce(*(work.command for work in works)),
        ],
        footer=parts.footer(summary),
    )


def _left(summary: ElasticityComparisonSummary) -> list[Text]:
    """What of the study was not measured yet."""
    left, measured = summary.result.parts_left, len(summary.result.works)
    if not left:
        return []
    return [Text(f"{measured} of {measured + len(left)} parts were measured; --resume measures the others.", "banner")]


def _growth(summary: ElasticityComparisonSummary) -> list[Section]:
    """The curves of clusters that went through the same growth, over one another."""
    sections = []
    colours = _colours(summary)
    for number, ((nodes, title), same) in enumerate(_same_changes(summary.result.transitions, "join").items(), start=1):
        name = f"growth-{number}"
        curves = [
            Chart(f"{name}-set-times", elasticity_curves.set_times(same, colours), "Set times"),
            Chart(f"{name}-relative", elasticity_curves.relative_times(same, colours), "Set times over those before"),
            _chart(f"{name}-area-a", elasticity_curves.area_a(same, colours), "Area A: set times above the ramp"),
            _chart(f"{name}-area-b", elasticity_curves.area_b(same, colours), "Area B: deviations"),
        ]
        sections.append(Section(name, f"Cluster of {counted(nodes, 'node')}: {title}", [Grid(curves)]))
    return sections


def _chart(name: str, specification: ChartSpec | None, title: str) -> Chart | None:
    return Chart(name, specification, title) if specification else None


def _colours(summary: ElasticityComparisonSummary) -> dict[str, str]:
    """A colour for each target, the same on all charts of the page."""
    targets = dict.fromkeys(work.target for work in summary.result.works)
    return {target: charts.COLOURS[number % len(charts.COLOURS)] for number, target in enumerate(targets)}


def _same_changes(transitions: Sequence[ComparedTransition], kind: str) -> dict[tuple[int, str], list[ComparedTransition]]:
    """Changes of a kind that were done and measured, by the nodes before and by what was done."""
    same: dict[tuple[int, str], list[ComparedTransition]] = {}
    for transition in transitions:
        if transition.change.kind == kind and transition.begun_at_s is not None and transition.before is not None:
            same.setdefault((transition.nodes, transition.change.title), []).append(transition)
    return same


def _scores(summary: ElasticityComparisonSummary) -> Section | None:
    """Each score by each reading of its definition, with the areas that it is made of."""
    columns: Columns = [
        ("target", "name"),
        ("change", "text"),
        ("elasticity", "number"),
        *((title, "number") for title in DEFINITIONS.values()),
        ("area A, s²", "number"),
        ("area B, s²", "number"),
        ("sets between", "count"),
    ]
    rows = [
        _score_row(transition)
        for transition in summary.result.transitions
        if transition.stability is not None and transition.change.kind in ("join", "leave")
    ]
    if not rows:
        return None
    note = (
        "The paper's text allows several readings of its formula. Each column is one; lower is better, 0 is perfect. Where columns order the databases "
        "differently, the order is one of the reading, not of the databases."
    )
    return Section(
        "scores", "Scores by each reading of the formula", [Table(columns, rows), *_orders(summary), Text(note, "note")]
    )


def _score_row(transition: ComparedTransition) -> list[Line]:
    stable = transition.stability.by_band if transition.stability else None
    head: list[Line] = [transition.target, f"on {transition.nodes} nodes {transition.change.title}"]
    score = stable.score if stable else None
    if score is None:
        return [*head, (stable.reason if stable else None) or "not stable in time"]
    readings = [getattr(score.definitions, definition) for definition in DEFINITIONS]
    return [*head, score.elasticity, *readings, score.area_a, score.area_b, score.sets_between]


def _orders(summary: ElasticityComparisonSummary) -> list[Items]:
    """In which order each reading has the targets, by the mean over repetitions, where several have scores at the same change."""
    lines: list[Line] = []
    for (nodes, title), same in _same_changes(summary.result.transitions, "join").items():
        scores: dict[str, list[dict[str, float]]] = {}
        for transition in same:
            score = transition.stability.by_band.score if transition.stability else None
            if score is not None:
                readings = {title_of: getattr(score.definitions, name) for name, title_of in DEFINITIONS.items()}
                scores.setdefault(transition.target, []).append({"as the paper has it": score.elasticity, **readings})
        if len(scores) > 1:
            lines += [f"{title[:1].upper()}{title[1:]} (cluster of {nodes}): {line}" for line in _order_of(scores)]
    return [Items(lines)] if lines else []


def _order_of(scores: Mapping[str, Sequence[Mapping[str, float]]]) -> list[str]:
    """The orders, of equal ones one, with the readings that have it."""
    readings: dict[str, list[str]] = {}
    for reading in next(iter(scores.values()))[0]:
        means = {target: sum(of[reading] for of in runs) / len(runs) for target, runs in scores.items()}
        readings.setdefault(" before ".join(sorted(means, key=lambda target: means[target])), []).append(reading)
    return [f"{order}: {', '.join(which)}" for order, which in readings.items()]


def _data(summary: ElasticityComparisonSummary) -> Section | None:
    """What of the data moved."""
    columns: Columns = [
        ("target", "name"),
        ("change", "text"),
        ("parts of a node before", "text"),
        ("after", "text"),
        ("moved", "count"),
        ("within", "duration_s"),
        ("bytes on new nodes", "bytes"),
        ("nodes without data", "text"),
    ]
    rows: list[list[Line]] = [
        [
            transition.target,
            f"on {transition.nodes} nodes {transition.change.title}",
            range_of(of.parts.before for of in data.nodes.values()),
            range_of(of.parts.after for of in data.nodes.values()),
            data.moved_parts,
            data.moving_s,
            data.moved_bytes,
            ", ".join(data.without_data),
        ]
        for transition in summary.result.transitions
        if (data := transition.data) is not None and transition.change.kind in ("join", "leave")
    ]
    note = "Parts are regions or token ranges. Those that moved are the ones that nodes have more than before; the nodes were polled once per second."
    return Section("data", "Data that moved", [Table(columns, rows), Text(note, "note")]) if rows else None


def _faults(summary: ElasticityComparisonSummary) -> Section | None:
    """What faults of a node cost clients, and what was lost."""
    columns: Columns = [
        ("target", "name"),
        ("fault", "text"),
        ("noticed by others after", "duration_s"),
        ("lowest throughput", "share"),
        ("as good as before after", "duration_s"),
        ("nothing failed from", "duration_s"),
        ("lost writes", "count"),
        ("stale reads", "count"),
    ]
    rows: list[list[Line]] = [
        [
            transition.target,
            f"{transition.change.title}{f': {transition.failed}' if transition.failed else ''}",
            transition.noticed_s,
            dip.lowest_per_s / dip.level_per_s if dip and dip.level_per_s else None,
            dip.recovered_s if dip else None,
            dip.available_s if dip else None,
            transition.lost_writes,
            transition.stale_reads,
        ]
        for transition in summary.result.transitions
        if transition.change.kind not in ("join", "leave", "stay")
        for dip in [transition.dip]
    ]
    return Section("faults", "Faults of a node", [Table(columns, rows)]) if rows else None


def _stable(summary: ElasticityComparisonSummary) -> Section | None:
    """How steady clusters are to which nothing is done."""
    stable = summary.result.stable
    if not stable:
        return None
    columns: Columns = [
        ("target", "name"),
        ("nodes", "whole"),
        ("windows", "count"),
        ("greatest over smallest deviation", "number"),
        ("the same sets in any order", "number"),
    ]
    rows: list[list[Line]] = [
        [cluster.target, cluster.nodes, len(cluster.deviation), cluster.spread, cluster.spread_by_chance] for cluster in stable
    ]
    chart = Chart("stable-deviations", elasticity_curves.deviations(stable, _colours(summary)), "Deviations of a stable cluster")
    note = "The paper's figure 4.2: on a stable cluster of six nodes, deviations differ by more than a factor of four."
    return Section("stable", "Deviations of a stable cluster", [chart, Table(columns, rows), Text(note, "note")])


def _warnings(caveats: Sequence[Caveat]) -> Details | None:
    if not caveats:
        return None
    lines = [f"{formatting.variant(caveat.variant)}: {caveat.text} {caveat.action}" for caveat in caveats]
    return Details(counted(len(caveats), "warning"), [Items(lines)])


def _figures(summary: ElasticityComparisonSummary) -> Table:
    """A row for each role, transition and figure that was measured, with the paper's."""
    result, printed = summary.result, printed_by_figure(summary.published)
    here = {(figure.role, figure.transition, figure.figure): figure for figure in result.figures}
    places = [
        (role, transition, figure)
        for role in result.roles
        for transition in sorted({place[1] for place in here if place[0] == role})
        for figure in FIGURES
        if (role, transition, figure) in here
    ]
    columns: Columns = [
        ("database", "text"),
        ("transition", "number"),
        ("figure", "text"),
        ("here", "number"),
        ("repetitions", "number"),
        ("in the paper", "number"),
    ]
    rows = [
        [
            result.roles[role],
            str(transition + 1),
            FIGURES[figure][0],
            *_beside(here[place], printed.get(formula(figure, role, transition + 1)), FIGURES[figure][1]),
        ]
        for place in places
        for role, transition, figure in [place]
    ]
    return Table(columns, rows)


def _beside(here: TransitionFigure, printed: float | None, kind: str) -> list[Line]:
    """What was measured, how often, and what the paper has."""
    ends = (_value(end, kind) if end is not None else None for end in (here.low, here.high))
    return [[_value(here.value, kind), parts.between(*ends)], str(here.runs), None if printed is None else _value(printed, kind)]


def _value(value: float | None, kind: str) -> str:
    if value is not None and value <= 0 and kind == "duration_s":
        return f"{formatting.significant(value)} s"
    return formatting.of_kind(value, kind)
