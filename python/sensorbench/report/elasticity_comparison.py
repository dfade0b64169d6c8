"""The page of several clusters side by side: what was measured beside what the paper has, and the claims."""

from dataclasses import dataclass
from pathlib import Path

from sensorbench.report.build import write_page
from sensorbench.results.summary.elasticity import ElasticityComparisonSummary, PublishedFigure, TransitionFigure

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


@dataclass(frozen=True)
class Row:
    """A figure of a role at a transition: what was measured here, and what the paper has."""

    role: str
    transition: int
    figure: str
    here: TransitionFigure | None
    there: PublishedFigure | None


def write_elasticity_comparison_page(folder: Path, summary: ElasticityComparisonSummary) -> Path:
    """Writes `report.html` into a folder. Returns the page."""
    return write_page(folder, "elasticity_comparison.html.j2", {}, summary=summary, figures=FIGURES, rows=_rows(summary))


def _rows(summary: ElasticityComparisonSummary) -> list[Row]:
    """A row for each role, transition and figure of which there is anything: here, and in the paper."""
    here = {(one.role, one.transition, one.figure): one for one in summary.result.figures}
    there = {(one.role, one.transition, one.figure): one for one in summary.result.published}
    places = [
        (role, transition, figure)
        for role in summary.result.roles
        for transition in sorted({place[1] for place in [*here, *there] if place[0] == role})
        for figure in FIGURES
        if (role, transition, figure) in here or (role, transition, figure) in there
    ]
    return [Row(*place, here.get(place), there.get(place)) for place in places]
