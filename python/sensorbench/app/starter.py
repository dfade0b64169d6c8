"""Files to begin with: a dataset mapping, operations, a schema for each target and an experiment, made for a user's own CSV files."""

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sensorbench.dataset.csv_encoding import is_utf_8
from sensorbench.dataset.csv_numbers import PLAIN
from sensorbench.dataset.csv_profile import CsvProfile
from sensorbench.dataset.mapping import FILE_NAME
from sensorbench.errors import UsageError
from sensorbench.results.files import write_text
from sensorbench.runner import TargetSpec, databases, parse_target
from sensorbench.schemas import load_operations, load_schema, shipped_schemas
from sensorbench.schemas.operations import operations_file
from sensorbench.schemas.schema import Schema
from sensorbench.wording import counted

# The operation set whose files are copied.
STARTER = "starter"
# Schemas of a database that is compared with no other one; else the first of them.
_SCHEMAS = ("by_sensor", "by_time")
DATASET_FILE, OPERATIONS_FILE, EXPERIMENT_FILE = "dataset.toml", "operations.toml", "experiment.toml"
# The first line of each file, by which a later run knows that it may write it again.
MARKER = "# Written by sensorbench init. Change it as you like."
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_PASSWORD = re.compile(r"(?P<before>^[a-z0-9+]+://[^/@:]*):(?P<password>[^@/]*)@")


@dataclass(frozen=True)
class StarterTarget:
    """A target as it stands in the experiment file, and the schemas that it is given."""

    url: str
    dialect: str
    schemas: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Starter:
    """The files by their paths in the folder, and what the user should know of them."""

    files: dict[str, str]
    targets: list[StarterTarget]
    notes: list[str]

    def write(self, folder: Path, *, force: bool) -> list[Path]:
        """Writes the files. Raises UsageError, before anything is written, where a file is in the way: with `force` only one
        that `init` did not write.
        """
        paths = [folder / name for name in self.files]
        for path in paths:
            if path.exists() and not (force and _is_ours(path)):
                how = (
                    "move it, or name another folder with --out: --force overwrites only what `sensorbench init` wrote"
                    if force
                    else "name another folder with --out, or overwrite what `sensorbench init` wrote with --force"
                )
                raise UsageError(f"{path} is there already; {how}")
        for path, text in zip(paths, self.files.values(), strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, text)
        return paths


def _is_ours(path: Path) -> bool:
    try:
        return path.is_file() and path.read_text(encoding="utf-8").startswith(MARKER)
    except UnicodeDecodeError:
        return False


def starter_databases() -> list[str]:
    """The databases that there are schemas to begin with for."""
    return [database.name for database in databases().values() if shipped_schemas(STARTER, database.dialect)]


def starter_targets(names: Sequence[str], urls: Sequence[str]) -> list[StarterTarget]:
    """The targets of a first experiment: those that the user named, by database or by URL, and an embedded one to compare with.

    Raises:
        UsageError: for a database that is not known or that no schema is for, and for a URL that makes no sense.

    """
    known = starter_databases()
    for name in names:
        if name not in known:
            raise UsageError(f"--database {name}: expected one of {', '.join(known)}")
    specs = [parse_target(text) for text in (*names, *urls)]
    for spec in specs:
        if spec.database.name not in known:
            raise UsageError(
                f"--target {spec.database.name}: there is no schema to begin with for it; expected one of {', '.join(known)}"
            )
    if not any(spec.database.embedded for spec in specs):
        embedded = next(name for name in known if databases()[name].embedded)
        specs = [parse_target(embedded), *specs]
    dialects = {spec.database.dialect for spec in specs}
    # One database alone is compared in two schemas; several in the one that fits each best.
    count = len(_SCHEMAS) if len(dialects) == 1 and len(specs) == 1 else 1
    return [_target(spec, count) for spec in specs]


def _target(spec: TargetSpec, count: int) -> StarterTarget:
    shipped = shipped_schemas(STARTER, spec.database.dialect)
    schemas = tuple(name for name in _SCHEMAS if name in shipped)[:count]
    url, notes = _with_whole_paths(spec.text), []
    if found := _PASSWORD.match(url):
        url = f"{found['before']}@{url[found.end() :]}"
        variable = f"SENSORBENCH_{spec.database.name.upper().replace('+', '_')}_PASSWORD"
        notes.append(f"the password is not written into {EXPERIMENT_FILE}: export {variable}, or add credentials=FILE to the URL")
    return StarterTarget(url, spec.database.dialect, schemas, tuple(notes))


