"""Own data: CSV or Parquet files and a mapping file that says what their columns are.

See docs/how-to/own-data.md for the keys of a mapping file with a worked example.
"""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Literal
from zoneinfo import available_timezones

import duckdb
from pydantic import Field, model_validator

from sensorbench import toml_file
from sensorbench.dataset.csv_encoding import UTF_8, check_encoding
from sensorbench.dataset.csv_numbers import Decimal, NumberFormat, Thousands
from sensorbench.dataset.csv_rows import ROW_NUMBER, BadRow, TextRows, columns_of, quoted, refuse_alike, require_columns
from sensorbench.dataset.dataset import Dataset, DatasetWriter, Description
from sensorbench.dataset.importing import Rows
from sensorbench.dataset.staging import Location, Staging
from sensorbench.errors import UsageError

PARQUET_SUFFIX = ".parquet"
# In the place of a column: the name of the file without its ending, where each file is of one sensor.
FILE_NAME = "{file}"


class TimeColumn(toml_file.FileModel):
    """The column of the time of a reading, or its columns, and how it is written."""

    column: str | None = Field(default=None, description="The column of the time. This or `columns` must be given.")
    columns: list[str] | None = Field(
        default=None,
        min_length=2,
        max_length=6,
        description="The columns of year, month, day, hour, minute and second, in this order; the last three may be left out. Or those of a date and of a time of day, with `format`.",
    )
    format: str | None = Field(default=None, description='How text is written, as strptime has it: `"%d/%m/%Y %H:%M"`.')
    unit: Literal["s", "ms", "us", "ns"] | None = Field(default=None, description="Unit of numbers that count from 1970.")
    zone: str | None = Field(
        default=None, description='Time zone of times without an offset: `"Europe/Berlin"`; UTC if not given.'
    )

    @model_validator(mode="after")
    def _one_way(self) -> "TimeColumn":
        if (self.column is None) == (self.columns is None):
            raise ValueError(
                f"give either column, or columns in this order: {', '.join(_PARTS)} (the last three may be left out)"
            )
        if self.columns and self.unit:
            raise ValueError("columns have no unit; expected numbers (year, month, day …), or texts with a format")
        if self.columns and len(self.columns) < _MIN_PARTS and not self.format:
            raise ValueError(f"a date and a time of day in two columns need a format, {_DATE_AND_TIME}")
        if self.format and self.unit:
            raise ValueError("give either format (text) or unit (numbers since 1970), not both")
        return self

    @model_validator(mode="after")
    def _known_zone(self) -> "TimeColumn":
        # A machine without a list of zones leaves it to DuckDB.
        known = available_timezones()
        if self.zone is not None and known and self.zone not in known:
            raise ValueError(f"zone: there is no time zone {self.zone!r}; expected a name such as Europe/Berlin or UTC")
        return self

    @property
    def names(self) -> list[str]:
        """The columns that the time is in."""
        return self.columns or [self.column or ""]

    def sql(self) -> str:
        """The time in UTC, or null if the cells are none."""
        if self.columns and not self.format:
            return self._in_utc(_of_parts(self.columns))
        text = quoted(self.names[0])
        if self.columns:
            text = f"concat_ws(' ', {', '.join(map(quoted, self.columns))})"
        if self.unit:
            scale = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}[self.unit]
            return f"try(make_timestamp(CAST(round(TRY_CAST({text} AS DOUBLE) * {scale}) AS BIGINT)))"
        if self.format:
            local = f"try_strptime({text}, {_literal(self.format)})"
        elif self.zone:
            local = f"TRY_CAST({text} AS TIMESTAMP)"
        else:
            # A time with an offset is turned to UTC, one without is UTC already.
            return f"(TRY_CAST({text} AS TIMESTAMPTZ) AT TIME ZONE 'UTC')"
        return self._in_utc(local)

    def _in_utc(self, local: str) -> str:
        return f"(({local} AT TIME ZONE {_literal(self.zone)}) AT TIME ZONE 'UTC')" if self.zone else local


# What columns of a time hold, in this order.
_PARTS = ("year", "month", "day", "hour", "minute", "second")
_MIN_PARTS = 3
_DATE_AND_TIME = 'for example columns = ["date", "time"], format = "%d.%m.%Y %H:%M"'


def _of_parts(columns: list[str]) -> str:
    """The time that year, month and the others make; null if one is not a whole number, or there is no such date."""
    numbers = [f"TRY_CAST({quoted(column)} AS DOUBLE)" for column in columns]
    # A cast to whole numbers would round: hour 3.5 is none.
    whole = [f"CASE WHEN {number} = trunc({number}) THEN TRY_CAST({number} AS BIGINT) END" for number in numbers]
    parts = [*whole, *["0"] * (len(_PARTS) - len(whole))]
    return f"try(make_timestamp({', '.join(parts[:-1])}, CAST({parts[-1]} AS DOUBLE)))"


