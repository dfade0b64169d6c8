"""The page of several clusters side by side: what was measured beside what the paper has, and the claims."""

from collections.abc import Sequence

from sensorbench.report import formatting, parts
from sensorbench.report.claims import claims_section
from sensorbench.report.published import published_section
from sensorbench.results.page import Columns, Details, Items, Line, Page, Piece, Section, Table, Text
from sensorbench.results.summary.elasticity import (
    ElasticityComparisonSummary,
    TransitionFigure,
)
from sensorbench.results.summary.envelope import Caveat
from sensorbench.results.summary.published import formula, printed_by_figure

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
        [Piece(work.title, href=f"{work.folder}/report.html"), f" ({work.status})" if work.status != "complete" else ""]
        for work in works
    ]
    note = (
        "The paper's authors doubled clusters of 6, 12 and 24 nodes in a cloud of 2011: its transitions are set beside the first, second "
        "and third here. Compare orders, not values: the paper's charts are in minutes, its scores probably of mixed units."
    )
    return Page(
        kind="elasticity",
        title=summary.title,
        head=[Text([parts.joined(links), "."], "about"), _warnings(summary.warnings)],
        sections=[
            Section("figures", "Stabilisation and scores", [_figures(summary), Text(note, "note")]),
            published_section(summary.published),
            claims_section(summary.claims, study="elasticity"),
            parts.reproduce(*(work.command for work in works)),
        ],
        footer=parts.footer(summary),
    )


def _warnings(caveats: Sequence[Caveat]) -> Details | None:
    if not caveats:
        return None
    lines = [f"{formatting.variant(caveat.variant)}: {caveat.text} {caveat.action}" for caveat in caveats]
    return Details(f"{len(caveats)} warning{'s' if len(caveats) != 1 else ''}", [Items(lines)])


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
