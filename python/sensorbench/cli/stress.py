"""`sensorbench stress`: a target under rates that rise, or the highest rate that it bears."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from sensorbench.analysis.capacity import Search
from sensorbench.cli.options import Json, Metrics, NoOpen, Out, Replace
from sensorbench.cli.output import new_folder, open_page, print_json, write_stress_summary_and_report
from sensorbench.errors import FailedError, InterruptedRunError, UsageError
from sensorbench.experiment import TargetSpec, parse_target
from sensorbench.experiment.lengths import seconds
from sensorbench.experiment.workload import MOST_IN_FLIGHT, MOST_IN_FLIGHT_EMBEDDED
from sensorbench.progress import Teller, console
from sensorbench.report import words
from sensorbench.stress.objective import parse_objective
from sensorbench.stress.openmetrics import looks
from sensorbench.stress.own import OwnWork
from sensorbench.stress.rates import parse_rates
from sensorbench.stress.records import RecordWork, with_mix
from sensorbench.stress.run import CapacitySearch, Load, stress
from sensorbench.stress.steering import wish_rate
from sensorbench.stress.step import Arrival, Step, steps_of
from sensorbench.stress.work import Work
from sensorbench.stress.ycsb import CoreWorkload, core_workload, overridden, read_properties

RECORDS = 100_000
# Where a search begins, if nothing else is said.
FIRST_PER_S = 1000.0

TargetOption = Annotated[
    str | None,
    typer.Option(
        "--target",
        help="A database's name (the lab starts it), lab:NAME, or a URL; one of the file's with --experiment.",
        show_default=False,
    ),
]
ExperimentOption = Annotated[
    Path | None,
    typer.Option(
        "--experiment", help="An experiment file: its data, schema and operations instead of records.", show_default=False
    ),
]
Rates = Annotated[
    str | None,
    typer.Option("--rates", help="FROM:TO:STEP or rates with commas, in operations a second.", show_default=False),
]
Held = Annotated[str, typer.Option("--step", help="How long each rate is held.")]
Ramp = Annotated[str, typer.Option("--ramp", help="How long the rate takes to climb to the next step; 0 to jump.")]
WarmUp = Annotated[
    str, typer.Option("--warm-up", help="How long the first rate is held before anything counts; 0 to see the cold start.")
]
Mix = Annotated[
    str,
    typer.Option(
        "--mix", help="Weights of operations: read, write, insert, scan, read_modify_write. Without it, those of -P and -p."
    ),
]
Records = Annotated[
    int | None, typer.Option("--records", min=1, help=f"Records to work on.  [default: {RECORDS}]", show_default=False)
]
Distribution = Annotated[
    str | None,
    typer.Option(
        "--distribution",
        help="How records are chosen: uniform, zipfian, latest, hotspot, sequential, exponential.",
        show_default=False,
    ),
]
Properties = Annotated[
    list[Path] | None, typer.Option("-P", help="A properties file of YCSB for records and mix.", show_default=False)
]
Overrides = Annotated[list[str] | None, typer.Option("-p", help="A property of YCSB, key=value.", show_default=False)]
FindCapacity = Annotated[bool, typer.Option("--find-capacity", help="Search the highest rate that meets --objective.")]
ObjectiveOption = Annotated[
    str | None, typer.Option("--objective", help="Percentile and limit of the response time: p99=20ms.", show_default=False)
]
Precision = Annotated[
    float, typer.Option("--precision", min=0.1, max=50.0, help="How near the ends of the answer must be, in percent.")
]
Confirm = Annotated[int, typer.Option("--confirm", min=1, max=20, help="How many trials each end of the answer must have.")]
First = Annotated[float, typer.Option("--from", min=0.001, help="The rate at which a search begins.")]
Most = Annotated[
    float | None, typer.Option("--most", min=0.001, help="The highest rate that a search tries.", show_default=False)
]
InFlight = Annotated[
    int | None,
    typer.Option(
        "--in-flight",
        min=1,
        help=f"Most operations in flight.  [default: {MOST_IN_FLIGHT}; {MOST_IN_FLIGHT_EMBEDDED} embedded]",
        show_default=False,
    ),
]
Threads = Annotated[int, typer.Option("--threads", min=1, help="Threads of the client, for servers.")]
Timeout = Annotated[str, typer.Option("--timeout", help="After which an operation is given up.")]
ArrivalOption = Annotated[
    str, typer.Option("--arrival", help="poisson: as many independent clients come; constant: evenly spaced.")
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
    try:
        with looks(metrics) as look:
            stress(work, load, todo, folder, teller, look)
    except (InterruptedRunError, FailedError):
        if (folder / "manifest.json").exists():
            _, page = write_stress_summary_and_report(folder)
            teller.say(f"what was done until then: {page}")
        raise
    show_stress(folder, no_open=no_open, as_json=json)


def show_stress(folder: Path, *, no_open: bool, as_json: bool) -> None:
    """Writes summary and report of a stress run on disk, and prints what they say."""
    summary, page = write_stress_summary_and_report(folder)
    if as_json:
        print_json(summary)
    else:
        _print(summary, page)
    if not no_open:
        open_page(page)


def set_rate(
    folder: Annotated[Path, typer.Argument(help="Folder into which a stress run writes.")],
    per_s: Annotated[float, typer.Argument(help="The rate from now on, in operations a second.")],
) -> None:
    """Change the rate of a stress run that goes on; it holds until the step ends."""
    wish_rate(folder, per_s)


def _print(summary: dict[str, Any], page: Path) -> None:
    """Prints each step, and the capacity if one was searched."""
    screen = console()
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("rate/s", "offered", "completed/s", "late", "unstarted", "timed out", "failed", "p50", "p99", "p99.9", ""):
        table.add_column(column, justify="right")
    for one in summary["steps"]:
        table.add_row(*_cells(one))
    screen.print(table)
    if summary["capacity"]:
        screen.print(words.capacity(summary["capacity"], summary["objective"]), style="bold", highlight=False)
    for warning in summary["warnings"]:
        if warning["kind"] != "embedded":
            screen.print(f"[yellow]note:[/yellow] {warning['text']} {warning['action']}", highlight=False)
    screen.print(f"report: {page}", highlight=False)


def _cells(step: dict[str, Any]) -> list[str]:
    response = step["response_s"] or {}
    marks = [mark for key, mark in words.STEP_MARKS.items() if step.get(key)]
    counts = [f"{step[key]:,}" for key in ("late", "unstarted", "timeout", "error")]
    latencies = [words.duration(response.get(key)) for key in ("median", "p99", "p999")]
    return [
        words.count(step["rate_per_s"]),
        f"{step['offered']:,}",
        words.count(step["completed_per_s"]),
        *counts,
        *latencies,
        ", ".join(marks),
    ]


def work_maker(
    target: str | None,
    experiment: Path | None,
    files: list[Path] | None,
    properties: list[str] | None,
    records: int | None,
    distribution: str | None,
    mix: dict[str, float],
    teller: Teller,
    *,
    replace: bool = False,
) -> Callable[[Path, int], Work]:
    """What makes the work that options ask for, of a folder for its data and a seed. Raises UsageError."""
    if experiment is not None:
        _check_no_records(files, properties, records, distribution)
        return lambda folder, seed: OwnWork(experiment, target, mix, folder, teller, seed=seed, replace=replace)
    if target is None:
        raise UsageError("--target: expected a database's name, lab:NAME or a URL")
    spec, workload = parse_target(target), _workload(files, properties, records, distribution, mix, teller)
    return lambda folder, seed: RecordWork(spec, workload, folder, seed=seed, replace=replace)


def load_of(work: Work, in_flight: int | None, threads: int, timeout_s: float, arrival: str, warm_up: str) -> Load:
    """The load that options ask for. Raises UsageError."""
    return Load(
        in_flight or _most_in_flight(work.setting.target),
        threads,
        timeout_s,
        _arrival(arrival),
        length_s_or_0("--warm-up", warm_up),
    )


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


def _check_no_records(*options: object) -> None:
    """What says which records there are says nothing of an experiment file."""
    if any(options):
        raise UsageError("--experiment: its data are the file's; leave out -P, -p, --records and --distribution")


def _most_in_flight(target: TargetSpec) -> int:
    return MOST_IN_FLIGHT_EMBEDDED if target.database.embedded else MOST_IN_FLIGHT


def length_s(option: str, text: str) -> float:
    """A length of time in s. Raises UsageError."""
    try:
        return seconds(text)
    except ValueError as error:
        raise UsageError(f"{option} {error}") from None


def length_s_or_0(option: str, text: str) -> float:
    """A length of time in s, which may be none at all. Raises UsageError."""
    return 0.0 if text == "0" else length_s(option, text)


def _arrival(text: str) -> Arrival:
    if text == "poisson":
        return "poisson"
    if text == "constant":
        return "constant"
    raise UsageError(f"--arrival {text}: expected poisson or constant")


def parse_mix(text: str) -> dict[str, float]:
    """`read=5,write=5`."""
    mix: dict[str, float] = {}
    for part in filter(None, text.split(",")):
        name, equals, weight = part.strip().partition("=")
        try:
            mix[name] = float(weight)
        except ValueError:
            equals = ""
        if not equals or name in list(mix)[:-1]:
            raise UsageError(f"--mix {text}: expected operations with weights, each once, for example read=5,write=5")
    return mix


def _workload(
    files: list[Path] | None,
    properties: list[str] | None,
    records: int | None,
    distribution: str | None,
    mix: dict[str, float],
    teller: Teller,
) -> CoreWorkload:
    """The core workload of files and properties, with what options say besides; whole records are written if nothing else is said."""
    options = [
        *([f"recordcount={records}"] if records else []),
        *([f"requestdistribution={distribution}"] if distribution else []),
    ]
    of_files = {key: one for file in files or [] for key, one in read_properties(file).items()}
    said = overridden(of_files, [*(properties or ()), *options])
    defaults = {"recordcount": str(RECORDS), "requestdistribution": "zipfian", "writeallfields": "true"}
    missing = [f"{key}={value}" for key, value in defaults.items() if key not in said]
    workload, notes = core_workload(overridden(said, missing))
    for note in notes:
        teller.say(f"  {note}")
    return with_mix(workload, mix) if mix else workload
