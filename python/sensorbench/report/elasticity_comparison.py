"""The page of several works on elasticity: what they measured beside what the source printed, and the claims."""

from pathlib import Path
from typing import Any

from sensorbench.report.build import write_page

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


def write_elasticity_comparison_report(folder: Path, summary: dict[str, Any]) -> Path:
    """Writes `report.html` into a folder. Returns the page."""
    return write_page(folder, "elasticity_comparison.html.j2", {}, summary=summary, figures=FIGURES, rows=_rows(summary))


def _rows(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each role, transition and figure of which there is anything: here, and in the source."""
    here = {(one["role"], one["transition"], one["figure"]): one for one in summary["figures"]}
    there = {(one["role"], one["transition"], one["figure"]): one for one in summary["published"]}
    places = [
        (role, transition, figure)
        for role in summary["roles"]
        for transition in sorted({place[1] for place in [*here, *there] if place[0] == role})
        for figure in FIGURES
        if (role, transition, figure) in here or (role, transition, figure) in there
    ]
    return [
        {"role": place[0], "transition": place[1], "figure": place[2], "here": here.get(place), "there": there.get(place)}
        for place in places
    ]
