"""`sensorbench stress`: a target under rates that rise, or the highest rate that it bears."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from sensorbench.analysis.capacity import Search
from sensorbench.app.reports import write_stress_report
from sensorbench.app.run import run_and_report
from sensorbench.benchmarks.stress import (
    CapacitySearch,
    Step,
    StressBenchmark,
    StressPlan,
    parse_objective,
    parse_rates,
    steps_of,
    wish_rate,
)
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
from sensorbench.cli.options import DropAfter, Json, Metrics, NoOpen, Out, Replace
from sensorbench.cli.output import new_folder, show_written
from sensorbench.errors import UsageError
from sensorbench.progress import Teller, console, print_labelled
from sensorbench.report import words
from sensorbench.results.summary.stress import StressStep, StressSummary
from sensorbench.runner import looks

TargetOption = Annotated[
    str | None,
    typer.Option(
        "--target",
        help="A database's name (the lab starts it), lab:NAME, or a URL; one of the file's with --experiment.",
        show_default=False,
    ),
]
Rates = Annotated[
    str | None,
    typer.Option("--rates", help="FROM:TO:STEP or rates with commas, in operations a second.", show_default=False),
]
Held = Annotated[str, typer.Option("--step", help="How long each rate is held.")]
WarmUp = Annotated[
    str, typer.Option("--warm-up", help="How long the first rate is held before anything counts; 0 to see the cold start.")
]
FindCapacity = Annotated[bool, typer.Option("--find-capacity", help="Search the highest rate that meets --objective.")]
ObjectiveOption = Annotated[
    str | None, typer.Option("--objective", help="Percentile and limit of the response time: p99=20ms.", show_default=False)
]
Precision = Annotated[
    float, typer.Option("--precision", min=0.1, max=50.0, help="How near the ends of the answer must be, in percent.")
]
Confirm = Annotated[int, typer.Option("--confirm", min=1, max=20, help="How many trials each end of the answer must have.")]
Most = Annotated[
    float | None, typer.Option("--most", min=0.001, help="The highest rate that a search tries.", show_default=False)
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="From which all operations follow.")]


def run(
    target: TargetOption = None,
    experiment: ExperimentOption = None,
    rates: Rates = None,
    step: Held = "30s",
    ramp: Ramp = "2s",
    warm_up: WarmUp = "10s",
    mix: Mix = "",
    records: Records = None,
    distribution: Distribution = None,
    files: Properties = None,
    properties: Overrides = None,
    find_capacity: FindCapacity = False,
    objective: ObjectiveOption = None,
    precision: Precision = 3.0,
    confirm: Confirm = 3,
    first: First = FIRST_PER_S,
    most: Most = None,
    in_flight: InFlight = None,
    threads: Threads = 1,
    timeout: Timeout = "10s",
    arrival: ArrivalOption = "poisson",
    seed: Seed = 1,
    metrics: Metrics = None,
    out: Out = None,
    replace: Replace = False,
    drop_after: DropAfter = False,
    no_open: NoOpen = False,
    json: Json = False,
) -> None:
    """Hold rates one after the other, or search the highest one that meets an objective. The load does not wait for answers."""
    folder, teller = out or new_folder("stress"), Teller()
    timeout_s = length_s("--timeout", timeout)
    lengths = (length_s("--step", step), length_s_or_0("--ramp", ramp))
    todo: list[Step] | CapacitySearch
    if find_capacity:
        todo = _capacity_search(rates, objective, timeout_s, lengths, Search(first, precision / 100.0, confirm, most_per_s=most))
    else:
        todo = _steps(rates, objective, lengths)
    make_work = work_maker(target, experiment, files, properties, records, distribution, parse_mix(mix), teller, replace=replace)
    work = make_work(folder, seed)
    load = load_of(work, in_flight, threads, timeout_s, arrival, warm_up)
    teller.say(f"{work.described['data']}, results go to {folder}")
    with looks(metrics) as look:
        plan = StressPlan(work, load, todo, look, drop_after=drop_after)
        written = run_and_report(StressBenchmark(), plan, folder, teller, write_stress_report)
    show_written(written, _print, no_open=no_open, as_json=json)


def show_stress(folder: Path, *, no_open: bool, as_json: bool) -> None:
    """Writes summary and report of a stress run on disk, and prints what they say."""
    show_written(write_stress_report(folder), _print, no_open=no_open, as_json=as_json)


def set_rate(
    folder: Annotated[Path, typer.Argument(help="Folder into which a stress run writes.")],
    per_s: Annotated[float, typer.Argument(help="The rate from now on, in operations a second.")],
) -> None:
    """Change the rate of a stress run that goes on; it holds until the step ends."""
    wish_rate(folder, per_s)


def _print(summary: StressSummary, page: Path) -> None:
    """Prints each step, and the capacity if one was searched."""
    screen, result = console(), summary.result
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("rate/s", "offered", "completed/s", "late", "dropped", "timed out", "failed", "p50", "p99", "p99.9", ""):
        table.add_column(column, justify="right")
    for step in result.steps:
        table.add_row(*_cells(step))
    screen.print(table)
    if result.capacity and result.objective:
        screen.print(words.capacity(result.capacity, result.objective), style="bold", highlight=False)
    for caveat in summary.warnings:
        if caveat.kind != "embedded":
            print_labelled(screen, "note", f"{caveat.text} {caveat.action}")
    screen.print(f"report: {page}", highlight=False)


def _cells(step: StressStep) -> list[str]:
    counts = step.counts
    marks = [mark for key, mark in words.STEP_MARKS.items() if getattr(step, key)]
    latencies = [words.duration(getattr(step.response_s, key, None)) for key in ("median", "p99", "p999")]
    return [
        words.count(step.rate_per_s),
        f"{counts.offered:,}",
        words.count(step.completed_per_s),
        *(f"{count:,}" for count in (counts.late, counts.dropped, counts.timeout, counts.error)),
        *latencies,
        ", ".join(marks),
    ]


def _steps(rates: str | None, objective: str | None, lengths: tuple[float, float]) -> list[Step]:
    if rates is None:
        raise UsageError("--rates: expected rates, for example 5000:30000:5000; or --find-capacity --objective p99=20ms")
    if objective is not None:
        raise UsageError("--objective is for --find-capacity; give one of --rates and --find-capacity")
    return steps_of(parse_rates(rates), *lengths)


def _capacity_search(
    rates: str | None, objective: str | None, timeout_s: float, lengths: tuple[float, float], search: Search
) -> CapacitySearch:
    if rates is not None:
        raise UsageError("--rates: --find-capacity chooses the rates itself; say where it begins by --from")
    if objective is None:
        raise UsageError("--find-capacity: expected --objective, for example p99=20ms")
    return CapacitySearch(parse_objective(objective, timeout_s), search, *lengths)
