"""Commands, and how they end: 0 done, 1 failed, 2 wrong usage or configuration, 3 undecided, 130 interrupted."""

import gc
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer
from typer.main import get_command

import sensorbench
from sensorbench import interrupts
from sensorbench.cli.command import restore_color, shared_options, use_no_color
from sensorbench.cli.help_groups import PANELS
from sensorbench.cli.help_texts import with_plain_help
from sensorbench.cli.lazy import LazyGroup
from sensorbench.errors import DiskFullError, EngineError, EngineUsageError, InterruptedRunError, SensorbenchError
from sensorbench.progress import error_console, print_labelled
from sensorbench.terminal import TERMINAL

# Commands make many objects and few cycles. With Python's 700 new objects between two collections, a tenth of a command was collecting.
_OBJECTS_BETWEEN_COLLECTIONS = 50_000
_DEBUG = "--debug"
_NO_COLOR = "--no-color"


class _Commands(LazyGroup):
    panels = PANELS
    places = {
        "quickstart": (
            "quickstart:quickstart",
            "Compare four schemas in two embedded databases on real data: no server, under a minute.",
        ),
        "init": (
            "init:init",
            "Look at your CSV files and write a dataset mapping, operations, a schema for each database and an experiment file, ready to run.",
        ),
        "validate": (
            "validate:validate",
            "Check files without a server: experiments, dataset mappings, schemas, operations, search spaces, claims, files of YCSB and cassandra-stress.",
        ),
        "study": ("study:app", "Reproduce published studies."),
        "run": ("experiment:run", "Run an experiment file: your own question, your own data, your own schemas."),
        "stress": ("stress:run", "Run a load at one rate after another."),
        "capacity": ("stress:capacity", "Search for the highest rate at which a target meets an objective."),
        "set-rate": ("stress:set_rate", "Change the rate of a running stress test, until the step ends."),
        "tune": (
            "tune:tune",
            "Search for better settings of a server or an embedded database, and confirm whether they are a gain.",
        ),
        "elasticity": ("elasticity:app", "Measure what a change costs a loaded cluster, and when it is stable again."),
        "consistency": (
            "consistency:app",
            "Check what clients of a database saw: stale reads, lost writes, values never written.",
        ),
        "ycsb": ("ycsb:app", "Run YCSB's core workloads from its properties files."),
        "cassandra-stress": (
            "cassandra_stress:cassandra_stress",
            "Run a cassandra-stress profile: inserts alone create the table; other operations use what they left.",
        ),
        "tsbs": ("tsbs:app", "Run TSBS's loads and queries by the names of its options."),
        "traffic": ("traffic:app", "Record, describe and replay your own traffic: what clients sent to a database."),
        "report": ("report:report", "Write the report of existing results again, also of incomplete ones."),
        "watch": ("watch:watch", "Replay the runs of a benchmark second by second, in a page on 127.0.0.1, until Ctrl-C."),
        "compare": (
            "compare:compare",
            "Compare two results of the same dataset and workload: which is faster, by how much, with a confidence interval.",
        ),
        "gate": (
            "gate:gate",
            "Measure head and base interleaved on this machine, and report whether head is slower. Exit code 1 if it is, 3 if that is undecided.",
        ),
        "history": (
            "history:app",
            "Results over time: one file of figures, and when they changed, by how much, with which version.",
        ),
        "claims": ("report:claims", "List the claims of a study with their verdicts."),
        "bundle": (
            "bundle:bundle",
            "Pack results into one file that others can verify: figures, histograms, hashes of answers, schema files, versions, seeds, machine.",
        ),
        "verify": (
            "bundle:verify",
            "Verify a bundle: hashes, figures, accounting, times, questions, caches, schema files. Exit code 1 names what is wrong.",
        ),
        "site": (
            "site:site",
            "Build a static site from bundles, to filter and compare: no server, no external requests.",
        ),
        "recommend": (
            "recommend:recommend",
            "Recommend a schema for a need, from your own results (FOLDER), bundles of evidence, or the packaged reference.",
        ),
        "databases": (
            "databases:databases",
            "What is known of databases: consistency, distribution, model, queries, elasticity, licence, as studied and today, with sources; and what this project can do with each.",
        ),
        "choose": (
            "choose:choose",
            "Choose a database by needs: which databases meet them, why others do not, and, if none is left, the smallest sets of needs to drop.",
        ),
        "schema": ("schema:app", "The schemas of the package: tables, load queries and statements, by dataset and database."),
        "operations": (
            "operations:app",
            "The operations of the package: what each returns, its parameters, and which databases express it.",
        ),
        "data": ("data:app", "Datasets: real, generated, and your own."),
        "lab": ("lab:app", "Real servers on this machine or on hosts: private, without Docker."),
        "target": ("target:app", "List and remove what sensorbench left at a target."),
        "hosts": ("hosts:app", "Check hosts for load generators and nodes: are they fit to measure?"),
        "doctor": ("doctor:doctor", "Check whether this machine is fit to measure, and which latencies can be trusted."),
    }

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.params += shared_options(with_format=False)


