"""`sensorbench report` and `sensorbench claims`: what results on disk say."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from sensorbench.app.comparison import write_comparison_report
from sensorbench.app.reports import summarise_elasticity_comparison, summarise_factor_study
from sensorbench.app.study import write_series_report
from sensorbench.cli.elasticity import show_elasticity, show_elasticity_comparison
from sensorbench.cli.factors import show_factors
from sensorbench.cli.mapreduce import show_mapreduce
from sensorbench.cli.options import Json, NoOpen
from sensorbench.cli.output import (
    print_claims,
    print_outcome,
)
from sensorbench.cli.printing import open_page, print_json
from sensorbench.cli.stress import show_stress
from sensorbench.cli.tune import show_tune
from sensorbench.progress import console, error_console, print_labelled
from sensorbench.results import kind_of, read_comparison
from sensorbench.results.elasticity import works_of
from sensorbench.results.mapreduce import read_mapreduce
from sensorbench.results.series import is_series, parts_with_results, read_series
from sensorbench.results.summary.claims import JudgedClaim
from sensorbench.results.summary.comparison import ComparisonSummary
from sensorbench.studies import summarise
from sensorbench.studies.mapreduce import summarise_mapreduce_study
from sensorbench.studies.series import summarise_series

Folder = Annotated[Path, typer.Argument(help="Folder of the results.")]


def report(folder: Folder, no_open: NoOpen = False, json: Json = False) -> None:
    """Write the report of results on disk again; also of those that were cut short."""
    if is_series(folder):
        _report_series(folder, no_open=no_open, as_json=json)
        return
    if works := works_of(folder):
        show_elasticity_comparison(works, folder, no_open=no_open, as_json=json)
        return
    shows = {
        "stress": show_stress,
        "elasticity": show_elasticity,
        "tune": show_tune,
        "factors": show_factors,
        "mapreduce": show_mapreduce,
    }
    show = shows.get(kind_of(folder) or "")
    if show is not None:
        show(folder, no_open=no_open, as_json=json)
        return
    summary, page = write_comparison_report(folder)
    if json:
        print_json(summary)
    else:
        print_outcome(summary, page)
        if summary.status != "complete":
            print_labelled(error_console(), "warning", f"the work in {folder} is {summary.status}")
    if not no_open:
        open_page(page)


def _report_series(folder: Path, *, no_open: bool, as_json: bool) -> None:
    parts = parts_with_results(folder)
    summaries = {name: write_comparison_report(part)[0] for name, part in parts.items()}
    results = {name: read_comparison(part) for name, part in parts.items()}
    summary, page = write_series_report(folder, results, summaries)
    if as_json:
        print_json(summary)
    else:
        console().print(f"report: {page}", highlight=False)
    if not no_open:
        open_page(page)


def claims(folder: Folder, json: Json = False) -> None:
    """List the claims of a study with their verdicts."""
    if is_series(folder):
        _claims_of_series(folder, as_json=json)
        return
    _show_claims(_claims_of(folder), as_json=json)


def _claims_of(folder: Path) -> Sequence[JudgedClaim]:
    """The claims of results of one kind or another, judged."""
    if works := works_of(folder):
        return summarise_elasticity_comparison(works, folder).claims
    match kind_of(folder):
        case "factors":
            return summarise_factor_study(folder).claims
        case "mapreduce":
            return summarise_mapreduce_study(read_mapreduce(folder)).claims
        case _:
            summary = summarise(read_comparison(folder))
            _warn_of_damage(summary)
            return summary.claims


def _warn_of_damage(summary: ComparisonSummary) -> None:
    """Says which damaged files a summary was made without."""
    for caveat in summary.warnings:
        if caveat.kind == "damaged":
            print_labelled(error_console(), "warning", f"{caveat.variant}: {caveat.text}")


def _show_claims(claims: Sequence[JudgedClaim], *, as_json: bool) -> None:
    if as_json:
        print_json(claims)
    else:
        print_claims(claims)


def _claims_of_series(folder: Path, *, as_json: bool) -> None:
    results = {name: read_comparison(part) for name, part in parts_with_results(folder).items()}
    summaries = {name: summarise(result) for name, result in results.items()}
    for of_part in summaries.values():
        _warn_of_damage(of_part)
    summary = summarise_series(read_series(folder), results, summaries)
    if summary.result.of == "parts" or as_json:
        _show_claims(summary.claims, as_json=as_json)
        return
    table = Table(box=None)
    for column in ("claim", "finding", "published", "verdict", *summary.result.parts):
        table.add_column(column)
    for claim in summary.claims:
        of_each = [claim.of_each[dataset].verdict for dataset in summary.result.parts]
        table.add_row(claim.id, claim.text, claim.published, claim.verdict, *of_each)
    console().print(table)
