"""`sensorbench run`: a user's own question."""

from pathlib import Path
from typing import Annotated

import typer

from sensorbench.app.comparison import dry_run_experiment, run_comparison_and_report
from sensorbench.app.watch import live_page
from sensorbench.cli.dry_run import show_dry_run
from sensorbench.cli.model_options import takes
from sensorbench.cli.options import (
    DropAfter,
    DryRun,
    Json,
    Live,
    LivePort,
    NoOpen,
    NoPilot,
    Out,
    Replace,
    Resume,
    live_port,
    require_out,
)
from sensorbench.cli.output import end_comparison, print_outcome, printer
from sensorbench.paths import new_results_folder
from sensorbench.progress import ProgressReporter
from sensorbench.runner import ExperimentOptions, plan_experiment

Experiment = Annotated[Path, typer.Argument(help="Experiment file (.toml); see docs/how-to/experiments.md.")]


@takes(ExperimentOptions)
def run(
    experiment: Experiment,
    options: ExperimentOptions,
    out: Out = None,
    resume: Resume = False,
    replace: Replace = False,
    drop_after: DropAfter = False,
    live: Live = False,
    port: LivePort = None,
    dry_run: DryRun = False,
    no_pilot: NoPilot = False,
    no_open: NoOpen = False,
    json: Json = False,
) -> None:
    """Run an experiment file: your own question, your own data, your own schemas."""
    require_out(resume, out)
    out = out or new_results_folder(experiment.stem)
    reporter = ProgressReporter()
    if dry_run:
        show_dry_run(dry_run_experiment(experiment, options, out, reporter, has_pilot=not no_pilot), as_json=json)
        return
    comparison = plan_experiment(
        experiment,
        list(options.changes),
        out,
        reporter,
        options.sweeps,
        include_outdated=options.include_outdated,
        resources=options.resources,
        blocks=options,
        generators=options,
    )
    reporter.say(f"{comparison.title}: variants: {len(comparison.variants)}, results go to {out}")
    with live_page(out, live_port(live, port), reporter):
        written = run_comparison_and_report(
            comparison,
            out,
            reporter,
            printer(print_outcome, as_json=json),
            resume=resume,
            replace=replace,
            drop_after=drop_after,
        )
    end_comparison(written, no_open=no_open)
