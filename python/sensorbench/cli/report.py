"""`sensorbench report` and `sensorbench claims`: what results on disk say."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from sensorbench.app.reports import REPORTS, kind_at, write_report
from sensorbench.cli.elasticity import print_clusters, print_elasticity
from sensorbench.cli.factors import print_factors
from sensorbench.cli.mapreduce import print_mapreduce
from sensorbench.cli.options import Json, NoOpen
from sensorbench.cli.output import print_claims, print_outcome, printer
from sensorbench.cli.printing import new_table, open_page, print_json
from sensorbench.cli.stress import print_stress
from sensorbench.cli.tune import print_tune
from sensorbench.progress import console, error_console, print_labelled
from sensorbench.results import read_comparison
from sensorbench.results.elasticity import COMPARISON
from sensorbench.results.series import parts_with_results, read_series
from sensorbench.results.summary.claims import JudgedClaim
from sensorbench.results.summary.comparison import ComparisonSummary
from sensorbench.results.summary.envelope import Summary
from sensorbench.results.summary.series import SeriesSummary
from sensorbench.results.summary.tools import CassandraStressSummary, YcsbSummary
from sensorbench.results.summary.tsbs import TsbsSummary
from sensorbench.studies import summarise
from sensorbench.studies.series import summarise_series

AnySummary = ComparisonSummary | SeriesSummary | YcsbSummary | CassandraStressSummary | TsbsSummary
Folder = Annotated[Path, typer.Argument(help="Folder of the results.")]


def report(folder: Folder, no_open: NoOpen = False, json: Json = False) -> None:
    """Write the report of existing results again, also of incomplete ones."""
    summary, page = write_report(folder)
    printer(_PRINTS.get(kind_at(folder), _print), as_json=json)(summary, page)
    open_page(page, no_open=no_open)


def _print(summary: AnySummary, page: Path) -> None:
    if not isinstance(summary, ComparisonSummary):
        if isinstance(summary, YcsbSummary | CassandraStressSummary | TsbsSummary):
            typer.echo((page.parent / f"{summary.kind}.txt").read_text(encoding="utf-8"), nl=False)
        console().print(f"report: {page}", highlight=False)
        return
    print_outcome(summary, page)
    if summary.status != "complete":
        print_labelled(error_console(), "warning", f"the benchmark in {page.parent} is {summary.status}")


# What says more than that a page was written, by kind of results.
_PRINTS: dict[str, Callable[[Any, Path], None]] = {
    "stress": print_stress,
    "elasticity": print_elasticity,
    COMPARISON: print_clusters,
    "tune": print_tune,
    "factors": print_factors,
    "mapreduce": print_mapreduce,
}
# Other kinds are refused as what is not a comparison.
_WITH_CLAIMS = {"factors", "mapreduce", COMPARISON}


def claims(folder: Folder, json: Json = False) -> None:
    """List the claims of a study with their verdicts."""
    if kind_at(folder) == "series":
        _claims_of_series(folder, as_json=json)
        return
    _show_claims(_claims_of(folder), as_json=json)


def _claims_of(folder: Path) -> Sequence[JudgedClaim]:
    """The claims of results of one kind or another, judged."""
    kind = kind_at(folder)
    summary = REPORTS[kind if kind in _WITH_CLAIMS else "comparison"].summary(folder)
    _warn_of_damage(summary)
    claims: Sequence[JudgedClaim] = summary.claims
    return claims


def _warn_of_damage(summary: Summary[Any]) -> None:
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
    table = new_table("claim", "finding", "published", "verdict", *summary.result.parts)
    for claim in summary.claims:
        of_each = [claim.of_each[dataset].verdict for dataset in summary.result.parts]
        table.add_row(claim.id, claim.text, claim.published, claim.verdict, *of_each)
    console().print(table)
