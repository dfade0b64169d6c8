"""`sensorbench traffic fit`: an experiment of recorded traffic, and whether the rest of the traffic bears it out."""

from pathlib import Path
from typing import Annotated

import typer

from sensorbench.cli.options import Json, NoOpen
from sensorbench.cli.printing import new_table, open_page, print_json
from sensorbench.progress import ProgressReporter, console
from sensorbench.report import formatting, traffic_fit_page
from sensorbench.report.build import write_page
from sensorbench.report.traffic import shortened
from sensorbench.report.traffic_fit import described_source, fit_facts, holdout_answer
from sensorbench.results.traffic_fit import TrafficFit
from sensorbench.traffic.fit import DEFAULT_COVERAGE, FitOptions, fit_trace


def fit(
    trace: Annotated[Path, typer.Argument(metavar="TRACE", help="Folder of a trace.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="Folder of the new experiment.", show_default=False)],
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            help="Folder with TABLE.csv or TABLE.parquet for each table that statements name, and schema.sql if you have it. Without it, the fit is "
            "only compared with the second half.",
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            help="Target of the experiment: a database or a URL. For a database other than the recorded one, the statements that you must write are "
            "listed. May be given several times.",
            show_default=False,
        ),
    ] = None,
    scale_rate: Annotated[float, typer.Option("--scale-rate", help="Multiple of the recorded rate.")] = 1.0,
    coverage: Annotated[
        float, typer.Option("--coverage", help="Share of reads and writes to cover; rarer templates are left out.")
    ] = DEFAULT_COVERAGE,
    json: Json = False,
    no_open: NoOpen = False,
) -> None:
    """Make an experiment of a trace: fitted to its first half, compared with its second half."""
    options = FitOptions(data=data, targets=tuple(target or ()), scale_rate=scale_rate, coverage=coverage)
    fitted = fit_trace(trace, out, options, ProgressReporter(quiet=json))
    page = write_page(traffic_fit_page(fitted), out, with_files=False)
    if json:
        print_json(fitted)
        return
    _show(fitted, out)
    console().print(f"report: {page}")
    open_page(page, no_open=no_open)


def _show(fitted: TrafficFit, out: Path) -> None:
    screen = console()
    table = new_table("operation", "statements", "share", "parameters", texts={"operation", "parameters"})
    for operation in fitted.operations:
        sources = "\n".join(f"{', '.join(source.parameters)}: {described_source(source)}" for source in operation.sources)
        table.add_row(operation.name, f"{operation.statements:,}", formatting.percent(operation.share), sources or "–")
    screen.print(table)
    for name, value in fit_facts(fitted):
        screen.print(f"{name}: {value}", highlight=False)
    for part in fitted.left_out:
        screen.print(
            f"left out: {formatting.percent(part.share)}, {shortened(part.what)}: {part.reason}", highlight=False, markup=False
        )
    screen.print()
    screen.print(holdout_answer(fitted), style="bold")
    for check in fitted.checks:
        screen.print(f"{check.name} {check.verdict}: {check.why}", highlight=False)
    if not fitted.files:
        screen.print("no experiment was written: name a folder with the tables by --data")
        return
    if fitted.to_write:
        screen.print(f"statements to write: {', '.join(fitted.to_write)}")
    screen.print(f"check it with: sensorbench validate {out / 'experiment.toml'}")
