"""`sensorbench validate`: everything that can be checked of files without a server."""

from dataclasses import replace
from pathlib import Path
from textwrap import indent
from typing import Annotated

import typer
from rich.text import Text
from typer.main import get_command

from sensorbench.app.validation import EXPERIMENT, CheckedFile, check_files
from sensorbench.cli.options import Json
from sensorbench.cli.printing import print_json
from sensorbench.cli.settings import FILE, check_settings_file
from sensorbench.errors import UsageError
from sensorbench.progress import ProgressReporter, console
from sensorbench.wording import counted

Files = Annotated[
    list[Path],
    typer.Argument(
        help="Files of any kind: experiment, dataset mapping, schema, operation set, search space, claims, YCSB's properties, "
        "cassandra-stress' profile, sensorbench.toml."
    ),
]


Answers = Annotated[
    bool,
    typer.Option(
        "--answers",
        help="For experiments, also compare answers: load the data into each target, execute each query several times, and remove the data.",
    ),
]


def validate(files: Files, answers: Answers = False, json: Json = False) -> None:
    """Check files without a server: experiments, dataset mappings, schemas, operations, search spaces, claims, files of YCSB and cassandra-stress."""
    progress = ProgressReporter()
    checked = [_checked_settings(path) if path.name == FILE.name else check_files([path], progress)[0] for path in files]
    if answers:
        checked = [_with_answers(file, progress) for file in checked]
    if json:
        print_json([_described(file) for file in checked])
    else:
        _print(checked)
    if not all(file.is_ok for file in checked):
        raise typer.Exit(UsageError.exit_code)


def _with_answers(file: CheckedFile, progress: ProgressReporter) -> CheckedFile:
    """A file that was checked, with what its targets answer."""
    if not file.is_ok:
        return file
    if file.kind != EXPERIMENT:
        raise UsageError(f"--answers: {file.path} is a {file.kind}; expected experiments alone")
    # Files are checked without what runs experiments.
    from sensorbench.app.answers import check_answers

    found = check_answers(file.path, progress)
    if found.problem:
        return replace(file, problems=[f"{file.path}: the targets did not give equal answers; {found.problem}"])
    return replace(file, about=f"{file.about}; equal answers to {counted(found.reads, 'read')}")


def _checked_settings(path: Path) -> CheckedFile:
    """A file of options, which only the command line knows."""
    # The program knows this command by its name alone, and imports it when it is run.
    from sensorbench.cli.main import app

    kind = "file of options"
    try:
        return CheckedFile(path, kind, check_settings_file(path, get_command(app)))
    except UsageError as error:
        return CheckedFile(path, kind, problems=[str(error)])


def _print(checked: list[CheckedFile]) -> None:
    screen = console()
    for file in checked:
        if file.is_ok:
            screen.print(Text.assemble(f"{file.path}: ", ("ok", "green"), f"  {file.kind}: {file.about}"), highlight=False)
            continue
        count = len(file.problems)
        what = f"{counted(count, 'error')}{f' in this {file.kind}' if file.kind else ''}"
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