class Mapping(toml_file.FileModel):
    """A mapping file."""

    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", description="What the dataset is called: letters, digits, `_`, `.` and `-`."
    )
    title: str = Field(default="", description="Headline of the dataset; its name if not given.")
    source: str = Field(default="the user's own files", description="Where the data are from, for reports.")
    license: str = Field(default="not stated", description="What may be done with the data, for reports.")
    site_is: str = Field(default="site", description="What a site is, in a word, for reports: `city`.")
    zone_is: str = Field(default="zone", description="What a zone is, in a word, for reports: `station`.")
    files: list[str] = Field(min_length=1, description="Paths or patterns (`data/*.csv`), relative to the mapping file.")
    time: TimeColumn = Field(description="Where the time of a reading is, and how it is written.")
    site: int | str = Field(default=1, description="A number for all rows, or the name of a column.")
    zone: int | str = Field(default=1, description="A number for all rows, or the name of a column.")
    sensor: str | None = Field(
        default=None,
        description="The column of the sensor's name, where each row is one reading. `sensor` and `value`, or `sensors`, must be given.",
    )
    value: str | None = Field(default=None, description="The column of the value, where each row is one reading.")
    sensors: dict[str, str] = Field(
        default={}, description="Columns by the names of their sensors, where each row has several sensors."
    )
    text_sensors: dict[str, str] | list[str] = Field(
        default={},
        description="Sensors whose values are text: their columns by name, where each row has several sensors; else a list of their names.",
    )
    missing: list[str] = Field(default=["NA"], description='Texts that mean "no value". Empty cells and NaN always do.')
    decimal: Decimal = Field(default=".", description="Decimal separator of values.")
    thousands: Thousands | None = Field(
        default=None, description="Thousands separator of values: `,`, `.`, a space or `'`; none if not given."
    )
    encoding: str = Field(
        default=UTF_8,
        description="Encoding of CSV files, as Python names it: `windows-1252`, `utf-16`; a byte order mark is left out.",
    )
    bad_rows: Literal["refuse", "skip"] = Field(
        default="refuse", description="`refuse`: nothing is imported if a row is bad. `skip`: bad rows are left out and counted."
    )

    @model_validator(mode="after")
    def _long_or_wide(self) -> "Mapping":
        is_long = self.sensor is not None and self.value is not None
        if is_long == bool(self.sensors) or (self.sensor is None) != (self.value is None):
            raise ValueError("give either sensor and value (one reading a row) or sensors (one column a sensor)")
        if self.text_sensors and isinstance(self.text_sensors, list) != is_long:
            raise ValueError(
                'text_sensors: give the names of sensors, ["wind"], where each row is one reading, '
                'and name = column, { wind = "wd" }, where each row has many sensors'
            )
        if twice := sorted(set(self.sensors) & set(self.text_sensors)):
            raise ValueError(f"text_sensors: {twice[0]} is in sensors, too; expected it in one of them")
        return self

    @model_validator(mode="after")
    def _known_signs(self) -> "Mapping":
        if self.thousands == self.decimal:
            raise ValueError(f"thousands: {self.thousands!r} is the decimal separator, too; expected different separators")
        check_encoding(self.encoding)
        return self

    @property
    def columns(self) -> list[str]:
        """The columns that the files must have."""
        named = [*self.time.names, *(name for name in (self.site, self.zone, self.sensor, self.value) if isinstance(name, str))]
        return [name for name in (*named, *self.sensors.values(), *self.text_columns.values()) if name != FILE_NAME]

    @property
    def text_columns(self) -> dict[str, str]:
        """The columns of text sensors by the names of these, where each row has many sensors."""
        return self.text_sensors if isinstance(self.text_sensors, dict) else {}

    def number_sql(self, column: str) -> str:
        """The number in a column, or null if a cell is none."""
        return NumberFormat(self.decimal, self.thousands).sql(quoted(column))

    @property
    def is_text_sql(self) -> str:
        """Whether a row is a reading of a text sensor, where each row is one reading."""
        if self.sensor is None or not isinstance(self.text_sensors, list) or not self.text_sensors:
            return "false"
        return f"coalesce({quoted(self.sensor)} IN ({', '.join(map(_literal, self.text_sensors))}), false)"


def import_mapping(mapping_file: Path, files: list[Path], out: Path, *, skip_bad_rows: bool) -> Dataset:
    """Imports the files of a mapping file, or those given instead."""
    mapping = toml_file.load(mapping_file, Mapping)
    files = files or matching_files(mapping_file, mapping)
    return import_mapped(mapping, files, out, f"as {mapping_file.name} says", skip_bad_rows=skip_bad_rows)


