"""`sensorbench history`: results over time, and when they changed."""

from pathlib import Path
from typing import Annotated

import typer

from sensorbench.app.history import (
    add_to_history,
    check_export,
    check_page_folder,
    history_series,
    write_history_page,
)
from sensorbench.cli.options import Json, NoOpen
from sensorbench.cli.printing import new_table, open_page, print_json
from sensorbench.errors import FailedError, UsageError
from sensorbench.history import DEFAULT_STORE, HistoryStore, Selection
from sensorbench.paths import RESULTS_FOLDER
from sensorbench.progress import console
from sensorbench.report import formatting
from sensorbench.report.history import change_words, version_words
from sensorbench.results.history_entries import HistorySeries, Machines, Unit

app = typer.Typer(
    help="Results over time: one file of figures, and when they changed, by how much, with which version.", no_args_is_help=True
)

Store = Annotated[Path, typer.Option("--store", help="History file, a DuckDB database.")]
Label = Annotated[str, typer.Option("--label", help="Measured version: a commit, a release.", show_default=False)]
Experiment = Annotated[
    str | None,
    typer.Option("--experiment", help="Only this experiment: its name, or a prefix of its digest.", show_default=False),
]
Variant = Annotated[
    str | None, typer.Option("--variant", help="Only variants whose name contains these words.", show_default=False)
]
Operation = Annotated[str | None, typer.Option("--operation", help="Only this operation.", show_default=False)]
Metric = Annotated[
    str | None,
    typer.Option(
        "--metric",
        help="Metric: mean, median, p95, p99, throughput, load, size; the ranking metric if not given.",
        show_default=False,
    ),
]
Machine = Annotated[
    str | None, typer.Option("--machine", help="Only machines whose fingerprint starts with this.", show_default=False)
]
Normalised = Annotated[
    bool,
    typer.Option(
        "--normalised",
        help="One series over all machines, relative to the client's speed on each day; one series per machine if not given.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the permutations.")]
# A change that lies this many results back, or fewer, is a recent one.
RECENT = 5
_KINDS: dict[Unit, str] = {"s": "duration_s", "per s": "rate", "bytes": "bytes", "share": "number"}


