"""Commands, and how they end: 0 done, 1 failed, 2 wrong usage or configuration, 130 interrupted."""

import sys
import traceback
from pathlib import Path
from typing import Annotated

import typer
from typer.main import get_command

from sensorbench import __version__, interrupts
from sensorbench.cli import (
    cassandra_stress,
    choose,
    compare,
    data,
    databases,
    elasticity,
    experiment,
    guarantees,
    lab,
    quickstart,
    recommend,
    report,
    selfbench,
    stress,
    study,
    target,
    tune,
    ycsb,
)
from sensorbench.cli.help_texts import with_plain_help
from sensorbench.errors import EngineError, EngineUsageError, InterruptedRunError, SensorbenchError
from sensorbench.progress import error_console, print_labelled
from sensorbench.results.files import DiskFullError, raise_if_full

_DEBUG = "--debug"

app = typer.Typer(
    help="Benchmarks databases for sensor data: the same data, the same questions, answers checked, latencies that do not lie.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("quickstart")(quickstart.quickstart)
app.add_typer(study.app, name="study")
app.command("run")(experiment.run)
app.add_typer(lab.app, name="lab")
app.add_typer(data.app, name="data")
app.add_typer(target.app, name="target")
app.command("report")(report.report)
app.command("compare")(compare.compare)
app.command("claims")(report.claims)
app.command("aa")(compare.aa)
app.command("regression")(compare.regression)
app.add_typer(elasticity.app, name="elasticity")
app.add_typer(guarantees.app, name="guarantees")
app.command("stress")(stress.run)
app.command("set-rate")(stress.set_rate)
app.command("tune")(tune.tune)
app.add_typer(ycsb.app, name="ycsb")
app.command("cassandra-stress")(cassandra_stress.cassandra_stress)
app.command("recommend")(recommend.recommend)
app.command("databases")(databases.databases)
app.command("choose")(choose.choose)
app.command("selfbench")(selfbench.selfbench)

INTERRUPTED = InterruptedRunError.exit_code


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sensorbench {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
    __: Annotated[
        bool, typer.Option(_DEBUG, help="Show where in the program an error arose. Stands before the command or after it.")
    ] = False,
) -> None:
    pass


def start() -> None:
    """Runs the command line as what this process is there for: once it is known how the command ended, nothing interrupts it."""
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
    arguments, is_debugging = _without_debug(sys.argv[1:])
    try:
        _run(arguments)
    except (KeyboardInterrupt, Exception) as error:  # the one place where all errors become messages
        if is_debugging:
            traceback.print_exception(error)
        _fail(*_message_and_code(error))


def _without_debug(arguments: list[str]) -> tuple[list[str], bool]:
    """The arguments without --debug, and whether it is among them. Behind `--` all words are the command's own."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options = [word for word in arguments[:end] if word != _DEBUG]
    return options + arguments[end:], len(options) < end


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
            return _told(error), 1
        case _:
            return _as_defect(error), 1


def _as_defect(error: BaseException) -> str:
    """What nobody foresaw, in one line."""
    said = " ".join(str(error).split())
    what = f"{type(error).__name__}: {said}" if said else type(error).__name__
    return (
        f"{what} (a defect of sensorbench {__version__}). Please report it to its maintainers, "
        f"with the command and what it prints when you add {_DEBUG}"
    )


def _run(arguments: list[str]) -> None:
    """Runs the command line. What fails because it was interrupted, whatever it says, is raised as KeyboardInterrupt."""
    interruptions = interrupts.count()
    try:
        with_plain_help(get_command(app))(args=arguments, standalone_mode=True)
    except (InterruptedRunError, DiskFullError):
        raise
    except Exception as error:
        if interrupts.count() > interruptions:
            raise KeyboardInterrupt from error
        raise


def _told(error: OSError) -> str:
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
