"""Questions before something is removed."""

import sys
from typing import Annotated

import typer

from sensorbench.errors import UsageError
from sensorbench.progress import error_console

Yes = Annotated[bool, typer.Option("--yes", help="Do not prompt; required without a terminal.")]


def confirm(what: str, *, yes: bool) -> None:
    """Asks whether something may be done. `what` says it, with what it is done to, as the beginning of a question: "remove a and b".

    Raises UsageError if standard input is not a terminal and --yes was not given, typer.Abort (exit code 1) when the answer is no.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"this would {what}; standard input is not a terminal; confirm with --yes")
    # On standard error, so that what a command prints stays as it is.
    error_console().print(f"{what[0].upper()}{what[1:]}? [y/N]", end=" ", highlight=False, markup=False)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise typer.Abort