@app.command("add")
def add(
    folders: Annotated[list[Path], typer.Argument(metavar="FOLDER…", help="Folders of results, of comparisons and studies.")],
    store: Store = DEFAULT_STORE,
    label: Label = "",
    doctor: Annotated[
        Path | None,
        typer.Option(
            "--doctor",
            help="Output of `sensorbench doctor --json` from the day of the results; the figures stored with them if not given.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Add folders of results to the history, all of them or none. What is there already is not added again."""
    added = add_to_history(folders, store, label=label, doctor=doctor)
    if json:
        print_json([{"id": each.result.id, "folder": each.result.folder, "is_new": each.is_new} for each in added])
        return
    table = new_table("result", "experiment", "measured", "figures", "history")
    for each in added:
        result = each.result
        table.add_row(
            result.folder,
            result.name,
            f"{result.measured:%Y-%m-%d %H:%M} UTC",
            str(len(result.figures)),
            "added" if each.is_new else "was there already",
        )
    console().print(table)


@app.command("list")
def list_results(store: Store = DEFAULT_STORE, json: Json = False) -> None:
    """List the results of the history, the oldest first."""
    with HistoryStore.open(store) as history:
        results = history.results()
    if json:
        print_json(results)
        return
    table = new_table("measured", "experiment", "version", "machine", "figures", "folder")
    for result in results:
        table.add_row(
            f"{result.measured:%Y-%m-%d %H:%M} UTC",
            f"{result.name} ({result.experiment[:8]})",
            result.label,
            f"{result.machine}: {result.machine_words}",
            str(result.figures),
            result.folder,
        )
    console().print(table)


@app.command("show")
def show(
    store: Store = DEFAULT_STORE,
    changes: Annotated[bool, typer.Option("--changes", help="Show the changes alone.")] = False,
    experiment: Experiment = None,
    variant: Variant = None,
    operation: Operation = None,
    metric: Metric = None,
    machine: Machine = None,
    normalised: Normalised = False,
    seed: Seed = 0,
    fail_on: Annotated[
        str | None,
        typer.Option(
            "--fail-on",
            help=f"worse: end with exit code 1 if a series changed for the worse within its last {RECENT} results.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Show series of figures: the last one, how much they vary, which step would be found, and where they changed."""
    if fail_on not in {None, "worse"}:
        raise UsageError(f"--fail-on {fail_on}: expected worse")
    found = history_series(
        store, Selection(experiment, variant, operation, metric, machine), machines=_machines(normalised), seed=seed
    )
    if json:
        print_json([series for series in found if series.changes or not changes])
    elif changes:
        _print_changes(found)
    else:
        _print_series(found)
    if fail_on is not None:
        _fail_on_worse(found)


@app.command("plot")
def plot(
    store: Store = DEFAULT_STORE,
    out: Annotated[Path, typer.Option("--out", help="Folder for the page and its charts.")] = RESULTS_FOLDER / "history",
    experiment: Experiment = None,
    variant: Variant = None,
    operation: Operation = None,
    metric: Metric = None,
    machine: Machine = None,
    normalised: Normalised = False,
    seed: Seed = 0,
    no_open: NoOpen = False,
    json: Json = False,
) -> None:
    """Write a page of series with their changes and versions."""
    check_page_folder(out)
    found = history_series(
        store, Selection(experiment, variant, operation, metric, machine), machines=_machines(normalised), seed=seed
    )
    page = write_history_page(found, store, out)
    if json:
        print_json({"page": str(page), "series": len(found)})
        return
    console().print(f"page: {page}", highlight=False, soft_wrap=True)
    open_page(page, no_open=no_open)


@app.command("export")
def export(
    out: Annotated[Path, typer.Option("--out", help="New file; .csv or .parquet.")],
    store: Store = DEFAULT_STORE,
    json: Json = False,
) -> None:
    """Write all figures as one table, a row for each with its result, variant, versions and machine."""
    check_export(out)
    with HistoryStore.open(store) as history:
        rows = history.export(out)
    if json:
        print_json({"file": str(out), "rows": rows})
    else:
        console().print(f"{rows:,} figures: {out}", highlight=False, soft_wrap=True)


def _machines(normalised: bool) -> Machines:
    return "normalised" if normalised else "split"


def _print_series(found: list[HistorySeries]) -> None:
    table = new_table(
        "experiment",
        "variant",
        "operation",
        "metric",
        "machine",
        "results",
        "last",
        "timer lag",
        "A/A",
        "varies by",
        "detectable",
        "last change",
    )
    for series in found:
        last, change = series.points[-1], series.changes[-1] if series.changes else None
        table.add_row(
            series.name,
            series.variant,
            series.operation,
            series.metric,
            series.machine or "several",
            str(len(series.points)),
            formatting.of_kind(last.value, _KINDS[series.unit]),
            formatting.duration(last.doctor.timer_lag_s),
            _share(last.doctor.aa_variation),
            _share(series.variation),
            _share(series.detectable),
            "none" if change is None else f"{change_words(change)} at {change.measured:%Y-%m-%d}",
        )
    console().print(table)


def _share(share: float | None) -> str:
    return "–" if share is None else formatting.percent(share)


def _print_changes(found: list[HistorySeries]) -> None:
    table = new_table("experiment", "variant", "operation", "change", "first result", "what changed there")
    for series in found:
        for change in series.changes:
            first = series.points[change.place]
            table.add_row(
                series.name,
                series.variant,
                series.operation,
                change_words(change),
                f"{change.measured:%Y-%m-%d %H:%M} UTC {first.versions['label']}".strip(),
                version_words(change),
            )
    if not any(series.changes for series in found):
        console().print(f"no change of level in {len(found)} series")
        return
    console().print(table)


def _fail_on_worse(found: list[HistorySeries]) -> None:
    worse = [
        f"{series.variant} {series.operation}: {change_words(change)} since {change.measured:%Y-%m-%d %H:%M} ({version_words(change)})"
        for series in found
        for change in series.changes
        if change.is_worse and change.after <= RECENT and change is series.changes[-1]
    ]
    if worse:
        raise FailedError(f"--fail-on worse: {'; '.join(worse)}")
