"""Datasets: built-in ones and your own."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import duckdb
import pyarrow as pa

from sensorbench.api import html
from sensorbench.api.errors import own_errors
from sensorbench.api.progress import ShowProgress, reporter_for
from sensorbench.dataset import GENERATED, SHIPPED, open_dataset
from sensorbench.dataset import Dataset as OnDisk
from sensorbench.dataset.export import export
from sensorbench.dataset.mapping import Mapping as ColumnMapping
from sensorbench.dataset.mapping import TimeColumn
from sensorbench.dataset.registry import import_described
from sensorbench.errors import UsageError
from sensorbench.options import DEFAULT_SEED


class Dataset:
    """A dataset: named relations, stored in a folder of Parquet files. Created by `open` and `from_csv`.

    To use it in an experiment, name its folder (`dataset = "FOLDER"`). A copy of the folder is the same dataset: equal rows have equal
    fingerprints.

    Attributes:
        folder: the folder of the dataset.

    Examples:
        >>> import sensorbench as sb
        >>> dataset = sb.Dataset.open("beijing-air-quality", scale=0.02)
        >>> dataset.readings, list(dataset.relations)
        (61088, ['measurements', 'locations', 'text_measurements'])

    """

    def __init__(self, dataset: OnDisk) -> None:
        self.folder = dataset.folder
        self._dataset = dataset

    @staticmethod
    def names() -> tuple[str, ...]:
        """Returns the names of the built-in datasets. Some are in the package, others are generated.

        Returns:
            Names that `open` accepts.

        Examples:
            >>> import sensorbench as sb
            >>> "beijing-air-quality" in sb.Dataset.names()
            True

        """
        return tuple(sorted({*SHIPPED, *GENERATED}))

    @classmethod
    def open(cls, name: str | Path, *, scale: float = 1.0, seed: int = DEFAULT_SEED, progress: ShowProgress = False) -> "Dataset":
        """Opens a dataset. Generated and imported datasets are created in the cache on first use.

        Args:
            name: name of a built-in dataset, folder of a dataset, or a mapping file (.toml).
            scale: share of the dataset to use, above 0 and at most 1: of its span, its sensors or its articles.
            seed: seed for generated data.
            progress: True prints progress to standard error; a function is called with each event.

        Returns:
            The dataset.

        Raises:
            UsageError: if the dataset is unknown, the scale is out of range, or files are invalid.

        Examples:
            >>> import sensorbench as sb
            >>> sb.Dataset.open("beijing-air-quality").interval_s
            3600.0

        """
        with own_errors():
            return cls(open_dataset(str(name), scale=scale, seed=seed, reporter=reporter_for(progress)))

    @classmethod
    def from_csv(
        cls,
        files: str | Path | Sequence[str | Path],
        *,
        name: str,
        time: str | Sequence[str],
        sensors: Mapping[str, str] | None = None,
        sensor: str | None = None,
        value: str | None = None,
        text_sensors: Mapping[str, str] | Sequence[str] = (),
        site: int | str = 1,
        zone: int | str = 1,
        time_format: str | None = None,
        time_unit: Literal["s", "ms", "us"] | None = None,
        time_zone: str | None = None,
        missing: Sequence[str] = ("NA",),
        decimal: Literal[".", ","] = ".",
        thousands: Literal[",", ".", " ", "'"] | None = None,
        encoding: str = "utf-8",
        bad_rows: Literal["refuse", "skip"] = "refuse",
        title: str = "",
        source: str = "the user's own files",
        license: str = "not stated",
        out: str | Path | None = None,
        progress: ShowProgress = False,
    ) -> "Dataset":
        r"""Imports your own CSV or Parquet files. The arguments correspond to the keys of a mapping file.

        Args:
            files: a file, or several.
            name: name of the dataset: letters, digits, `_`, `.` and `-`.
            time: the timestamp column; or the columns for year, month, day and optionally hour, minute and second.
            sensors: name of sensor → column, for files with several sensors per row. Give either this, or `sensor` and `value`.
            sensor: the column with the sensor's name, for files with one reading per row.
            value: the column with the value, for files with one reading per row.
            text_sensors: sensors with text values: name of sensor → column for files with several sensors per row, else a list of names.
            site: a number for all rows, or a column name.
            zone: a number for all rows, or a column name.
            time_format: strptime format of timestamps; ISO 8601 if None.
            time_unit: unit of numeric timestamps since 1970.
            time_zone: time zone of timestamps without an offset; UTC if None.
            missing: strings that mean "no value"; empty cells and NaN always do.
            decimal: decimal separator of values.
            thousands: thousands separator of values; none if None.
            encoding: encoding of CSV files; a Python codec name.
            bad_rows: `refuse`: import nothing if any row is invalid; `skip`: skip and count invalid rows.
            title: title of the dataset; its name if empty.
            source: origin of the data, for reports.
            license: license of the data, for reports.
            out: the folder for the dataset, which must be empty or not exist; if None, files are imported into the cache once.
            progress: True prints progress to standard error; a function is called with each event.

        Returns:
            The dataset.

        Raises:
            UsageError: if files are missing or invalid, rows are invalid and not skipped, or `out` is not empty.

        Examples:
            >>> import sensorbench as sb
            >>> from pathlib import Path
            >>> lines = ["at,temperature", "2024-01-01 00:00,3.5", "2024-01-01 01:00,3.1"]
            >>> _ = Path("weather.csv").write_text("\n".join(lines))
            >>> dataset = sb.Dataset.from_csv("weather.csv", name="weather", time="at", sensors={"temperature": "temperature"})
            >>> dataset.table().column("value").to_pylist()
            [3.5, 3.1]

        """
        paths = [Path(file) for file in ([files] if isinstance(files, str | Path) else files)]
        with own_errors():
            described = ColumnMapping(
                name=name,
                title=title,
                source=source,
                license=license,
                files=[str(path) for path in paths],
                time=TimeColumn(
                    column=time if isinstance(time, str) else None,
                    columns=None if isinstance(time, str) else list(time),
                    format=time_format,
                    unit=time_unit,
                    zone=time_zone,
                ),
                site=site,
                zone=zone,
                sensor=sensor,
                value=value,
                sensors=dict(sensors or {}),
                text_sensors=dict(text_sensors) if isinstance(text_sensors, Mapping) else list(text_sensors),
                missing=list(missing),
                decimal=decimal,
                thousands=thousands,
                encoding=encoding,
                bad_rows=bad_rows,
            )
            return cls(import_described(described, paths, None if out is None else Path(out), reporter_for(progress)))

    @property
    def name(self) -> str:
        """The name of the dataset."""
        return self._dataset.name

    @property
    def title(self) -> str:
        """The title of the dataset."""
        return self._dataset.describe().title

    @property
    def fingerprint(self) -> str:
        """A hash of the content: equal for equal rows."""
        return self._dataset.describe().fingerprint

    @property
    def readings(self) -> int:
        """The number of readings, log records or articles."""
        return self._dataset.describe().readings

    @property
    def relations(self) -> Mapping[str, int]:
        """The number of rows of each relation, by name."""
        return MappingProxyType({name: relation.rows for name, relation in self._dataset.describe().relations.items()})

    @property
    def span(self) -> tuple[datetime, datetime] | None:
        """The first and last timestamp: UTC, without time zone; None for articles."""
        described = self._dataset.describe()
        first, last = described.first_time, described.last_time
        return None if first is None or last is None else (first, last)

    @property
    def interval_s(self) -> float | None:
        """The sampling interval in s: the median time between two readings of a sensor; None if there is none."""
        return self._dataset.describe().interval_s

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes from the import, such as skipped rows."""
        return tuple(self._dataset.describe().notes)

    def query(self, sql: str) -> pa.Table:
        """Runs a DuckDB SQL query over the relations. Timestamps are UTC.

        Args:
            sql: the query. Use the names in `relations` as table names.

        Returns:
            The answer as an Arrow table, in memory.

        Raises:
            UsageError: if DuckDB rejects the query.

        Examples:
            >>> import sensorbench as sb
            >>> dataset = sb.Dataset.open("beijing-air-quality")
            >>> dataset.query("SELECT count(DISTINCT sensor) AS sensors FROM measurements").to_pylist()
            [{'sensors': 11}]

        """
        try:
            with self._dataset.connect() as connection:
                return connection.sql(sql).to_arrow_table()
        except duckdb.Error as error:
            raise UsageError(f"query of dataset {self.name}: {error}") from error

    def table(self, relation: str | None = None) -> pa.Table:
        """Returns all rows of a relation as an Arrow table, in memory. Use `query` to select fewer.

        Args:
            relation: name of the relation; the readings if None.

        Returns:
            The rows, in stored order.

        Raises:
            UsageError: if the relation does not exist.

        """
        name = relation or next(iter(self.relations))
        if name not in self.relations:
            raise UsageError(f"dataset {self.name} has no relation {name!r}; expected one of {', '.join(self.relations)}")
        return self.query(f'SELECT * FROM "{name}"')

    def export(self, form: Literal["csv", "parquet", "influx"], out: str | Path) -> tuple[Path, ...]:
        """Exports the relations for other tools.

        Args:
            form: `csv`, `parquet`, or `influx` (line protocol).
            out: the folder, which must be empty or not exist.

        Returns:
            Paths of the files.

        Raises:
            UsageError: if the format is unknown, or the folder is not empty.

        Examples:
            >>> import sensorbench as sb
            >>> files = sb.Dataset.open("beijing-air-quality", scale=0.02).export("csv", "files")
            >>> sorted(file.name for file in files)
            ['locations.csv', 'measurements.csv', 'text_measurements.csv']

        """
        with own_errors():
            return tuple(export(self._dataset, form, Path(out)))

    def __repr__(self) -> str:
        return f"<Dataset {self.name}: {self.readings:,} readings, {str(self.folder)!r}>"

    def _repr_html_(self) -> str:
        """The representation in a notebook."""
        span = self.span
        facts = (
            f"{self.readings:,} readings",
            *([f"{span[0]} to {span[1]}, a reading of a sensor every {self.interval_s:g} s"] if span and self.interval_s else []),
            *self.notes,
        )
        rows = ((name, f"{rows:,}") for name, rows in self.relations.items())
        return html.of_table(self.title, ("relation", "rows"), rows, facts)
