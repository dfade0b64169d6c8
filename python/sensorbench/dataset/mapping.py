"""Own data: CSV or Parquet files and a mapping file that says what their columns are.

See docs/own-data.md for the keys of a mapping file with a worked example.
"""

import hashlib
from pathlib import Path
from typing import Literal

import duckdb
from pydantic import Field, model_validator

from sensorbench import toml_file
from sensorbench.dataset.csv_rows import ROW_NUMBER, BadRow, TextRows, columns_of, quoted, require_columns
from sensorbench.dataset.dataset import Dataset, DatasetWriter, Description
from sensorbench.dataset.staging import Location, Staging
from sensorbench.errors import UsageError

PARQUET_SUFFIX = ".parquet"


class TimeColumn(toml_file.FileModel):
    """The column of the time of a reading, and how it is written."""

    column: str
    format: str | None = None
    unit: Literal["s", "ms", "us"] | None = None
    zone: str | None = None

    @model_validator(mode="after")
    def _one_way(self) -> "TimeColumn":
        if self.format and self.unit:
            raise ValueError("give either format (text) or unit (numbers since 1970), not both")
        return self

    def sql(self) -> str:
        """The time in UTC, or null where the cell is none."""
        text = quoted(self.column)
        if self.unit:
            scale = {"s": 1e6, "ms": 1e3, "us": 1.0}[self.unit]
            return f"try(make_timestamp(CAST(round(TRY_CAST({text} AS DOUBLE) * {scale}) AS BIGINT)))"
        if self.format:
            local = f"try_strptime({text}, {_literal(self.format)})"
        elif self.zone:
            local = f"TRY_CAST({text} AS TIMESTAMP)"
        else:
            # A time with an offset is turned to UTC, one without is UTC already.
            return f"(TRY_CAST({text} AS TIMESTAMPTZ) AT TIME ZONE 'UTC')"
        return f"(({local} AT TIME ZONE {_literal(self.zone)}) AT TIME ZONE 'UTC')" if self.zone else local


