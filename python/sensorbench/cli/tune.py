"""`sensorbench tune`: better settings for a server, searched under a budget and confirmed."""

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from sensorbench.app import reports
from sensorbench.app.dry_run import dry_run_tune
from sensorbench.app.run import run_and_report
from sensorbench.app.watch import live_page
from sensorbench.benchmarks.tune import TuneOptions
from sensorbench.cli.dry_run import show_dry_run
from sensorbench.cli.model_options import takes
from sensorbench.cli.options import DryRun, Json, Live, LivePort, NoOpen, NoPilot, Out, Resume, live_port
from sensorbench.cli.output import printer
from sensorbench.cli.printing import new_table, open_page
from sensorbench.errors import UsageError
from sensorbench.paths import new_results_folder
from sensorbench.progress import ProgressReporter, console, print_labelled
from sensorbench.report import formatting, tune_answer
from sensorbench.results.summary.tune import TuneFigures, TuneSummary

AllowDurability = Annotated[
    bool, typer.Option("--allow-durability", help="Also search settings that trade durability for speed.")
]


@takes(TuneOptions)
def tune(
    options: TuneOptions,
    allow_durability: AllowDurability = False,
    out: Out = None,
    resume: Resume = False,
    live: Live = False,
    port: LivePort = None,
    dry_run: DryRun = False,
    no_pilot: NoPilot = False,
    no_open: NoOpen = False,
    json: Json = False,
) -> None:
    """Search for better settings of a server or an embedded database, and confirm whether they are a gain."""
    if find_spec("optuna") is None:
        raise UsageError(
            "tune needs optuna, which is not installed: run `make setup` in the checkout, or .uv/bin/uv pip install 'optuna>=4'"
        )
    from sensorbench.benchmarks.tune import TuneBenchmark, plan_tune

    if resume and out is None:
        raise UsageError("--resume: name the folder of the search to continue with --out")
    folder, reporter = out or new_results_folder("tune"), ProgressReporter()
    plan = plan_tune(options, folder, reporter, allow_durability=allow_durability)
    if dry_run:
        show_dry_run(dry_run_tune(options, plan, folder, reporter, has_pilot=not no_pilot), as_json=json)
        return
    plan = replace(plan, shown=lambda value: formatting.of_kind(value, plan.bench.goal.kind))
    show = printer(print_tune, as_json=json)
    with live_page(folder, live_port(live, port), reporter):
        _, page = run_and_report(TuneBenchmark(), plan, folder, reporter, reports.TUNE.write, show, resume=resume)
    open_page(page, no_open=no_open)


def print_tune(summary: TuneSummary, page: Path) -> None:
    """Prints what came out, what to paste, and what each setting seems to do."""
    screen, result = console(), summary.result
    screen.print(tune_answer.headline(result), style="bold", highlight=False)
    if result.verdict == "gain":
        screen.print(f"for {result.space.file}:", highlight=False)
        screen.print(result.snippet, highlight=False)
    if result.effects:
        screen.print(_effects(result))
    if result.left_out:
        screen.print(f"not searched, because they trade durability for speed: {', '.join(result.left_out)}", highlight=False)
    for caveat in summary.warnings:
        if caveat.kind != "embedded":
            print_labelled(screen, "note", f"{caveat.text} {caveat.action}")
    screen.print(f"report: {page}", highlight=False)


def _effects(result: TuneFigures) -> Table:
    """Each setting of the best, and how trials with it compare with those without."""
    table = new_table("setting", "best", "trials with", "over those without", "what it does", wide=True)
    for effect in result.effects:
        table.add_row(
            effect.setting,
            (result.best or {})[effect.setting],
            f"{effect.with_it} ({effect.trials_with} of {effect.trials_with + effect.trials_without})",
            tune_answer.ratio(effect.ratio),
            effect.about,
        )
    return table