def import_mapped(mapping: Mapping, files: list[Path], out: Path, how: str, *, skip_bad_rows: bool = False) -> Dataset:
    """Imports files as a mapping says; `how` says in the description where that is written."""
    staging = Staging()
    for table, value in (("named", "DOUBLE"), ("named_texts", "VARCHAR")):
        staging.connection.execute(
            f"CREATE TABLE {table} (site VARCHAR, zone VARCHAR, sensor VARCHAR, time TIMESTAMP, value {value}, file_number INTEGER, row_number BIGINT)"
        )
    no_numbers = [sensor for file in files for sensor in _stage(staging, mapping, file)]
    staging.bad_rows.refuse_or_keep_count(
        skip=skip_bad_rows or mapping.bad_rows == "skip", hint=_how_to_declare(mapping, no_numbers)
    )
    locations = _number_places(staging)
    writer = DatasetWriter(out)
    notes = staging.write(writer, locations)
    if mapping.text_sensors:
        notes += staging.write_texts(writer)
    description = Description(
        name=mapping.name,
        title=mapping.title or mapping.name,
        generated=False,
        source=mapping.source,
        license=mapping.license,
        how_made=f"Imported from {len(files)} files {how}. Cells that are empty, NaN or one of {mapping.missing} are absent.",
        site_is=mapping.site_is,
        zone_is=mapping.zone_is,
        notes=notes,
    )
    return writer.finish(description)


def matching_files(mapping_file: Path, mapping: Mapping) -> list[Path]:
    """The files that a mapping names, relative to it."""
    found: list[Path] = []
    for number, pattern in enumerate(mapping.files):
        matches = sorted(mapping_file.parent.glob(pattern)) if not Path(pattern).is_absolute() else [Path(pattern)]
        if not matches or not all(match.is_file() for match in matches):
            raise toml_file.error_at(
                mapping_file, f"files[{number}]", f"{pattern!r} names no file (looked in {mapping_file.parent.resolve()})"
            )
        found += matches
    return found


def inputs_fingerprint(mapping_file: Path) -> str:
    """Changes when the mapping or one of its files does."""
    mapping = toml_file.load(mapping_file, Mapping)
    return files_fingerprint(mapping_file.read_bytes(), matching_files(mapping_file, mapping))


def files_fingerprint(mapping: bytes, files: Iterable[Path]) -> str:
    """The same, of what a mapping says, in whatever form, and of its files."""
    digest = hashlib.sha256(mapping)
    for file in files:
        state = file.stat()
        digest.update(f"{file.resolve()} {state.st_size} {state.st_mtime_ns}".encode())
    return digest.hexdigest()[:16]


def _literal(text: str) -> str:
    """Text as an SQL literal. For words of a mapping that DuckDB takes only as literals."""
    return "'" + text.replace("'", "''") + "'"


def _stage(staging: Staging, mapping: Mapping, file: Path) -> list[str]:
    """Adds the readings of one file, places by name. Returns the sensors that have cells which are no numbers."""
    file_number = staging.next_file()
    table = f"file_{file_number}"
    rows = (
        _ParquetRows(staging.connection, table, file, mapping)
        if file.suffix == PARQUET_SUFFIX
        else _csv_rows(staging, table, file, mapping)
    )
    if FILE_NAME in (mapping.site, mapping.zone, mapping.sensor):
        staging.connection.execute(f"ALTER TABLE {table} ADD COLUMN {quoted(FILE_NAME)} VARCHAR DEFAULT {_literal(file.stem)}")
    staging.check_times(rows, mapping.time.sql(), mapping.time.names)
    no_numbers = []
    cells: list[tuple[str | None, str]] = [*mapping.sensors.items()] or [(None, mapping.value or "")]
    for sensor, column in cells:
        name_sql = _name_sql(mapping, sensor)
        number_sql = mapping.number_sql(column)
        is_number = f"NOT {mapping.is_text_sql}"
        no_numbers += staging.check_numbers(rows, column, mapping.missing, is_number, name_sql, number_sql)
        _insert(staging, mapping, rows, file_number, "named", name_sql, column, number_sql,
                f"{is_number} AND NOT isnan({number_sql})")  # fmt: skip
    texts: list[tuple[str | None, str]] = [*mapping.text_columns.items()]
    for sensor, column in texts or ([(None, mapping.value or "")] if mapping.text_sensors else []):
        is_text = "true" if sensor is not None else mapping.is_text_sql
        _insert(staging, mapping, rows, file_number, "named_texts", _name_sql(mapping, sensor), column, quoted(column), is_text)
    staging.connection.execute(f"DROP TABLE {table}")
    return no_numbers


def _name_sql(mapping: Mapping, sensor: str | None) -> str:
    """The name of a sensor: its own, or that in a column."""
    return _literal(sensor) if sensor is not None else quoted(mapping.sensor or "")


