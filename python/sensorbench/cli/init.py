"""`sensorbench init`: from a user's CSV files to a first experiment."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from sensorbench.app.starter import (
    EXPERIMENT_FILE,
    Starter,
    StarterTarget,
    dataset_name,
    make_starter,
    starter_databases,
    starter_targets,
)
from sensorbench.cli.options import Json
from sensorbench.cli.printing import print_json
from sensorbench.dataset.csv_encoding import is_utf_8
from sensorbench.dataset.csv_numbers import PLAIN, Decimal, Thousands
from sensorbench.dataset.csv_profile import CsvProfile, Wanted, look_at
from sensorbench.dataset.mapping import FILE_NAME
from sensorbench.errors import UsageError
from sensorbench.progress import console, print_labelled
from sensorbench.wording import counted

Files = Annotated[
    list[Path] | None,
    typer.Argument(
        help="CSV files with the same columns. If there are none, sensorbench prompts for them.",
        show_default=False,
        metavar="[CSV]...",
    ),
]
Database = Annotated[
    list[str] | None,
    typer.Option(
        "--database",
        help="Database to compare; the lab starts servers. May be given several times. An embedded database is added for reference.",
        show_default=False,
    ),
]
Target = Annotated[
    list[str] | None, typer.Option("--target", help="URL of your own server. May be given several times.", show_default=False)
]
OutFolder = Annotated[Path, typer.Option("--out", help="Folder for the files.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite what an earlier `init` wrote to the folder.")]
Name = Annotated[
    str | None, typer.Option("--name", help="Name of the dataset; the file's name if not given.", show_default=False)
]
Time = Annotated[
    list[str] | None,
    typer.Option("--time", help="Timestamp column; two columns for date and time of day.", show_default=False),
]
TimeFormat = Annotated[
    str | None,
    typer.Option("--time-format", help="strptime format of timestamps: '%d/%m/%Y %H:%M'.", show_default=False),
]
TimeUnit = Annotated[
    str | None, typer.Option("--time-unit", help="Unit of numeric timestamps since 1970: s, ms, us or ns.", show_default=False)
]
TimeZone = Annotated[
    str | None,
    typer.Option(
        "--time-zone", help="Time zone of timestamps without an offset: Europe/Berlin; UTC if not given.", show_default=False
    ),
]
Key = Annotated[
    list[str] | None,
    typer.Option(
        "--key",
        help="Column that names the sensor or its place. May be given several times, the most general first.",
        show_default=False,
    ),
]
Value = Annotated[
    list[str] | None,
    typer.Option("--value", help="Column of values. May be given several times; other columns are left out.", show_default=False),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding", help="Encoding of the files: utf-8, windows-1252, utf-16 …; detected if not given.", show_default=False
    ),
]
DecimalSign = Annotated[
    Decimal | None, typer.Option("--decimal", help="Decimal separator of values; detected if not given.", show_default=False)
]
ThousandsSign = Annotated[
    Thousands | None,
    typer.Option("--thousands", help="Thousands separator of values; detected if not given.", show_default=False),
]


def init(
    files: Files = None,
    database: Database = None,
    target: Target = None,
    out: OutFolder = Path(),
    force: Force = False,
    name: Name = None,
    time: Time = None,
    time_format: TimeFormat = None,
    time_unit: TimeUnit = None,
    time_zone: TimeZone = None,
    key: Key = None,
    value: Value = None,
    encoding: Encoding = None,
    decimal: DecimalSign = None,
    thousands: ThousandsSign = None,
    json: Json = False,
) -> None:
    """Look at your CSV files and write a dataset mapping, operations, a schema for each database and an experiment file, ready to run."""
    databases, targets = list(database or []), list(target or [])
    if not files:
        files = _requested_files()
        databases, targets = (databases, targets) if databases or targets else _requested_databases()
    chosen = starter_targets(databases, targets)
    wanted = Wanted(time or (), time_format, time_unit, time_zone, key or (), value or (), encoding, decimal, thousands)
    profile = look_at(files, wanted)
    starter = make_starter(profile, name or dataset_name(files), chosen, out)
    paths = starter.write(out, force=force)
    if json:
        print_json(_described(profile, starter, paths))
    else:
        _print(profile, starter, paths, out)


def _requested_files() -> list[Path]:
    """The files that the user names when asked. Raises UsageError if nobody can be asked."""
    if not sys.stdin.isatty():
        raise UsageError("init: name CSV files, for example `sensorbench init readings.csv`")
    while True:
        line: str = typer.prompt("CSV files (several with spaces; patterns such as data/*.csv)", err=True)
        paths = [path for word in line.split() for path in (sorted(Path().glob(word)) if "*" in word else [Path(word)])]
        missing = [path for path in paths if not path.is_file()]
        if paths and not missing:
            return paths
        typer.echo(f"{missing[0] if missing else line}: no such file", err=True)


def _requested_databases() -> tuple[list[str], list[str]]:
    """The databases and URLs that the user names when asked."""
    known = starter_databases()
    line: str = typer.prompt(f"Databases or URLs of your servers ({', '.join(known)})", default=known[0], err=True)
    words = line.replace(",", " ").split()
    return [word for word in words if ":" not in word], [word for word in words if ":" in word]


def _print(profile: CsvProfile, starter: Starter, paths: list[Path], out: Path) -> None:
    screen = console()
    for line in _found(profile):
        screen.print(line, highlight=False)
    for note in starter.notes:
        print_labelled(screen, "check", note)
    screen.print()
    for path in paths:
        screen.print(f"wrote {path}", highlight=False)
    screen.print()
    screen.print("next:", highlight=False)
    folder = "" if out.resolve() == Path().resolve() else f"cd {out} && "
    for command in (f"validate {EXPERIMENT_FILE}", f"run {EXPERIMENT_FILE}"):
        screen.print(f"  {folder}sensorbench {command}", highlight=False)


def _found(profile: CsvProfile) -> list[str]:
    """What was found in the files, a line each."""
    time = profile.time
    written = time.format or (f"numbers since 1970 in {time.unit}" if time.unit else "ISO 8601" if time.column else "numbers")
    keys = ["the name of each file" if key == FILE_NAME else key for key in profile.keys]
    size = f"{profile.bytes / 1e6:.1f} MB in {counted(len(profile.files), 'file')}"
    return [
        f"{size}; columns separated by {profile.delimiter!r}" + ("" if is_utf_8(profile.encoding) else f"; {profile.encoding}"),
        f"time: {', '.join(time.names)} ({written}{f', {time.zone}' if time.zone else ''})",
        f"sensor: {', '.join(keys) or 'a column each'}",
        f"values: {', '.join(profile.values)}" + ("" if profile.numbers == PLAIN else f" ({profile.numbers})"),
        *([f"left out: {', '.join(f'{name} ({why})' for name, why in profile.ignored.items())}"] if profile.ignored else []),
    ]


def _described(profile: CsvProfile, starter: Starter, paths: list[Path]) -> dict[str, object]:
    targets: list[StarterTarget] = starter.targets
    return {
        "files": [str(path) for path in paths],
        "found": {
            "delimiter": profile.delimiter,
            "bytes": profile.bytes,
            "time": profile.time.model_dump(exclude_none=True),
            "keys": profile.keys,
            "values": profile.values,
            "encoding": profile.encoding,
            "decimal": profile.numbers.decimal,
            "thousands": profile.numbers.thousands,
            "missing": profile.missing,
            "ignored": profile.ignored,
        },
        "targets": [{"url": target.url, "schemas": list(target.schemas)} for target in targets],
        "notes": starter.notes,
    }
