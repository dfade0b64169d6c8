"""What papers printed, at the command line: which of it a study measures, and what results have in its place."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from sensorbench.app.reports import REPORTS, kind_at
from sensorbench.claims import Claim
from sensorbench.cli.output import published_claims
from sensorbench.cli.printing import new_table
from sensorbench.errors import UsageError
from sensorbench.progress import console
from sensorbench.report.published import measured_text, ratio_text
from sensorbench.results.elasticity import COMPARISON as CLUSTERS_KIND
from sensorbench.results.summary.published import PublishedTable
from sensorbench.studies.elasticity import ELASTICITY
from sensorbench.studies.published import Found, Published, published_of

# Kinds of results that may be of a study.
_OF_STUDIES = {"comparison", "series", "factors", "mapreduce"}


def tables_at(folder: Path, study: str) -> list[PublishedTable]:
    """The paper's tables with what results have.

    Raises:
        UsageError: for results of something else.

    """
    kind = kind_at(folder)
    summary = REPORTS[kind].summary(folder)
    found = f"the study {ELASTICITY.name}" if kind == CLUSTERS_KIND else _what(summary.result, kind)
    if found != f"the study {study}":
        raise UsageError(f"{folder}: these are results of {found}; expected the study {study}")
    return list(summary.published)


def _what(result: Any, kind: str) -> str:
    """What results are of, in a few words."""
    return f"the {getattr(result, 'source', 'study')} {result.name}" if kind in _OF_STUDIES else f"kind {kind}"


def planned_tables(study: str) -> list[PublishedTable]:
    """The paper's tables before anything is measured; nothing of a study that repeats no paper."""
    published = published_of(study)
    return published.tables(lambda _: Found(None, "not run")) if published else []


def show_published_and_claims(study: str, claims: Sequence[Claim], *, with_parts: bool = False) -> None:
    """Prints what a study's paper printed, and its claims."""
    screen, published = console(), published_of(study)
    if published is not None:
        screen.print(_overview(published))
        screen.print()
    screen.print(published_claims(claims, with_parts=with_parts))


def _overview(published: Published) -> Table:
    """How many values each table of the paper has, and how many of them the study measures."""
    values = Counter(row.title for row in published.rows)
    measured = Counter(row.title for row in published.rows if row.figure)
    table = new_table("table of the paper", "values", "measured by this study", "why not the others")
    table.title = f"{len(published.rows):,} values that the paper printed; {sum(measured.values()):,} of them are measured"
    table.title_justify = "left"
    for title, count in values.items():
        reasons = dict.fromkeys(row.cell.why for row in published.rows if row.title == title and not row.figure)
        table.add_row(title, str(count), str(measured[title]), "; ".join(reasons))
    return table


def cells(tables: Sequence[PublishedTable]) -> Table:
    """Each printed value with what was measured in its place."""
    shown = new_table("table of the paper", "row", "column", "printed", "here", "ratio", "state", "why")
    for table in tables:
        for cell in table.cells:
            shown.add_row(
                table.title,
                cell.row,
                cell.column,
                cell.as_printed,
                "" if cell.measured is None else measured_text(cell),
                ratio_text(cell),
                cell.state,
                "; ".join(filter(None, [cell.why, cell.note])),
            )
    return shown
