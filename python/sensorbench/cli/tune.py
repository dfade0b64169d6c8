"""`sensorbench tune`: better settings for a server, searched under a budget and confirmed."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from sensorbench.analysis.capacity import Search
from sensorbench.app.reports import write_tune_report
from sensorbench.app.run import run_and_report
from sensorbench.benchmarks.tune import Bench, load_space, parse_goal, parse_start
from sensorbench.cli.load_options import (
    FIRST_PER_S,
    ArrivalOption,
    Distribution,
    ExperimentOption,
    First,
    InFlight,
    Mix,
    Overrides,
    Properties,
    Ramp,
    Records,
    Threads,
    Timeout,
    length_s,
    length_s_or_0,
    load_of,
    parse_mix,
    work_maker,
)
from sensorbench.cli.options import Json, NoOpen, Out, Resume
from sensorbench.cli.output import new_folder, show_written
from sensorbench.errors import UsageError
from sensorbench.progress import Teller, console, print_labelled
from sensorbench.report import tune_answer, words
from sensorbench.results.summary.tune import TuneFigures, TuneSummary

RUNS = 20
# Trials of a capacity, as a part of a search, need not be as near as one that is looked for by itself.
PRECISION, CONFIRM_ENDS = 0.1, 2

Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        help="The name of a database that the lab starts, or is embedded; one of the file's with --experiment.",
        show_default=False,
    ),
]
GoalOption = Annotated[
    str, typer.Option("--goal", help="p99@2000 (a percentile at a rate), capacity:p99=20ms, load, or size.", show_default=False)
]
SpaceOption = Annotated[
    Path | None,
    typer.Option("--space", help="A search space of yours, docs/tune.md; else the one that comes with it.", show_default=False),
]
Start = Annotated[
    list[str] | None,
    typer.Option(
        "--start", help="A setting of the configuration that counts as the default, key=value; may be given several times."
    ),
]
AllowDurability = Annotated[
    bool, typer.Option("--allow-durability", help="Search settings, too, that trade durability for speed.")
]
BudgetRuns = Annotated[
    int | None,
    typer.Option(
        "--budget-runs", min=3, help=f"Most trials, without the confirmation; {RUNS} if no budget is given.", show_default=False
    ),
]
BudgetTime = Annotated[
    str | None, typer.Option("--budget", help="Time for the search, without the confirmation: 30m.", show_default=False)
]
Pairs = Annotated[int, typer.Option("--confirm", min=3, help="Pairs of runs, default and best, that confirm.")]
Held = Annotated[str, typer.Option("--step", help="How long a rate is held.")]
WarmUp = Annotated[str, typer.Option("--warm-up", help="How long the rate is held before anything counts; 0 for none.")]
Seed = Annotated[
    int, typer.Option("--seed", min=0, help="From which all operations and proposals follow; the confirmation takes others.")
]


def tune(
    goal: GoalOption,
    target: Target = None,
    experiment: ExperimentOption = None,
    space: SpaceOption = None,
    start: Start = None,
    allow_durability: AllowDurability = False,
    budget_runs: BudgetRuns = None,
    budget: BudgetTime = None,
    confirm: Pairs = 3,
    step: Held = "30s",
    ramp: Ramp = "2s",
    warm_up: WarmUp = "10s",
    mix: Mix = "",
    records: Records = None,
    distribution: Distribution = None,
    files: Properties = None,
    properties: Overrides = None,
    first: First = FIRST_PER_S,
    in_flight: InFlight = None,
    threads: Threads = 1,
    timeout: Timeout = "10s",
    arrival: ArrivalOption = "poisson",
    seed: Seed = 1,
    out: Out = None,
    resume: Resume = False,
    no_open: NoOpen = False,
    json: Json = False,
) -> None:
    """Search better settings for a server or an embedded database, and confirm what was found: it may be no gain."""
    if find_spec("optuna") is None:
        raise UsageError(
            "tune needs optuna, which is not installed: run `make setup` in the checkout, or .uv/bin/uv pip install 'optuna>=4'"
        )
    from sensorbench.benchmarks.tune import Budget, TuneBenchmark, TunePlan, check_settings

    if resume and out is None:
        raise UsageError("--resume: say by --out where the search is that is to go on")
    folder, teller = out or new_folder("tune"), Teller()
    timeout_s = length_s("--timeout", timeout)
    held_s, ramp_s = length_s("--step", step), length_s_or_0("--ramp", ramp)
    wanted_goal = parse_goal(
        goal, held_s=held_s, ramp_s=ramp_s, timeout_s=timeout_s, search=Search(first, PRECISION, CONFIRM_ENDS)
    )
    make_work = work_maker(target, experiment, files, properties, records, distribution, parse_mix(mix), teller)
    work = make_work(folder, seed)
    whole, space_file = load_space(work.setting.target.database.name, space)
    plan = TunePlan(
        Bench(make_work, load_of(work, in_flight, threads, timeout_s, arrival, warm_up), wanted_goal),
        work,
        whole if allow_durability else whole.with_durability(),
        [] if allow_durability else whole.weaker,
        parse_start(start or []),
        Budget(budget_runs or (None if budget else RUNS), length_s("--budget", budget) if budget else None),
        confirm,
        seed,
        lambda value: words.of_kind(value, wanted_goal.kind),
    )
    check_settings(plan, space_file)
    teller.say(f"{work.described['data']}, {len(plan.space.settings)} settings of {space_file}, results go to {folder}")
    if plan.left_out:
        teller.say(f"left out, because they trade durability for speed (--allow-durability): {', '.join(plan.left_out)}")
    written = run_and_report(TuneBenchmark(), plan, folder, teller, write_tune_report, resume=resume)
    show_written(written, _print, no_open=no_open, as_json=json)


def show_tune(folder: Path, *, no_open: bool, as_json: bool) -> None:
    """Writes summary and report of a search on disk, and prints what they say."""
    show_written(write_tune_report(folder), _print, no_open=no_open, as_json=as_json)


def _print(summary: TuneSummary, page: Path) -> None:
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
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("setting", "best", "trials with", "over those without", "what it does"):
        table.add_column(column)
    for effect in result.effects:
        table.add_row(
            effect.setting,
            (result.best or {})[effect.setting],
            f"{effect.with_it} ({effect.trials_with} of {effect.trials_with + effect.trials_without})",
            tune_answer.ratio(effect.ratio),
            effect.about,
        )
    return table
