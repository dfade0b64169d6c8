"""Where imported rows are collected, one row per natural key, before they are written as a dataset."""

from dataclasses import dataclass

import pyarrow as pa

from sensorbench.dataset.csv_rows import ROW_NUMBER, quoted
from sensorbench.dataset.dataset import LOCATIONS, MEASUREMENT_SCHEMA, MEASUREMENTS, DatasetWriter
from sensorbench.dataset.importing import Intake, Rows, cast
from sensorbench.errors import UsageError
from sensorbench.wording import counted

# Readings whose values are text, such as the direction of wind.
TEXT_MEASUREMENTS = "text_measurements"
_TEXT_SCHEMA = pa.schema(
    [
        ("site", pa.int32()),
        ("zone", pa.int32()),
        ("sensor", pa.string()),
        ("time", pa.timestamp("us")),
        ("value", pa.dictionary(pa.int32(), pa.string())),
    ]
)


@dataclass(frozen=True)
class Series:
    """Whose readings a column holds."""

    site: int
    zone: int
    sensor: str


@dataclass(frozen=True)
class Location:
    """A location and its name."""

    site: int
    zone: int
    name: str
    source: str = ""


class Staging(Intake):
    """Readings of many files. The rule for several readings of one sensor at one time: the last one in file order stays."""

    def __init__(self) -> None:
        super().__init__()
        for table, value in (("staged", "DOUBLE"), ("staged_texts", "VARCHAR")):
            self.connection.execute(
                f"CREATE TABLE {table} (site INTEGER, zone INTEGER, sensor VARCHAR, time TIMESTAMP, value {value}, "
                "file_number INTEGER, row_number BIGINT)"
            )

    def check_numbers(
        self,
        rows: Rows,
        column: str,
        missing: list[str],
        condition: str = "true",
        name_sql: str = "''",
        number_sql: str = "",
    ) -> list[str]:
        """Adds rows whose cell is there and no number to the bad rows, of those that meet a condition. `number_sql` is the number
        in the cell, null if it is none; a number as SQL writes it if not given. Returns the names that such rows have by `name_sql`.
        """
        text = quoted(column)
        number = number_sql or f"TRY_CAST({text} AS DOUBLE)"
        is_bad = f"{text} IS NOT NULL AND NOT list_contains($missing, {text}) AND ({number}) IS NULL AND {condition}"
        self.add_bad_cells(rows, is_bad, text, column, "a number", missing=missing)
        query = f"SELECT DISTINCT {name_sql} AS name FROM {quoted(rows.table)} WHERE {is_bad} AND {name_sql} IS NOT NULL ORDER BY name"
        return [name for (name,) in self.connection.sql(query, params={"missing": missing}).fetchall()]

    def add_wide(self, rows: Rows, file_number: int, columns: dict[str, Series], time_sql: str, missing: list[str]) -> None:
        """Adds the readings of a file with one column a sensor. Empty cells, NaN and those in `missing` are not readings."""
        for column in columns:
            self.check_numbers(rows, column, missing)
        if columns:
            self._unpivot(rows, file_number, columns, time_sql, missing)

    def _unpivot(self, rows: Rows, file_number: int, columns: dict[str, Series], time_sql: str, missing: list[str]) -> None:
        names = pa.table(
            {
                "column_name": list(columns),
                "site": [series.site for series in columns.values()],
                "zone": [series.zone for series in columns.values()],
                "sensor": [series.sensor for series in columns.values()],
            }
        )
        self.connection.register("series_of_columns", names)
        listed = ", ".join(quoted(column) for column in columns)
        self.connection.execute(
            f"""
            INSERT INTO staged
            SELECT CAST(site AS INTEGER), CAST(zone AS INTEGER), sensor, time, value, $file_number, {ROW_NUMBER}
            FROM (
                SELECT {ROW_NUMBER}, time, column_name, TRY_CAST(cell AS DOUBLE) AS value
                FROM (UNPIVOT (SELECT {ROW_NUMBER}, ({time_sql}) AS time, {listed} FROM {quoted(rows.table)}) ON {listed} INTO NAME column_name VALUE cell)
                WHERE NOT list_contains($missing, cell)
            ) JOIN series_of_columns USING (column_name)
            WHERE value IS NOT NULL AND NOT isnan(value) AND time IS NOT NULL
            """,
            {"file_number": file_number, "missing": missing},
        )
        self.connection.unregister("series_of_columns")

    def locations(self) -> list[tuple[int, int]]:
        """Sites and zones that have readings."""
        return self.connection.sql("SELECT DISTINCT site, zone FROM staged ORDER BY ALL").fetchall()

    def write(self, writer: DatasetWriter, locations: list[Location]) -> list[str]:
        """Writes measurements and locations; returns what should be noted."""
        staged, kept = self.connection.sql("SELECT count(*), count(DISTINCT (site, zone, sensor, time)) FROM staged").fetchall()[
            0
        ]
        if staged == 0:
            raise UsageError("the files hold no reading at all; nothing was written")
        writer.add(MEASUREMENTS, MEASUREMENT_SCHEMA, cast(self._sorted_rows(), MEASUREMENT_SCHEMA))
        write_locations(writer, locations)
        return self.notes(staged - kept, "another reading has the same sensor and time")

    def write_texts(self, writer: DatasetWriter) -> list[str]:
        """Writes the readings whose values are text; returns what should be noted."""
        (staged,) = self.connection.sql("SELECT count(*) FROM staged_texts").fetchall()[0]
        kept = self.connection.sql(_last_of_each("staged_texts")).to_arrow_table().cast(_TEXT_SCHEMA)
        writer.add_table(TEXT_MEASUREMENTS, kept)
        dropped = staged - kept.num_rows
        return (
            [f"{counted(dropped, 'text')} left out: another text has the same sensor and time; the last in file order was kept"]
            if dropped
            else []
        )

    def _sorted_rows(self) -> pa.RecordBatchReader:
        return self.connection.cursor().sql(_last_of_each("staged")).to_arrow_reader(1_000_000)


def _last_of_each(table: str) -> str:
    """The last reading of each sensor and time, in order."""
    return f"""
        SELECT site, zone, sensor, time, value FROM {table}
        QUALIFY row_number() OVER (PARTITION BY site, zone, sensor, time ORDER BY file_number DESC, row_number DESC) = 1
        ORDER BY site, zone, sensor, time
    """


def write_locations(writer: DatasetWriter, locations: list[Location]) -> None:
    """Writes the relation of locations."""
    table = {
        "site": pa.array([location.site for location in locations], pa.int32()),
        "zone": pa.array([location.zone for location in locations], pa.int32()),
        "name": pa.array([location.name for location in locations], pa.string()),
    }
    if any(location.source for location in locations):
        table["source"] = pa.array([location.source for location in locations], pa.string())
    writer.add_table(LOCATIONS, pa.table(table))