def _with_whole_paths(url: str) -> str:
    """A URL whose options name files from anywhere: the experiment is run in another folder than the one that it was made in."""
    address, mark, options = url.partition("?")
    parts = [option.partition("=") for option in options.split("&")]
    whole = [f"{key}{equals}{Path(value).absolute() if Path(value).is_file() else value}" for key, equals, value in parts]
    return f"{address}{mark}{'&'.join(whole)}"


def make_starter(profile: CsvProfile, name: str, targets: Sequence[StarterTarget], folder: Path) -> Starter:
    """The files for CSV files that were looked at.

    Args:
        profile: what the files hold.
        name: of the dataset; letters, digits, `_`, `.` and `-`.
        targets: of the experiment.
        folder: where the files are to be; paths of CSV files are relative to it where they lie below or beside it.

    """
    files = {
        DATASET_FILE: _dataset(profile, name, folder),
        OPERATIONS_FILE: f"{MARKER}\n{operations_file(STARTER).read_text(encoding='utf-8')}",
    }
    schemas: list[Schema] = []
    for target in targets:
        for schema_name in target.schemas:
            schema = load_schema(schema_name, operations=STARTER, database=target.dialect)
            schemas.append(schema)
            files[_schema_file(schema)] = f"{MARKER}\n# {_ABOUT_SCHEMA}\n{schema.path.read_text(encoding='utf-8')}"
    files[EXPERIMENT_FILE] = _experiment(name, targets, schemas)
    notes = [*profile.notes, *(note for target in targets for note in target.notes)]
    return Starter(files, list(targets), notes)


_ABOUT_SCHEMA = (
    "A schema: the tables, the load queries that fill them, and the statement of each operation. Parameters are written :name."
)


def _schema_file(schema: Schema) -> str:
    return f"schemas/{schema.database}/{schema.name}.toml"


def dataset_name(files: Sequence[Path]) -> str:
    """A name for the dataset of some files: that of the only file, else that of their folder."""
    stem = files[0].stem if len(files) == 1 else files[0].resolve().parent.name
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", stem).strip("-._") or "readings"


def _dataset(profile: CsvProfile, name: str, folder: Path) -> str:
    """The mapping file."""
    sites = profile.keys[:-1] if profile.is_one_reading_a_row else profile.keys
    site, zone = ([None, None, *sites])[-2:]
    lines = [
        MARKER,
        "# A mapping file: what the columns of your files are (docs/how-to/own-data.md has all keys).",
        f"# {_size(profile)}",
        f"name = {json.dumps(name)}",
        f"files = [{', '.join(_path(file, folder) for file in profile.files)}]",
        "",
        "# How the time of a reading is written, and in which time zone it is unless the cells say so (UTC if not given).",
        f"time = {_time(profile)}",
        "",
        "# Where a sensor is: a column, or the same number for all rows. A column of names is numbered in the order of the names.",
        f"site = {_column(site)}",
        f"zone = {_column(zone)}",
        "",
    ]
    if profile.is_one_reading_a_row:
        lines += [
            "# Each row is one reading: the column of the sensor's name, and that of the value.",
            f"sensor = {_text(profile.keys[-1])}",
            f"value = {_text(profile.values[0])}",
        ]
        if profile.keys[-1] == FILE_NAME:
            lines[-2] += "                  # each file is of one sensor, which has the file's name"
    else:
        lines += ["# Each row has several values: name of a sensor = column.", "[sensors]"]
        lines += [f"{_key(value.strip())} = {_text(value)}" for value in profile.values]
    at = lines.index("[sensors]") - 1 if "[sensors]" in lines else len(lines)
    more = _how_cells_are_read(profile)
    return "\n".join([*lines[:at], *more, *lines[at:]]) + "\n"


