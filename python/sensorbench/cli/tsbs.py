"""`sensorbench tsbs`: TSBS's loads and queries by the names of its options."""

import typer

from sensorbench.app import reports
from sensorbench.app.run import run_and_report
from sensorbench.app.watch import live_page
from sensorbench.cli.dry_run import show_dry_run
from sensorbench.cli.model_options import takes
from sensorbench.cli.options import DryRun, Json, Live, LivePort, Metrics, Out, Replace, live_port
from sensorbench.cli.output import tool_printer
from sensorbench.compat.tsbs import (
    TsbsLoadBenchmark,
    TsbsLoadOptions,
    TsbsRunBenchmark,
    TsbsRunOptions,
    as_text,
    estimate_tsbs,
    plan_tsbs_load,
    plan_tsbs_run,
)
from sensorbench.errors import FailedError
from sensorbench.paths import new_results_folder
from sensorbench.progress import ProgressReporter
from sensorbench.runner import observers

app = typer.Typer(help="Run TSBS's loads and queries by the names of its options.", no_args_is_help=True)


@app.command("load")
@takes(TsbsLoadOptions)
def load(
    options: TsbsLoadOptions, out: Out = None, replace: Replace = False, dry_run: DryRun = False, json: Json = False
) -> None:
    """Load the data of a use case, in batches by workers, and print what tsbs_load prints."""
    folder, reporter = out or new_results_folder("tsbs-load"), ProgressReporter()
    if dry_run:
        show_dry_run(estimate_tsbs(options, folder), as_json=json)
        return
    plan = plan_tsbs_load(options, folder, reporter, replace=replace)
    show = tool_printer(as_text, reporter, as_json=json)
    run_and_report(TsbsLoadBenchmark(), plan, folder, reporter, reports.TSBS.write, show)


@app.command("run")
@takes(TsbsRunOptions)
def run(
    options: TsbsRunOptions,
    metrics: Metrics = None,
    out: Out = None,
    live: Live = False,
    port: LivePort = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Execute queries on data that were loaded, compare their answers with DuckDB's, and print what tsbs_run_queries prints."""
    folder, reporter = out or new_results_folder("tsbs-run"), ProgressReporter()
    if dry_run:
        show_dry_run(estimate_tsbs(options, folder), as_json=json)
        return
    with observers(metrics) as watching:
        plan = plan_tsbs_run(options, folder, reporter, observers=watching)
        show = tool_printer(as_text, reporter, as_json=json)
        with live_page(folder, live_port(live, port), reporter):
            summary, _ = run_and_report(TsbsRunBenchmark(), plan, folder, reporter, reports.TSBS.write, show)
    if summary.answers_equal is False:
        wrong = ", ".join(name for name, answer in summary.result.answers.items() if not answer.equal)
        raise FailedError(f"answers differ from DuckDB's, or from one another, for {wrong}; the report says which")
