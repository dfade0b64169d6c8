"""Datasets: those that there are, and a user's own."""

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
    """A dataset: relations of rows, in a folder of Parquet files. `open` and `from_csv` make one.

    An experiment uses it by its folder (`dataset = "FOLDER"`), and so does whoever gets a copy of the folder: equal rows have equal
    fingerprints.

    Attributes:
        folder: where it is.

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
        """The names of the datasets that there are without files of your own: some are in the package, others are generated.

        Returns:
            Names that `open` takes.

        Examples:
            >>> import sensorbench as sb
            >>> "beijing-air-quality" in sb.Dataset.names()
            True

        """
        return tuple(sorted({*SHIPPED, *GENERATED}))

    @classmethod
    def open(cls, name: str | Path, *, scale: float = 1.0, seed: int = DEFAULT_SEED, progress: ShowProgress = False) -> "Dataset":
        """A dataset that is there, or that is generated or imported into the cache, once.

        Args:
            name: name of a dataset, the folder of one, or a mapping file (.toml).
            scale: share of the whole that is used, above 0 and at most 1: of the span, of the sensors, or of the articles.
            seed: seed of generated data.
            progress: whether progress is printed, or the function that is told.

        Returns:
            The dataset.

        Raises:
            UsageError: for a name that nothing has, a scale out of range, or files that do not fit.

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
        r"""Imports your own CSV or Parquet files. The arguments are the keys of a mapping file.

        Args:
            files: one file or several.
            name: what the dataset is called: letters, digits, `_`, `.` and `-`.
            time: the column of the time; or the columns of year, month, day and, where there are some, hour, minute and second.
            sensors: name of sensor → column, where each row has many sensors. Either this, or `sensor` and `value`.
            sensor: the column that names the sensor, where each row is one reading.
            value: the column of the value, where each row is one reading.
            text_sensors: sensors whose values are text: name of sensor → column where each row has many sensors, else their names.
            site: a number for all rows, or the name of a column.
            zone: a number for all rows, or the name of a column.
            time_format: how times are written, as strptime has it; ISO 8601 if None.
            time_unit: the unit of times that are numbers since 1970.
            time_zone: the time zone of times without an offset; UTC if None.
            missing: texts that mean "no value"; empty cells and NaN always do.
            decimal: the decimal sign of values.
            thousands: what parts groups of three digits in values; nothing if None.
            encoding: of CSV files, as Python names it.
            bad_rows: `refuse`: nothing is imported if any row is bad; `skip`: they are left out and counted.
            title: the headline; the name if empty.
            source: where the data are from, for reports.
            license: what may be done with them, for reports.
            out: the folder for the dataset, which must be empty or not there; the cache if None, where files are imported once.
            progress: whether progress is printed, or the function that is told.

        Returns:
            The dataset.

        Raises:
            UsageError: for files that are not there or do not fit, for bad rows that are not skipped, and for a folder that is not free.

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
        """Its name."""
        return self._dataset.name

    @property
    def title(self) -> str:
        """Its headline."""
        return self._dataset.describe().title

    @property
    def fingerprint(self) -> str:
        """Equal for equal rows."""
        return self._dataset.describe().fingerprint

    @property
    def readings(self) -> int:
        """How many readings it has, or records of a log, or articles."""
        return self._dataset.describe().readings

    @property
    def relations(self) -> Mapping[str, int]:
        """The number of rows of each relation, by its name."""
        return MappingProxyType({name: relation.rows for name, relation in self._dataset.describe().relations.items()})

    @property
    def span(self) -> tuple[datetime, datetime] | None:
        """The first and the last time, in UTC and without an offset; None for articles."""
        described = self._dataset.describe()
        first, last = described.first_time, described.last_time
        return None if first is None or last is None else (first, last)

    @property
    def interval_s(self) -> float | None:
        """The sampling interval in s: the median time between two readings of a sensor; None where there is none."""
        return self._dataset.describe().interval_s

    @property
    def notes(self) -> tuple[str, ...]:
        """What was noted when it was imported, such as rows that were left out."""
        return tuple(self._dataset.describe().notes)

    def query(self, sql: str) -> pa.Table:
        """The answer to a query over the relations, in the SQL of DuckDB; times are UTC.

        Args:
            sql: the query. The names of the relations are those of `relations`.

        Returns:
            The answer as an Arrow table; all of it is in memory.

        Raises:
            UsageError: for a query that DuckDB does not take.

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
        """The rows of a relation as an Arrow table; all of them are in memory, and `query` gives fewer.

        Args:
            relation: its name; the relation of the readings if None.

        Returns:
            The rows, in the order in which they are stored.

        Raises:
            UsageError: for a relation that is not there.

        """
        name = relation or next(iter(self.relations))
        if name not in self.relations:
            raise UsageError(f"dataset {self.name} has no relation {name!r}; expected one of {', '.join(self.relations)}")
        return self.query(f'SELECT * FROM "{name}"')

    def export(self, form: Literal["csv", "parquet", "influx"], out: str | Path) -> tuple[Path, ...]:
        """Writes the relations in a form that other tools read.

        Args:
            form: `csv`, `parquet`, or `influx` for line protocol.
            out: the folder, which must be empty or not there.

        Returns:
            The files.

        Raises:
            UsageError: for another form, and for a folder that is not free.

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
        """What a notebook shows."""
        span = self.span
        facts = (
            f"{self.readings:,} readings",
            *([f"{span[0]} to {span[1]}, a reading of a sensor every {self.interval_s:g} s"] if span and self.interval_s else []),
            *self.notes,
        )
        rows = ((name, f"{rows:,}") for name, rows in self.relations.items())
        return html.of_table(self.title, ("relation", "rows"), rows, facts)
