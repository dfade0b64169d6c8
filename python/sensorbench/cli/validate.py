"""`sensorbench validate`: everything that can be checked of files without a server."""

from pathlib import Path
from textwrap import indent
from typing import Annotated

import typer
from rich.text import Text

from sensorbench.app.validation import CheckedFile, check_files
from sensorbench.cli.options import Json
from sensorbench.cli.printing import print_json
from sensorbench.errors import UsageError
from sensorbench.progress import ProgressReporter, console

Files = Annotated[
    list[Path],
    typer.Argument(
        help="Files of any kind: experiment, dataset mapping, schema, operation set, search space, claims, YCSB's properties, "
        "cassandra-stress' profile."
    ),
]


def validate(files: Files, json: Json = False) -> None:
    """Check files without a server: experiments, dataset mappings, schemas, operations, search spaces, claims, files of YCSB and cassandra-stress."""
    checked = check_files(files, ProgressReporter())
    if json:
        print_json([_described(file) for file in checked])
    else:
        _print(checked)
    if not all(file.is_ok for file in checked):
        raise typer.Exit(UsageError.exit_code)


def _print(checked: list[CheckedFile]) -> None:
    screen = console()
    for file in checked:
        if file.is_ok:
            screen.print(Text.assemble(f"{file.path}: ", ("ok", "green"), f"  {file.kind}: {file.about}"), highlight=False)
            continue
        count = len(file.problems)
        what = f"{count} error{'' if count == 1 else 's'}{f' in this {file.kind}' if file.kind else ''}"
        screen.print(Text.assemble(f"{file.path}: ", (what, "red")), highlight=False)
        for problem in file.problems:
            screen.print(indent(problem, "  "), highlight=False)


def _described(file: CheckedFile) -> dict[str, object]:
    return {
        "file": str(file.path),
        "kind": file.kind or None,
        "ok": file.is_ok,
        "about": file.about or None,
        "problems": file.problems,
    }
