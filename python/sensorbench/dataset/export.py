"""Writing a dataset in forms that other tools read: CSV, Parquet, Influx line protocol."""

from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pyarrow as pa

from sensorbench.dataset.dataset import MEASUREMENTS, Dataset
from sensorbench.errors import UsageError

ROWS_A_BATCH = 100_000


def export(dataset: Dataset, form: str, out: Path) -> list[Path]:
    """Writes the relations of a dataset into a folder; returns the files."""
    if form not in FORMS:
        raise UsageError(f"--format {form}: expected one of {', '.join(FORMS)}")
    if out.exists() and any(out.iterdir()):
        raise UsageError(f"{out} is not empty; name another folder with --out")
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
    """One point a reading: tags site, zone and sensor, field value, time in nanoseconds."""
    file = out / f"{MEASUREMENTS}.lp"
    with file.open("w", encoding="utf-8") as lines:
        for batch in connection.table(MEASUREMENTS).to_arrow_reader(ROWS_A_BATCH):
            lines.writelines(_points(batch))
    return [file]


def _points(batch: pa.RecordBatch) -> Iterator[str]:
    columns = [
        batch.column(name).cast(pa.int64() if name == "time" else batch.column(name).type).to_pylist()
        for name in ("site", "zone", "sensor", "time", "value")
    ]
    for site, zone, sensor, time_us, value in zip(*columns, strict=True):
        yield f"{MEASUREMENTS},site={site},zone={zone},sensor={_tag(sensor)} value={value!r} {time_us}000\n"


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
