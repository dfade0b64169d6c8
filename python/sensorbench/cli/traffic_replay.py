"""`sensorbench traffic replay`: recorded statements at a target, on the clock that they were recorded by."""

from pathlib import Path
from typing import Annotated

import typer

from sensorbench.app import reports
from sensorbench.app.run import run_and_report
from sensorbench.app.watch import live_page
from sensorbench.benchmarks.replay import ReplayBenchmark, ReplayOptions, plan_replay
from sensorbench.cli.model_options import takes
from sensorbench.cli.options import Json, Live, LivePort, Metrics, NoOpen, Out, live_port
from sensorbench.cli.output import printer
from sensorbench.cli.printing import new_table, open_page
from sensorbench.paths import new_results_folder
from sensorbench.progress import ProgressReporter, console, print_labelled
from sensorbench.report import formatting
from sensorbench.report.replay import pace
from sensorbench.results.summary.replay import Percentiles, ReplaySummary
from sensorbench.runner import observers

AllowWrites = Annotated[
    bool,
    typer.Option(
        "--allow-writes",
        help="Replay statements that change data, wherever they write. Use it only for data that you may change; there is no way back.",
    ),
]

CompareWith = Annotated[
    str | None,
    typer.Option(
        "--compare-with",
        help="Also replay at this target afterwards, and compare the answers; both must have the same data, which must not change.",
        show_default=False,
    ),
]


@takes(ReplayOptions)
def replay(
    trace: Annotated[Path, typer.Argument(help="Folder of a trace.", show_default=False)],
    target: Annotated[
        str, typer.Argument(help="lab:NAME or a URL; the target must have the data of the trace.", show_default=False)
    ],
    options: ReplayOptions,
    allow_writes: AllowWrites = False,
    compare_with: CompareWith = None,
    metrics: Metrics = None,
    live: Live = False,
    port: LivePort = None,
    out: Out = None,
    no_open: NoOpen = False,
    json: Json = False,
) -> None:
    """Send the statements of a trace when they came in the trace: sessions in order, literals bound, lag and errors counted."""
    folder, reporter = out or new_results_folder("replay"), ProgressReporter()
    with observers(metrics) as watching:
        work = plan_replay(
            trace, target, options, folder, allow_writes=allow_writes, compare_with=compare_with, observers=watching
        )
        show = printer(_show, as_json=json)
        with live_page(folder, live_port(live, port), reporter):
            _, page = run_and_report(ReplayBenchmark(), work, folder, reporter, reports.REPLAY.write, show)
    open_page(page, no_open=no_open)


def _show(summary: ReplaySummary, page: Path) -> None:
    """Prints how a replay came out."""
    figures, screen = summary.result, console()
    counts, lag = figures.counts, figures.own_lag_s
    screen.print()
    screen.print(pace(figures), style="bold")
    screen.print(
        f"{counts.started:,} of {counts.statements:,} statements started: {counts.ok:,} ok, {counts.error:,} failed, "
        f"{counts.timeout:,} timed out, {counts.cancelled:,} cancelled; unknown at the server: {counts.unknown:,}",
        highlight=False,
    )
    if lag:
        screen.print(
            f"lag of the replayer itself: median {formatting.duration(lag.p50)}, p99 {formatting.duration(lag.p99)}; started more than "
            f"1 ms late for whatever reason: {figures.late_starts:,}",
            highlight=False,
        )
    columns = (
        "template",
        "kind",
        "ok",
        "failed",
        "response p50",
        "p99",
        "service p50",
        "p99",
        "recorded p50",
        "new errors",
        "gone",
        "rows differ",
    )
    table = new_table(*columns, texts={"template", "kind"}, wide=True)
    for each in figures.templates:
        table.add_row(
            each.template,
            each.kind,
            f"{each.ok:,}",
            f"{each.error + each.timeout:,}",
            *_shown(each.response_s),
            *_shown(each.service_s),
            formatting.duration(each.recorded_p50_s),
            *("–" if number is None else f"{number:,}" for number in (each.new_errors, each.gone_errors, each.rows_differ)),
        )
    screen.print(table)
    screen.print(f"report: {page}", highlight=False)
    if summary.answers_equal is not None:
        screen.print("all answers of the two targets were equal" if summary.answers_equal else "ANSWERS DIFFER", highlight=False)
    for caveat in summary.warnings:
        print_labelled(screen, "note", f"{caveat.text} {caveat.action}")


def _shown(latency: Percentiles | None) -> tuple[str, str]:
    return (formatting.duration(latency.p50), formatting.duration(latency.p99)) if latency else ("–", "–")
