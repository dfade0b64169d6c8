"""`sensorbench stress` and `sensorbench capacity`: a target under rates that rise, and the highest rate that it bears."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from sensorbench.app import reports
from sensorbench.app.dry_run import dry_run_stress
from sensorbench.app.run import run_and_report
from sensorbench.app.watch import live_page
from sensorbench.benchmarks.stress import CapacityOptions, StressBenchmark, StressOptions, plan_stress, request_rate
from sensorbench.cli.dry_run import show_dry_run
from sensorbench.cli.fail_on import FailOnLoad, check_load_conditions, fail_on_load, parse_load_conditions
from sensorbench.cli.model_options import takes
from sensorbench.cli.options import DropAfter, DryRun, Json, Live, LivePort, Metrics, NoOpen, NoPilot, Out, Replace, live_port
from sensorbench.cli.output import printer
from sensorbench.cli.printing import new_table, open_page, print_json
from sensorbench.paths import new_results_folder
from sensorbench.progress import ProgressReporter, console, print_labelled
from sensorbench.report import formatting
from sensorbench.report.load_generators import clock_lines
from sensorbench.results.summary.stress import StressStep, StressSummary
from sensorbench.runner import observers


@takes(StressOptions)
def run(
    options: StressOptions,
    fail_on: FailOnLoad = None,
    metrics: Metrics = None,
    live: Live = False,
    port: LivePort = None,
    out: Out = None,
    replace: Replace = False,
    drop_after: DropAfter = False,
    dry_run: DryRun = False,
    no_pilot: NoPilot = False,
    no_open: NoOpen = False,
    json: Json = False,
) -> None:
    """Run a load at one rate after another. The load does not wait for answers."""
    work = _Work(out or new_results_folder("stress"), fail_on, metrics, live_port(live, port), dry_run, no_pilot, no_open, json)
    _run(options, work, replace=replace, drop_after=drop_after)


@takes(CapacityOptions)
def capacity(
    options: CapacityOptions,
    fail_on: FailOnLoad = None,
    metrics: Metrics = None,
    live: Live = False,
    port: LivePort = None,
    out: Out = None,
    replace: Replace = False,
    drop_after: DropAfter = False,
    dry_run: DryRun = False,
    no_pilot: NoPilot = False,
    no_open: NoOpen = False,
    json: Json = False,
) -> None:
    """Search for the highest rate at which a target meets an objective. The load does not wait for answers."""
    work = _Work(out or new_results_folder("capacity"), fail_on, metrics, live_port(live, port), dry_run, no_pilot, no_open, json)
    _run(options, work, replace=replace, drop_after=drop_after)


@dataclass(frozen=True)
class _Work:
    """What both commands have of options that are not part of the benchmark."""

    folder: Path
    fail_on: list[str] | None
    metrics: str | None
    live_port: int | None
    dry_run: bool
    no_pilot: bool
    no_open: bool
    json: bool


def _run(options: StressOptions | CapacityOptions, work: _Work, *, replace: bool, drop_after: bool) -> None:
    """Carries out what options ask for; both commands are one benchmark."""
    conditions = parse_load_conditions(work.fail_on)
    check_load_conditions(conditions, has_capacity=isinstance(options, CapacityOptions))
    folder, reporter = work.folder, ProgressReporter()
    with observers(work.metrics) as watching:
        plan = plan_stress(options, folder, reporter, observers=watching, replace=replace, drop_after=drop_after)
        if work.dry_run:
            show_dry_run(dry_run_stress(options, plan, folder, reporter, has_pilot=not work.no_pilot), as_json=work.json)
            return
        reporter.say(f"{plan.work.described['data']}, results go to {folder}")
        with live_page(folder, work.live_port, reporter):
            show = printer(print_stress, as_json=work.json)
            summary, page = run_and_report(StressBenchmark(), plan, folder, reporter, reports.STRESS.write, show)
    open_page(page, no_open=work.no_open)
    fail_on_load(conditions, summary.result)


def set_rate(
    folder: Annotated[Path, typer.Argument(help="Results folder of the running stress test.")],
    per_s: Annotated[float, typer.Argument(help="New rate, in operations per second.")],
    json: Json = False,
) -> None:
    """Change the rate of a running stress test, until the step ends."""
    request_rate(folder, per_s)
    if json:
        print_json({"folder": str(folder), "rate_per_s": per_s})


def print_stress(summary: StressSummary, page: Path) -> None:
    """Prints each step, and the capacity if one was searched."""
    screen, result = console(), summary.result
    table = new_table(
        "rate/s",
        "offered",
        "completed/s",
        "late",
        "dropped",
        "timed out",
        "failed",
        "p50",
        "p99",
        "p99.9",
        "",
        texts=(),
        wide=True,
    )
    for step in result.steps:
        table.add_row(*_cells(step))
    screen.print(table)
    if result.capacity and result.objective:
        screen.print(formatting.capacity(result.capacity, result.objective), style="bold", highlight=False)
    for line in clock_lines(result.load_generators):
        screen.print(line, highlight=False)
    for caveat in summary.warnings:
        if caveat.kind != "embedded":
            print_labelled(screen, "note", f"{caveat.text} {caveat.action}")
    screen.print(f"report: {page}", highlight=False)


def _cells(step: StressStep) -> list[str]:
    counts = step.counts
    notes = [note for key, note in formatting.STEP_NOTES.items() if getattr(step, key)]
    latencies = [formatting.duration(getattr(step.response_s, key, None)) for key in ("median", "p99", "p999")]
    return [
        formatting.count(step.rate_per_s),
        f"{counts.offered:,}",
        formatting.count(step.completed_per_s),
        *(f"{count:,}" for count in (counts.late, counts.dropped, counts.timeout, counts.error)),
        *latencies,
        ", ".join(notes),
    ]
