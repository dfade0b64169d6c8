"""What a user's CSV files hold, by a look at their first rows: the time, which columns name a sensor, which are its values.

The cells are read as text and cast by the same SQL as an import (mapping.py), so that what is found here imports.
"""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import duckdb
from pydantic import ValidationError

from sensorbench.dataset.csv_columns import (
    ColumnProfile,
    keys_among,
    number_format,
    profiles_of,
)
from sensorbench.dataset.csv_encoding import UTF_8, check_encoding, find_encoding, first_line
from sensorbench.dataset.csv_numbers import NumberFormat
from sensorbench.dataset.csv_rows import columns_of, delimiter_of, quoted, refuse_alike, text_rows
from sensorbench.dataset.csv_times import FoundTime, find_time
from sensorbench.dataset.mapping import FILE_NAME, TimeColumn
from sensorbench.errors import UsageError, problem_text

# This many rows are looked at, of this many files.
SAMPLE_ROWS = 500_000
SAMPLE_FILES = 20
_TABLE = "sampled"
# The number of the file that a row is from, named as no column of a file is.
FILE_NUMBER = '"file number of sensorbench"'


@dataclass(frozen=True)
class Wanted:
    """What the user says of the files; what is left out is found."""

    time: Sequence[str] = ()
    time_format: str | None = None
    time_unit: str | None = None
    time_zone: str | None = None
    keys: Sequence[str] = ()
    values: Sequence[str] = ()
    encoding: str | None = None
    decimal: str | None = None
    thousands: str | None = None


@dataclass(frozen=True)
class CsvProfile:
    """What the files hold. `keys` name the sensor of a row, the most general one first; `ignored` says why of each other column.

    `notes` are what the user should check.
    """

    files: list[Path]
    delimiter: str
    bytes: int
    rows: int
    time: TimeColumn
    keys: list[str]
    values: list[str]
    numbers: NumberFormat
    encoding: str
    missing: list[str]
    skips_bad_rows: bool
    ignored: dict[str, str]
    notes: list[str] = field(default_factory=list)

    @property
    def is_one_reading_a_row(self) -> bool:
        """Whether a row is one reading, whose sensor a key names; else each column of values is a sensor."""
        return len(self.values) == 1 and bool(self.keys)


def look_at(files: Sequence[Path], wanted: Wanted) -> CsvProfile:
    """What CSV files hold that belong together, by their first rows.

    Args:
        files: files with the same columns.
        wanted: what the user says of them.

    Raises:
        UsageError: for files that are not CSV, that differ in their columns, or in which no time or no value is found.

    """
    encoding, notes = _encoding(files, wanted)
    columns = _common_columns(files, encoding)
    for name in (*wanted.time, *wanted.keys, *wanted.values):
        if name not in columns:
            raise UsageError(f"{files[0]}, line 1: there is no column {name!r}; the columns are {', '.join(columns)}")
    refuse_alike(f"{files[0]}, line 1", columns, columns)
    with duckdb.connect() as connection:
        rows, rejected = _sample(connection, files, columns, encoding)
        profiles = [_as_wanted(profile, wanted) for profile in profiles_of(connection, _TABLE, columns)]
        _refuse_values_for_names(files[0], columns)
        if rows == 0:
            raise UsageError(f"{files[0]}: there are no rows below the names of the columns; expected readings")
        found = _time(connection, files[0], profiles, wanted)
        others = [profile for profile in profiles if profile.name not in found.time.names]
        profile = _profile(connection, files, rows, rejected, found, others, wanted, encoding)
    return replace(profile, notes=[*notes, *profile.notes])


def _encoding(files: Sequence[Path], wanted: Wanted) -> tuple[str, list[str]]:
    """The encoding of all files, and what the user should check. Raises UsageError if two files differ."""
    if wanted.encoding:
        try:
            return check_encoding(wanted.encoding), []
        except ValueError as error:
            raise UsageError(f"--encoding: {error}") from None
    found = {file: find_encoding(file) for file in files}
    # What holds only ASCII is in both.
    alike = {encoding.name for encoding in found.values() if not encoding.is_ascii} or {UTF_8}
    if len(alike) > 1:
        kinds = "; ".join(f"{file}: {encoding.name}" for file, encoding in found.items() if not encoding.is_ascii)
        raise UsageError(f"the files are in several encodings: {kinds}; give those of one encoding, or convert the others")
    return alike.pop(), [encoding.note for encoding in found.values() if encoding.note][:1]


