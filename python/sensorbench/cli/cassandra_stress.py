"""`sensorbench cassandra-stress`: profiles of cassandra-stress' user mode, on sensorbench's engine."""

from pathlib import Path
from typing import Annotated

import typer

from sensorbench.app import reports
from sensorbench.app.run import run_and_report
from sensorbench.app.watch import live_page
from sensorbench.cli.dry_run import show_dry_run
from sensorbench.cli.model_options import takes
from sensorbench.cli.options import DryRun, Json, Live, LivePort, Metrics, Out, Replace, live_port
from sensorbench.cli.output import tool_printer
from sensorbench.compat.cassandra_stress import (
    CassandraStressBenchmark,
    CassandraStressOptions,
    as_text,
    estimate_cassandra_stress,
    plan_cassandra_stress,
)
from sensorbench.paths import new_results_folder
from sensorbench.progress import ProgressReporter
from sensorbench.runner import observers


@takes(CassandraStressOptions)
def cassandra_stress(
    profile: Annotated[Path, typer.Argument(help="The profile, a YAML file.", show_default=False)],
    options: CassandraStressOptions,
    metrics: Metrics = None,
    out: Out = None,
    replace: Replace = False,
    live: Live = False,
    port: LivePort = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Run a cassandra-stress profile: inserts alone create the table; other operations use what they left."""
    folder, reporter = out or new_results_folder("cassandra-stress"), ProgressReporter()
    with observers(metrics) as watching:
        plan = plan_cassandra_stress(profile, options, folder, reporter, observers=watching, replace=replace)
        if dry_run:
            show_dry_run(estimate_cassandra_stress(plan, folder), as_json=json)
            return
        show = tool_printer(as_text, reporter, as_json=json)
        with live_page(folder, live_port(live, port), reporter):
            run_and_report(CassandraStressBenchmark(), plan, folder, reporter, reports.CASSANDRA_STRESS.write, show)
