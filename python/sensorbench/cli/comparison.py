"""Studies that compare databases and schemas, at the command line. The study is the command's own name."""

from pathlib import Path

import typer

from sensorbench.app.study import dry_run_study
from sensorbench.app.study import run_study as run_and_report_study
from sensorbench.app.watch import live_page
from sensorbench.cli.dry_run import show_budget, show_dry_run
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
from sensorbench.cli.output import print_outcome
from sensorbench.cli.printing import open_page, print_json
from sensorbench.paths import new_results_folder
from sensorbench.progress import ProgressReporter
from sensorbench.results.summary.comparison import ComparisonSummary
from sensorbench.results.summary.series import SeriesSummary
from sensorbench.studies import StudyOptions, require_study


@takes(StudyOptions)
def run_study(
    study: typer.Context,
    options: StudyOptions,
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
    """Load, ask, check the answers, judge the claims, write a report."""
    name = study.info_name or ""
    require_out(resume, out)
    folder = out or new_results_folder(name)
    if dry_run:
        show_dry_run(
            dry_run_study(require_study(name), options, folder, ProgressReporter(), has_pilot=not no_pilot), as_json=json
        )
        return

    to_open: list[Path] = []

    def show(summary: ComparisonSummary | SeriesSummary, page: Path) -> None:
        if json:
            print_json(summary)
        elif isinstance(summary, ComparisonSummary):
            print_outcome(summary, page)
        if isinstance(summary, ComparisonSummary):
            to_open.append(page)

    def show_part(summary: ComparisonSummary | SeriesSummary, page: Path) -> None:
        if not json and isinstance(summary, ComparisonSummary):
            print_outcome(summary, page)

    reporter = ProgressReporter()
    try:
        with live_page(folder, live_port(live, port), reporter):
            run_and_report_study(
                require_study(name),
                options,
                folder,
                reporter,
                show,
                show_part,
                show_budget,
                resume=resume,
                replace=replace,
                drop_after=drop_after,
            )
    finally:
        # Also where answers were wrong, which the page shows.
        for page in to_open:
            open_page(page, no_open=no_open)
