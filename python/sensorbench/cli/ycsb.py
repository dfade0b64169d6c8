"""`sensorbench ycsb`: YCSB's core workloads on any database, by its own properties files."""

from pathlib import Path

import typer

from sensorbench.app import reports
from sensorbench.app.run import run_and_report
from sensorbench.app.watch import live_page
from sensorbench.cli.dry_run import show_dry_run
from sensorbench.cli.model_options import takes
from sensorbench.cli.options import DryRun, Json, Live, LivePort, Metrics, Out, Replace, live_port
from sensorbench.cli.output import tool_printer
from sensorbench.compat.ycsb import Phase, YcsbBenchmark, YcsbOptions, YcsbRunOptions, as_text, estimate_ycsb, plan_ycsb
from sensorbench.paths import new_results_folder
from sensorbench.progress import ProgressReporter
from sensorbench.runner import observers

app = typer.Typer(help="Run YCSB's core workloads from its properties files.", no_args_is_help=True)


@app.command("load")
@takes(YcsbOptions)
def load(
    options: YcsbOptions,
    metrics: Metrics = None,
    out: Out = None,
    replace: Replace = False,
    live: Live = False,
    port: LivePort = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Insert the records of a workload, one operation each."""
    _run("load", options, metrics, out, live_port(live, port), replace=replace, dry_run=dry_run, as_json=json)


@app.command("run")
@takes(YcsbRunOptions)
def run(
    options: YcsbRunOptions,
    metrics: Metrics = None,
    out: Out = None,
    live: Live = False,
    port: LivePort = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Carry out the transactions of a workload on records that were loaded."""
    _run("run", options, metrics, out, live_port(live, port), dry_run=dry_run, as_json=json)


def _run(
    phase: Phase,
    options: YcsbOptions,
    metrics: str | None,
    out: Path | None,
    port: int | None,
    *,
    dry_run: bool,
    as_json: bool,
    replace: bool = False,
) -> None:
    folder, reporter = out or new_results_folder(f"ycsb-{phase}"), ProgressReporter()
    with observers(metrics) as watching:
        plan = plan_ycsb(phase, options, folder, reporter, observers=watching, replace=replace)
        if dry_run:
            show_dry_run(estimate_ycsb(plan, folder), as_json=as_json)
            return
        show = tool_printer(as_text, reporter, as_json=as_json)
        with live_page(folder, port, reporter):
            run_and_report(YcsbBenchmark(), plan, folder, reporter, reports.YCSB.write, show)