def _how_cells_are_read(profile: CsvProfile) -> list[str]:
    lines = []
    if profile.missing:
        lines += [
            '# Cells that mean "no value"; empty ones and NaN always do.',
            f"missing = {json.dumps(profile.missing, ensure_ascii=False)}",
        ]
    if not is_utf_8(profile.encoding):
        lines += ["# How characters are stored in the files; UTF-8 if not given.", f"encoding = {_text(profile.encoding)}"]
    if profile.numbers != PLAIN:
        lines += [f"# Numbers have {profile.numbers}.", f"decimal = {_text(profile.numbers.decimal)}"]
    if profile.numbers.thousands is not None:
        lines += [f"thousands = {_text(profile.numbers.thousands)}"]
    if profile.skips_bad_rows:
        lines += [
            '# Rows that cannot be read are left out and counted; "refuse" imports nothing while there is one.',
            'bad_rows = "skip"',
        ]
    if profile.ignored:
        lines += ["# Columns that are left out:"]
        lines += [f"#   {column}: {why}" for column, why in profile.ignored.items()]
    return [*lines, ""] if lines else []


def _size(profile: CsvProfile) -> str:
    count = len(profile.files)
    return f"{counted(count, 'file')}, {profile.bytes / 1e6:.1f} MB; {profile.rows:,} rows were looked at."


def _time(profile: CsvProfile) -> str:
    said = profile.time.model_dump(exclude_none=True)
    return "{ " + ", ".join(f"{key} = {_value(value)}" for key, value in said.items()) + " }"


def _value(value: str | list[str]) -> str:
    return f"[{', '.join(map(_text, value))}]" if isinstance(value, list) else _text(value)


def _column(name: str | None) -> str:
    return "1" if name is None else _text(name)


def _text(text: str) -> str:
    """A text as TOML writes it; JSON's escapes are TOML's."""
    return json.dumps(text, ensure_ascii=False)


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _text(name)


def _path(file: Path, folder: Path) -> str:
    """A file as the mapping names it. Signs that patterns have are escaped: a name is not a pattern."""
    absolute, base = file.resolve(), folder.resolve()
    relative = Path(os.path.relpath(absolute, base))
    if relative.parts.count("..") > 1:
        return _text(str(absolute))
    return _text(re.sub(r"([*?[])", r"[\1]", relative.as_posix()))


def _experiment(name: str, targets: Sequence[StarterTarget], schemas: Sequence[Schema]) -> str:
    """The experiment file: all operations that all schemas have."""
    operations = load_operations(STARTER).operation
    why_not = {
        operation: next(
            f"{schema.database}: {schema.file.cannot[operation]}" for schema in schemas if operation in schema.file.cannot
        )
        for operation in operations
        if not all(schema.asks(operation) for schema in schemas)
    }
    lines = [
        MARKER,
        "# An experiment: which data, at which targets, under which workload. Run it, from this folder, with",
        f"#   sensorbench validate {EXPERIMENT_FILE}",
        f"#   sensorbench run {EXPERIMENT_FILE}",
        "# A key can be changed for one run: sensorbench run experiment.toml --set workload.duration=30s",
        f"title = {_text(f'{name}: a first comparison')}",
        f"dataset = {_text(DATASET_FILE)}",
        f"operations = {_text(OPERATIONS_FILE)}",
        'metric = "median"                  # what is ranked: median, p95, p99, mean',
    ]
    for target in targets:
        for schema in (schema for schema in schemas if schema.database == target.dialect and schema.name in target.schemas):
            lines += [
                "",
                f"# {schema.summary}",
                "[[target]]",
                f"url = {_text(target.url)}",
                f"schema = {_text(_schema_file(schema))}",
            ]
    lines += ["", *_WORKLOAD, "", "# How often each operation comes, relative to the others.", "[workload.mix]"]
    for operation, about in operations.items():
        if operation in why_not:
            lines += [f"# {operation} = 1: {about.title}, left out. {why_not[operation]}"]
        else:
            lines += [f"{operation} = {_WEIGHTS.get(operation, 1)}".ljust(24) + f"# {about.question}"]
    return "\n".join([*lines, "", *_SCHEDULE, ""])


_WORKLOAD = (
    "[workload]",
    'warmup = "1s"                       # recorded and left out',
    'duration = "5s"                     # of each run; or operations = 5000',
    "repetitions = 3                     # runs of each variant, in the order A B B A; verdicts need three",
)
# Most systems are written to all the time, and a dashboard asks for the latest reading most.
_WEIGHTS = {"latest_reading": 4, "insert_reading": 4}
_SCHEDULE = (
    "# A closed loop: always 4 requests in flight. Requests at a rate, as users send them, are an open loop:",
    "#   rate = 500",
    '#   arrival = "poisson"',
    "[workload.schedule]",
    "concurrency = 4",
)
