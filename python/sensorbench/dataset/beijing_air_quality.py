"""Beijing multi-site air quality: hourly readings of weather and air stations, 2013-03-01 to 2017-02-28.

The real sample in the package was made by `sensorbench data import beijing-air-quality PRSA_Data_*.csv` from the eight
stations' original files (UCI dataset 501).
"""

from pathlib import Path

from sensorbench.dataset.csv_rows import ROW_NUMBER, TextRows, columns_of, first_value, require_columns
from sensorbench.dataset.dataset import Dataset, DatasetWriter, Description
from sensorbench.dataset.staging import Location, Series, Staging

NAME = "beijing-air-quality"
SHIPPED_FOLDER = Path(__file__).parent / "beijing_air_quality"

SENSORS = ["PM2.5", "PM10", "SO2", "NO2", "CO", "O3", "TEMP", "PRES", "DEWP", "RAIN", "WSPM"]
TIME_COLUMNS = ["year", "month", "day", "hour"]
CITY = 1

DESCRIPTION = Description(
    name=NAME,
    title="Air quality and weather in Beijing, hourly, 2013 to 2017",
    generated=False,
    source="Chen, S. (2017). Beijing Multi-Site Air Quality. UCI Machine Learning Repository, dataset 501. DOI 10.24432/C5RK5G",
    license="CC BY 4.0",
    how_made=(
        "Imported from the original station files: each numeric column is a sensor, cells NA are absent, time is put together from four columns. "
        "The wind direction, which is text, is in the relation text_measurements."
    ),
    site_is="the city",
    zone_is="a station",
    notes=["Times are the stations' wall clock as printed; the source names no time zone. They are stored as if they were UTC."],
)

_NUMBER = "TRY_CAST({} AS BIGINT)"
TIME_SQL = "try(make_timestamp({}, {}, {}, {}, 0, 0.0))".format(*(_NUMBER.format(column) for column in TIME_COLUMNS))


def recognises(columns: list[str]) -> bool:
    """Whether a file with these columns is one of a station."""
    return {"station", "wd", *TIME_COLUMNS} <= set(columns)


def import_files(files: list[Path], out: Path, *, skip_bad_rows: bool) -> Dataset:
    """Imports original station files. Zones are numbered in the order of the stations' names."""
    staging = Staging()
    stations = _stations(staging, files)
    for file, (zone, _) in stations.items():
        rows = TextRows(staging.connection, f"file_{zone}", file, staging.bad_rows)
        staging.check_times(rows, TIME_SQL, TIME_COLUMNS)
        columns = {sensor: Series(CITY, zone, sensor) for sensor in SENSORS}
        file_number = staging.next_file()
        staging.add_wide(rows, file_number, columns, TIME_SQL, ["NA"])
        staging.connection.execute(
            f"INSERT INTO staged_texts SELECT {CITY}, {zone}, 'wd', {TIME_SQL}, wd, {file_number}, {ROW_NUMBER} FROM {rows.table} "
            f"WHERE wd <> 'NA' AND {TIME_SQL} IS NOT NULL"
        )
    staging.bad_rows.refuse_or_keep_count(skip=skip_bad_rows)
    writer = DatasetWriter(out)
    notes = staging.write(writer, [Location(CITY, zone, station) for zone, station in stations.values()])
    notes += staging.write_texts(writer)
    return writer.finish(DESCRIPTION.model_copy(update={"notes": DESCRIPTION.notes + notes}))


def _stations(staging: Staging, files: list[Path]) -> dict[Path, tuple[int, str]]:
    """Number and name of the station of each file."""
    names = {}
    for file in files:
        require_columns(file, columns_of(file), [*TIME_COLUMNS, *SENSORS, "wd", "station"])
        names[file] = first_value(file, "station") or file.stem
    numbers = {name: number for number, name in enumerate(sorted(set(names.values())), start=1)}
    return {file: (numbers[name], name) for file, name in sorted(names.items(), key=lambda item: item[1])}