def _as_wanted(profile: ColumnProfile, wanted: Wanted) -> ColumnProfile:
    """A column whose numbers may be written in those formats alone that the user said."""
    fitting = (
        form for form in profile.formats if wanted.decimal in {None, form.decimal} and wanted.thousands in {None, form.thousands}
    )
    return replace(profile, formats=frozenset(fitting))


def _common_columns(files: Sequence[Path], encoding: str) -> list[str]:
    """The columns that all files have, without those that have no name. Raises UsageError if two files differ."""
    first = [name for name in columns_of(files[0], encoding) if name.strip()]
    for file in files[1:]:
        found = [name for name in columns_of(file, encoding) if name.strip()]
        if found != first:
            raise UsageError(
                f"{file}, line 1: the columns are {', '.join(found)}, but those of {files[0]} are {', '.join(first)}; "
                "give only files of one form, and the others to a second `sensorbench init --out ANOTHER_FOLDER`"
            )
    return first


def _refuse_values_for_names(file: Path, columns: list[str]) -> None:
    """Raises UsageError if the first line has numbers, as readings have."""
    numbers = [name for name in columns if re.fullmatch(r"-?\d+([.,]\d+)?|\d{4}-\d\d-\d\d.*", name.strip())]
    if numbers:
        raise UsageError(
            f"{file}, line 1: expected the names of the columns, found {', '.join(columns[:5])}; "
            "put a first line with names before the readings, for example time,sensor,value"
        )