app = typer.Typer(
    cls=_Commands,
    help="Benchmarks databases for sensor data: the same data and operations for each, answers validated, latency without coordinated omission.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["--help", "-h"]},
    pretty_exceptions_enable=False,
)

INTERRUPTED = InterruptedRunError.exit_code


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sensorbench {sensorbench.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
    __: Annotated[bool, typer.Option(_DEBUG, help="Show the traceback of an error. Goes before or after the command.")] = False,
) -> None:
    pass


class _WithoutPandas:
    """Makes importing pandas fail as if it were not installed.

    Where it is, pyarrow imports it before it makes its first array of Python values: 0.4 s of CPU time, for what no command uses.
    """

    @staticmethod
    def find_spec(name: str, _path: Sequence[str] | None, _target: ModuleType | None = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def start() -> None:
    """Runs the command line as what this process is there for: once it is known how the command ended, nothing interrupts it."""
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    sys.meta_path.insert(0, _WithoutPandas)
    try:
        try:
            main()
        finally:
            interrupts.end()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def main() -> None:
    """Runs the command line. A message for the user goes to standard error, without a traceback unless --debug is given."""
    # A polite end is an interruption, whoever asks for it.
    interrupts.install()
    TERMINAL.reset()
    arguments, is_debugging = _without_debug(sys.argv[1:])
    # Errors of the command line are printed before its options are looked at.
    if _NO_COLOR in _options_in(arguments) or TERMINAL.is_plain:
        use_no_color()
    else:
        restore_color()
    try:
        _run(arguments)
    except (KeyboardInterrupt, Exception) as error:  # the one place where all errors become messages
        if is_debugging:
            traceback.print_exception(error)
        _fail(*_message_and_code(error))
    finally:
        _leave_hosts()


def _leave_hosts() -> None:
    """Leaves the hosts that the command has connected, while threads can still be used for that."""
    if "sensorbench.lab.placement" in sys.modules:
        from sensorbench import lab

        lab.disconnect()


def _without_debug(arguments: list[str]) -> tuple[list[str], bool]:
    """The arguments without --debug, and whether it is among them. Behind `--` all words are the command's own."""
    words = _options_in(arguments)
    options = [word for word in words if word != _DEBUG]
    return options + arguments[len(words) :], len(options) < len(words)


def _options_in(arguments: list[str]) -> list[str]:
    """The arguments before `--`."""
    return arguments[: arguments.index("--")] if "--" in arguments else arguments


def _message_and_code(error: BaseException) -> tuple[str, int]:
    """What an error says to the user, and the exit code that it ends with."""
    match error:
        case KeyboardInterrupt():
            return "interrupted", INTERRUPTED
        case SensorbenchError():
            return str(error), error.exit_code
        case EngineUsageError():
            return str(error), 2
        case EngineError():
            return str(error), 1
        case OSError():
            return _described(error), 1
        case _:
            return _as_defect(error), 1


def _as_defect(error: BaseException) -> str:
    """What nobody foresaw, in one line."""
    said = " ".join(str(error).split())
    what = f"{type(error).__name__}: {said}" if said else type(error).__name__
    return (
        f"{what} (a defect of sensorbench {sensorbench.__version__}). Please report it to its maintainers, "
        f"with the command and what it prints when you add {_DEBUG}"
    )


def _run(arguments: list[str]) -> None:
    """Runs the command line. What fails because it was interrupted, whatever it says, is raised as KeyboardInterrupt."""
    interruptions = interrupts.count()
    try:
        with_plain_help(get_command(app))(args=arguments, standalone_mode=True)
    except (InterruptedRunError, DiskFullError):
        raise
    except SystemExit as ended:
        # Typer makes an exit of KeyboardInterrupt, without a word.
        if ended.code == INTERRUPTED and interrupts.count() > interruptions:
            raise KeyboardInterrupt from ended
        raise
    except Exception as error:
        if interrupts.count() > interruptions:
            raise KeyboardInterrupt from error
        raise


def _described(error: OSError) -> str:
    # What writes files is not imported before something fails.
    from sensorbench.results.files import raise_if_full

    try:
        raise_if_full(error, _place(error))
    except DiskFullError as full:
        return str(full)
    return str(error)


def _place(error: OSError) -> Path:
    return Path(error.filename or ".")


def _fail(message: str, exit_code: int) -> None:
    print_labelled(error_console(), "error", message, "red")
    sys.exit(exit_code)
