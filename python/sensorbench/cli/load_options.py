"""Options that say what load there is, which `stress` and `tune` share: records or an experiment file, the mix, and how operations come."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from sensorbench.benchmarks.stress import Arrival, Load, OwnWork, RecordWork, Work, with_mix
from sensorbench.compat.ycsb import CoreWorkload, overridden, parse_core_workload, read_all_properties
from sensorbench.errors import UsageError
from sensorbench.progress import Teller
from sensorbench.runner import MOST_IN_FLIGHT, MOST_IN_FLIGHT_EMBEDDED, TargetSpec, parse_target, seconds

RECORDS = 100_000
# Where a search begins, if nothing else is said.
FIRST_PER_S = 1000.0

ExperimentOption = Annotated[
    Path | None,
    typer.Option(
        "--experiment", help="An experiment file: its data, schema and operations instead of records.", show_default=False
    ),
]
Ramp = Annotated[str, typer.Option("--ramp", help="How long the rate takes to climb to the next step; 0 to jump.")]
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
First = Annotated[float, typer.Option("--from", min=0.001, help="The rate at which a search begins.")]
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
    said = overridden(read_all_properties(files or ()), [*(properties or ()), *options])
    defaults = {"recordcount": str(RECORDS), "requestdistribution": "zipfian", "writeallfields": "true"}
    missing = [f"{key}={value}" for key, value in defaults.items() if key not in said]
    workload, notes = parse_core_workload(overridden(said, missing))
    for note in notes:
        teller.say(f"  {note}")
    return with_mix(workload, mix) if mix else workload