def _sample(
    connection: duckdb.DuckDBPyConnection, files: Sequence[Path], columns: list[str], encoding: str
) -> tuple[int, list[str]]:
    """Puts the first rows of the files into a table. Returns how many they are, and the first rows that are none."""
    rejected: list[str] = []
    chosen = files[:SAMPLE_FILES]
    selected = ", ".join(map(quoted, columns))
    for number, file in enumerate(chosen):
        connection.execute("DROP TABLE IF EXISTS reject_errors; DROP TABLE IF EXISTS reject_scans")
        try:
            with text_rows(connection, file, encoding) as lines:
                rows = lines.limit(SAMPLE_ROWS // len(chosen)).project(f"{number} AS {FILE_NUMBER}, {selected}")
                if number == 0:
                    rows.to_table(_TABLE)
                else:
                    rows.insert_into(_TABLE)
            found = connection.sql("SELECT DISTINCT line FROM reject_errors ORDER BY line LIMIT 1").fetchall()
        except duckdb.Error as error:
            raise UsageError(f"{file}: not a CSV file: {str(error).splitlines()[0]}") from None
        rejected += [f"{file}, line {line}" for (line,) in found]
    (count,) = connection.sql(f"SELECT count(*) FROM {_TABLE}").fetchall()[0]
    return count, rejected


def _time(connection: duckdb.DuckDBPyConnection, file: Path, profiles: list[ColumnProfile], wanted: Wanted) -> FoundTime:
    """The time: as the user says, or as it is found. Raises UsageError if there is none."""
    if wanted.time and (wanted.time_format or wanted.time_unit):
        names = list(wanted.time)
        said = {"column": names[0]} if len(names) == 1 else {"columns": names}
        return FoundTime(
            _time_column({**said, "format": wanted.time_format, "unit": wanted.time_unit, "zone": wanted.time_zone}), []
        )
    candidates = [profile for profile in profiles if not wanted.time or profile.name in wanted.time]
    found = find_time(connection, _TABLE, candidates, wanted.time)
    if found is None:
        shown = "; ".join(f"{profile.name} ({profile.shown})" for profile in candidates[:8])
        raise UsageError(
            f"{file}: no column of times is recognised among {shown}. Name it with --time COLUMN, and give --time-format, as strptime "
            "has it ('%d/%m/%Y %H:%M'), or --time-unit s, ms, us or ns for numbers since 1970"
        )
    if wanted.time_zone is None:
        return found
    zoned = found.time.model_copy(update={"zone": wanted.time_zone})
    return FoundTime(_time_column(zoned.model_dump()), found.notes, has_offset=found.has_offset)


def _time_column(said: dict[str, object]) -> TimeColumn:
    try:
        return TimeColumn.model_validate({key: value for key, value in said.items() if value is not None})
    except ValidationError as error:
        raise UsageError(f"--time: {problem_text(error.errors(include_url=False)[0])}") from None


def _profile(
    connection: duckdb.DuckDBPyConnection,
    files: Sequence[Path],
    rows: int,
    rejected: list[str],
    found: FoundTime,
    others: list[ColumnProfile],
    wanted: Wanted,
    encoding: str,
) -> CsvProfile:
    """The same with what the other columns are."""
    choice = keys_among(connection, _TABLE, found.time.sql(), others, wanted.keys, wanted.values)
    if not choice.values:
        shown = "; ".join(f"{profile.name} ({profile.shown})" for profile in others[:8]) or "no other column"
        raise UsageError(f"{files[0]}: no column of numbers is recognised: {shown}; name it with --value COLUMN")
    values = [profile for profile in others if profile.name in choice.values]
    delimiter = delimiter_of(first_line(files[0], encoding))
    numbers, doubts = number_format(connection, _TABLE, str(files[0]), delimiter, values)
    keys = list(choice.keys)
    notes = [*found.notes, *choice.notes, *doubts]
    if not keys and len(files) > 1 and _overlap(connection, found.time.sql()):
        keys = [FILE_NAME]
        notes.append("the files cover the same time, and no column names a sensor: each file is taken for one sensor")
    bad_times = _count(connection, f"({found.time.sql()}) IS NULL")
    if bad_times:
        notes.append(f"{bad_times:,} of {rows:,} rows have no time that can be read; they are left out and counted")
    if rejected:
        notes.append(f"some rows have another number of cells than the header ({rejected[0]}); they are left out and counted")
    if not found.has_offset and found.time.unit is None and found.time.zone is None:
        notes.append("the times have no offset and are taken for UTC; --time-zone Europe/Berlin says otherwise")
    duplicates = 0 if FILE_NAME in keys else _duplicates(connection, keys, found.time.sql())
    if duplicates:
        notes.append(
            f"{duplicates:,} of {rows:,} rows have the sensor and time of another row, and only the last is kept; if a column that "
            "distinguishes them is missing, name all key columns with --key"
        )
    missing = sorted({token for profile in values for token in profile.missing})
    return CsvProfile(
        files=list(files),
        delimiter=delimiter,
        bytes=sum(file.stat().st_size for file in files),
        rows=rows,
        time=found.time,
        keys=keys,
        values=choice.values,
        numbers=numbers,
        encoding=encoding,
        missing=missing,
        skips_bad_rows=bool(bad_times or rejected),
        ignored=choice.ignored,
        notes=notes,
    )


def _count(connection: duckdb.DuckDBPyConnection, condition: str) -> int:
    return int(connection.sql(f"SELECT count(*) FROM {_TABLE} WHERE {condition}").fetchall()[0][0])


def _overlap(connection: duckdb.DuckDBPyConnection, time_sql: str) -> bool:
    """Whether two of the files cover a common time, as those of several sensors do."""
    spans = connection.sql(
        f"SELECT min({time_sql}) AS first, max({time_sql}) AS last FROM {_TABLE} GROUP BY {FILE_NUMBER} ORDER BY first"
    ).fetchall()
    return any(after[0] < before[1] for before, after in itertools.pairwise(spans) if None not in (*before, *after))


def _duplicates(connection: duckdb.DuckDBPyConnection, keys: list[str], time_sql: str) -> int:
    """How many rows have the time and the keys of another one."""
    columns = ", ".join([f"({time_sql}) AS time", *map(quoted, keys)])
    query = f"SELECT count(*) - (SELECT count(*) FROM (SELECT DISTINCT {columns} FROM {_TABLE})) FROM {_TABLE}"
    return int(connection.sql(query).fetchall()[0][0])
