"""Commands, and how they end: 0 done, 1 failed, 2 wrong usage or configuration, 130 interrupted."""

import signal
import sys
from pathlib import Path
from typing import Annotated

import typer
from typer.main import get_command

from sensorbench import __version__
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
    tune,
    ycsb,
)
from sensorbench.cli.help_texts import with_plain_help
from sensorbench.errors import EngineError, EngineUsageError, SensorbenchError
from sensorbench.progress import error_console, print_labelled
from sensorbench.results.files import DiskFullError, raise_if_full

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


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sensorbench {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Runs the command line. A message for the user goes to standard error, without a traceback."""
    # A polite end is an interruption, whoever asks for it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with_plain_help(get_command(app))(standalone_mode=True)
    except KeyboardInterrupt:
        _fail("interrupted", 130)
    except SensorbenchError as error:
        _fail(str(error), error.exit_code)
    except EngineUsageError as error:
        _fail(str(error), 2)
    except EngineError as error:
        _fail(str(error), 1)
    except OSError as error:
        _fail(_told(error), 1)


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