class Mapping(toml_file.FileModel):
    """A mapping file."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    title: str = ""
    source: str = "the user's own files"
    license: str = "not told"
    site_is: str = "site"
    zone_is: str = "zone"
    files: list[str] = Field(min_length=1)
    time: TimeColumn
    site: int | str = 1
    zone: int | str = 1
    sensor: str | None = None
    value: str | None = None
    sensors: dict[str, str] = {}
    missing: list[str] = ["NA"]
    bad_rows: Literal["refuse", "skip"] = "refuse"

    @model_validator(mode="after")
    def _long_or_wide(self) -> "Mapping":
        is_long = self.sensor is not None and self.value is not None
        if is_long == bool(self.sensors) or (self.sensor is None) != (self.value is None):
            raise ValueError("give either sensor and value (one reading a row) or sensors (one column a sensor)")
        return self

    @property
    def columns(self) -> list[str]:
        """The columns that the files must have."""
        named = [self.time.column, *(name for name in (self.site, self.zone, self.sensor, self.value) if isinstance(name, str))]
        return [*named, *self.sensors.values()]


def import_mapping(mapping_file: Path, files: list[Path], out: Path, *, skip_bad_rows: bool) -> Dataset:
    """Imports the files of a mapping, or those given instead."""
    mapping = toml_file.load(mapping_file, Mapping)
    files = files or matching_files(mapping_file, mapping)
    staging = Staging()
    staging.connection.execute(
        "CREATE TABLE named (site VARCHAR, zone VARCHAR, sensor VARCHAR, time TIMESTAMP, value DOUBLE, file_number INTEGER, row_number BIGINT)"
    )
    for file in files:
        _stage(staging, mapping, file)
    staging.bad_rows.refuse_or_keep_count(skip=skip_bad_rows or mapping.bad_rows == "skip")
    locations = _number_places(staging)
    writer = DatasetWriter(out)
    notes = staging.write(writer, locations)
    description = Description(
        name=mapping.name,
        title=mapping.title or mapping.name,
        generated=False,
        source=mapping.source,
        license=mapping.license,
        how_made=f"Imported from {len(files)} files as {mapping_file.name} says. Cells that are empty, NaN or one of {mapping.missing} are absent.",
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
    digest = hashlib.sha256(mapping_file.read_bytes())
    for file in matching_files(mapping_file, mapping):
        state = file.stat()
        digest.update(f"{file.resolve()} {state.st_size} {state.st_mtime_ns}".encode())
    return digest.hexdigest()[:16]


def _literal(text: str) -> str:
    """Text as an SQL literal. For words of a mapping that DuckDB takes only as literals."""
    return "'" + text.replace("'", "''") + "'"


def _stage(staging: Staging, mapping: Mapping, file: Path) -> None:
    """Adds the readings of one file, places by name."""
    file_number = staging.next_file()
    table = f"file_{file_number}"
    rows = (
        _ParquetRows(staging.connection, table, file, mapping)
        if file.suffix == PARQUET_SUFFIX
        else _csv_rows(staging, table, file, mapping)
    )
    time_sql = mapping.time.sql()
    staging.check_times(rows, time_sql, [mapping.time.column])
    cells: list[tuple[str | None, str]] = [*mapping.sensors.items()] or [(None, mapping.value or "")]
    for sensor, column in cells:
        staging.check_numbers(rows, column, mapping.missing)
        sensor_sql = _literal(sensor) if sensor is not None else quoted(mapping.sensor or "")
        number_sql = f"TRY_CAST({quoted(column)} AS DOUBLE)"
        staging.connection.execute(
            f"""
            INSERT INTO named
            SELECT {_place(mapping.site)}, {_place(mapping.zone)}, {sensor_sql}, {time_sql}, {number_sql}, $file_number, {ROW_NUMBER}
            FROM {table}
            WHERE NOT list_contains($missing, {quoted(column)}) AND {number_sql} IS NOT NULL AND NOT isnan({number_sql}) AND ({time_sql}) IS NOT NULL
              AND {sensor_sql} IS NOT NULL AND {_place(mapping.site)} IS NOT NULL AND {_place(mapping.zone)} IS NOT NULL
            """,
            {"file_number": file_number, "missing": mapping.missing},
        )
    staging.connection.execute(f"DROP TABLE {table}")


def _place(place: int | str) -> str:
    return f"'{place}'" if isinstance(place, int) else quoted(place)


def _csv_rows(staging: Staging, table: str, file: Path, mapping: Mapping) -> TextRows:
    require_columns(file, columns_of(file), mapping.columns)
    return TextRows(staging.connection, table, file, staging.bad_rows)


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
        texts = ", ".join(f"CAST({quoted(name)} AS VARCHAR) AS {quoted(name)}" for name in dict.fromkeys(mapping.columns))
        rows.project(f"row_number() OVER () AS {ROW_NUMBER}, {texts}").to_table(table)

    def bad_cell(self, row_number: int, column: str, value: str, expected: str) -> BadRow:
        """A cell of a row that is not what was expected; rows count from 1."""
        return BadRow(str(self._file), row_number, column, value, expected)


def _number_places(staging: Staging) -> list[Location]:
    """Gives numbers to sites and zones: their own if all are whole numbers, else those of their names in order."""
    connection = staging.connection
    for place in ("site", "zone"):
        is_numeric = (
            connection.sql(f"SELECT count(*) FROM named WHERE TRY_CAST({place} AS INTEGER) IS NULL").fetchall()[0][0] == 0
        )
        number = f"CAST({place} AS INTEGER)" if is_numeric else f"dense_rank() OVER (ORDER BY {place})"
        connection.execute(
            f"CREATE TABLE {place}_numbers AS SELECT {place} AS name, CAST({number} AS INTEGER) AS number FROM (SELECT DISTINCT {place} FROM named)"
        )
    connection.execute(
        """
        INSERT INTO staged
        SELECT site_numbers.number, zone_numbers.number, sensor, time, value, file_number, row_number
        FROM named JOIN site_numbers ON site = site_numbers.name JOIN zone_numbers ON zone = zone_numbers.name
        """
    )
    named = connection.sql(
        """
        SELECT DISTINCT site_numbers.number, zone_numbers.number, site, zone
        FROM named JOIN site_numbers ON site = site_numbers.name JOIN zone_numbers ON zone = zone_numbers.name ORDER BY ALL
        """
    ).fetchall()
    return [Location(site, zone, f"{site_name} / {zone_name}") for site, zone, site_name, zone_name in named]
