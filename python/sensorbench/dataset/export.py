"""Writing a dataset in forms that other tools read: CSV, Parquet, Influx line protocol."""

from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pyarrow as pa

from sensorbench.dataset.dataset import CPU_READINGS, SERVER_READINGS, TRUCK_READINGS, Dataset, Readings, readings_of
from sensorbench.dataset.tsbs_lines import lines_of_hosts, lines_of_servers, lines_of_trucks
from sensorbench.errors import UsageError
from sensorbench.paths import check_is_free

ROWS_A_BATCH = 100_000
# The lines of each use case, and the name of their file.
_OF_TSBS = {
    CPU_READINGS: (lines_of_hosts, "cpu"),
    SERVER_READINGS: (lines_of_servers, "devops"),
    TRUCK_READINGS: (lines_of_trucks, "readings"),
}


def export(dataset: Dataset, form: str, out: Path) -> list[Path]:
    """Writes the relations of a dataset into a folder.

    Args:
        dataset: what is written, at its scale.
        form: one of FORMS.
        out: the folder; it must be empty or not there.

    Returns:
        The files, one for each relation.

    Raises:
        UsageError: for another form, a folder that is not free, or a log that has no times as line protocol.

    """
    if form not in FORMS:
        raise UsageError(f"--format {form}: expected one of {', '.join(FORMS)}")
    if form == "influx" and readings_of(dataset.describe().relations).time is None:
        raise UsageError(f"--format influx: dataset {dataset.name} has no times, and points have one; expected csv or parquet")
    check_is_free(out)
    out.mkdir(parents=True, exist_ok=True)
    with dataset.connect() as connection:
        return FORMS[form](dataset, connection, out)


def _csv(dataset: Dataset, connection: duckdb.DuckDBPyConnection, out: Path) -> list[Path]:
    files = {name: out / f"{name}.csv" for name in dataset.describe().relations}
    for name, file in files.items():
        connection.table(name).to_csv(str(file), header=True)
    return list(files.values())


def _parquet(dataset: Dataset, connection: duckdb.DuckDBPyConnection, out: Path) -> list[Path]:
    files = {name: out / f"{name}.parquet" for name in dataset.describe().relations}
    for name, file in files.items():
        connection.table(name).to_parquet(str(file), compression="zstd")
    return list(files.values())


def _influx(dataset: Dataset, connection: duckdb.DuckDBPyConnection, out: Path) -> list[Path]:
    """One point a reading: tags that name its sensor, its other columns as fields, its time in nanoseconds. Metrics of servers and of trucks are
    written as TSBS writes them, with the tags of the server or truck; all measurements go into one file, in the order in which TSBS writes them.
    """
    readings = readings_of(dataset.describe().relations)
    if readings.time is None:
        raise AssertionError("what has no times is refused before")
    if readings in _OF_TSBS:
        lines_of, name = _OF_TSBS[readings]
        file = out / f"{name}.lp"
        with file.open("wb") as written:
            for text in lines_of(connection, ROWS_A_BATCH):
                written.write(text)
        return [file]
    file = out / f"{readings.relation}.lp"
    with file.open("w", encoding="utf-8") as lines:
        for batch in connection.table(readings.relation).to_arrow_reader(ROWS_A_BATCH):
            lines.writelines(_points(batch, readings, readings.time))
    return [file]


def _points(batch: pa.RecordBatch, readings: Readings, time: str) -> Iterator[str]:
    names = batch.schema.names
    for row in zip(*(_plain(column).to_pylist() for column in batch.columns), strict=True):
        cells = dict(zip(names, row, strict=True))
        tags = ",".join(f"{name}={_tag(str(cells[name]))}" for name in readings.series)
        # A field that is missing is left out, and so is a point without any.
        fields = ",".join(_field(name, cell) for name, cell in cells.items() if name not in readings.key and cell is not None)
        if fields:
            yield f"{readings.relation},{tags} {fields} {cells[time]}000\n"


def _plain(column: pa.Array) -> pa.Array:
    """A column whose times are whole numbers of microseconds."""
    return column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column


def _field(name: str, cell: float | int) -> str:
    """A field. Whole numbers are times: in nanoseconds, too, and with an i at their end."""
    return f"{name}={cell}000i" if isinstance(cell, int) else f"{name}={cell!r}"


def _tag(text: str) -> str:
    """A tag's value: commas, equals signs and blanks are escaped."""
    for character in (",", "=", " "):
        text = text.replace(character, f"\\{character}")
    return text


FORMS: dict[str, Callable[[Dataset, duckdb.DuckDBPyConnection, Path], list[Path]]] = {
    "csv": _csv,
    "parquet": _parquet,
    "influx": _influx,
}