def _insert(
    staging: Staging,
    mapping: Mapping,
    rows: Rows,
    file_number: int,
    into: str,
    sensor_sql: str,
    column: str,
    value_sql: str,
    condition: str,
) -> None:
    """Adds the cells of a column that hold something and meet a condition."""
    time_sql = mapping.time.sql()
    staging.connection.execute(
        f"""
        INSERT INTO {into}
        SELECT {_place(mapping.site)}, {_place(mapping.zone)}, {sensor_sql}, {time_sql}, {value_sql}, $file_number, {ROW_NUMBER}
        FROM {rows.table}
        WHERE NOT list_contains($missing, {quoted(column)}) AND {value_sql} IS NOT NULL AND ({condition}) AND ({time_sql}) IS NOT NULL
          AND {sensor_sql} IS NOT NULL AND {_place(mapping.site)} IS NOT NULL AND {_place(mapping.zone)} IS NOT NULL
        """,
        {"file_number": file_number, "missing": mapping.missing},
    )


def _how_to_declare(mapping: Mapping, sensors: list[str]) -> str:
    """How sensors that have cells which are no numbers are declared to be text."""
    if not sensors:
        return ""
    names = list(dict.fromkeys(sensors))
    declared = (
        f"[{', '.join(map(json.dumps, names))}]"
        if mapping.sensor
        else "{ " + ", ".join(f"{json.dumps(name)} = {json.dumps(mapping.sensors[name])}" for name in names) + " }"
    )
    where = "" if mapping.sensor else ", and take them out of sensors"
    return f"Sensors whose values are text are declared in the mapping file: text_sensors = {declared}{where}."


def _place(place: int | str) -> str:
    return f"'{place}'" if isinstance(place, int) else quoted(place)


def _csv_rows(staging: Staging, table: str, file: Path, mapping: Mapping) -> TextRows:
    require_columns(file, columns_of(file, mapping.encoding), mapping.columns)
    return TextRows(staging.connection, table, file, staging.bad_rows, mapping.encoding)


class _ParquetRows:
    """The rows of a Parquet file as text, like those of a CSV file."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, table: str, file: Path, mapping: Mapping) -> None:
        self.table = table
        self._file = file
        try:
            rows = connection.read_parquet(str(file))
            found = list(rows.columns)
        except duckdb.Error as error:
            raise UsageError(f"{file}: not a Parquet file: {error}") from None
        missing = [name for name in mapping.columns if name not in found]
        if missing:
            raise UsageError(f"{file}: there is no column {missing[0]!r}; the columns are {', '.join(found)}")
        refuse_alike(str(file), found, mapping.columns)
        texts = ", ".join(f"CAST({quoted(name)} AS VARCHAR) AS {quoted(name)}" for name in dict.fromkeys(mapping.columns))
        rows.project(f"row_number() OVER () AS {ROW_NUMBER}, {texts}").to_table(table)

    def bad_cell(self, row_number: int, column: str, value: str, expected: str) -> BadRow:
        """A cell of a row that is not what was expected; rows count from 1."""
        return BadRow(str(self._file), row_number, column, value, expected)


def _number_places(staging: Staging) -> list[Location]:
    """Gives numbers to sites and zones: their own if all are whole numbers, else those of their names in order."""
    connection = staging.connection
    connection.execute("CREATE VIEW all_named AS SELECT site, zone FROM named UNION SELECT site, zone FROM named_texts")
    for place in ("site", "zone"):
        is_numeric = (
            connection.sql(f"SELECT count(*) FROM all_named WHERE TRY_CAST({place} AS INTEGER) IS NULL").fetchall()[0][0] == 0
        )
        number = f"CAST({place} AS INTEGER)" if is_numeric else f"dense_rank() OVER (ORDER BY {place})"
        connection.execute(
            f"CREATE TABLE {place}_numbers AS SELECT {place} AS name, CAST({number} AS INTEGER) AS number FROM (SELECT DISTINCT {place} FROM all_named)"
        )
    for staged, named in (("staged", "named"), ("staged_texts", "named_texts")):
        connection.execute(
            f"""
            INSERT INTO {staged}
            SELECT site_numbers.number, zone_numbers.number, sensor, time, value, file_number, row_number
            FROM {named} JOIN site_numbers ON site = site_numbers.name JOIN zone_numbers ON zone = zone_numbers.name
            """
        )
    places = connection.sql(
        """
        SELECT DISTINCT site_numbers.number, zone_numbers.number, site, zone
        FROM all_named JOIN site_numbers ON site = site_numbers.name JOIN zone_numbers ON zone = zone_numbers.name ORDER BY ALL
        """
    ).fetchall()
    return [Location(site, zone, f"{site_name} / {zone_name}") for site, zone, site_name, zone_name in places]
