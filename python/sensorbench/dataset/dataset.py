"""What a dataset is: a folder of Parquet relations and a description of where they come from."""

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict

from sensorbench.dataset.generated import Generated, RowsInParts, WriteFiles, WrittenFile, files_of
from sensorbench.dataset.parquet import ROWS_A_GROUP, SUFFIX, parquet_options
from sensorbench.errors import UsageError
from sensorbench.wording import counted

DESCRIPTION_FILE = "dataset.json"
KNOWN_ANSWERS_FILE = "known_answers.toml"
FORMAT = 1

MEASUREMENTS = "measurements"
LOCATIONS = "locations"
LOG = "log"
ARTICLES = "articles"
CPU = "cpu"
TRAFFIC = "traffic"
# Relations that the parameters of fitted traffic are drawn from begin with it.
VALUES_PREFIX = "values_"

MEASUREMENT_SCHEMA = pa.schema(
    [
        pa.field("site", pa.int32(), nullable=False),
        pa.field("zone", pa.int32(), nullable=False),
        pa.field("sensor", pa.dictionary(pa.int32(), pa.string()), nullable=False),
        pa.field("time", pa.timestamp("us"), nullable=False),
        pa.field("value", pa.float64(), nullable=False),
    ]
)

# A log's records take time: they have a begin and an end. They are distinguished by machine, sensor and begin.
LOG_SCHEMA = pa.schema(
    [
        pa.field("machine", pa.int32(), nullable=False),
        pa.field("sensor", pa.int32(), nullable=False),
        pa.field("begin_time", pa.timestamp("us"), nullable=False),
        pa.field("end_time", pa.timestamp("us"), nullable=False),
        pa.field("value", pa.float64(), nullable=False),
    ]
)

# Articles are numbered from 1 on without a gap. Arrow's large strings are what DatasetWriter keeps no dictionary of.
ARTICLE_SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("title", pa.string(), nullable=False),
        pa.field("text", pa.large_string(), nullable=False),
    ]
)


@dataclass(frozen=True)
class Readings:
    """The relation that a dataset has its readings in: its name, the columns that name a sensor, and the column of the time.
    Articles have none: each is named by its number. A reading of a wide relation has a value in each of the other columns, but in
    those that `valueless` names. `beside` are further relations of the same key, whose rows are readings, too.
    """

    relation: str
    series: tuple[str, ...]
    time: str | None
    is_wide: bool = False
    valueless: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that name a reading."""
        return self.series if self.time is None else (*self.series, self.time)

    @property
    def relations(self) -> tuple[str, ...]:
        """All relations that have readings."""
        return (self.relation, *self.beside)


# A dataset has one of these, the first that is there.
# The operations of fitted traffic. Its dataset has the user's own tables besides, which may be called like any of the others.
TRAFFIC_READINGS = Readings(TRAFFIC, ("operation",), None)
MEASUREMENT_READINGS = Readings(MEASUREMENTS, ("site", "zone", "sensor"), "time")
LOG_READINGS = Readings(LOG, ("machine", "sensor"), "begin_time")
ARTICLE_READINGS = Readings(ARTICLES, ("id",), None)
# Rows of TSBS, each with all metrics of a host at a time: its CPU alone, or what else there is of a server, too.
CPU_READINGS = Readings(CPU, ("site", "zone"), "time", is_wide=True)
SERVER_READINGS = Readings(
    CPU,
    ("site", "zone"),
    "time",
    is_wide=True,
    beside=("diskio", "disk", "kernel", "mem", "net", "nginx", "postgresl", "redis"),
)
# Rows of TSBS's trucks, and their numbers in the order of arrival over both relations.
TRUCK_READINGS = Readings("readings", ("site", "zone"), "time", is_wide=True, valueless=("arrival",), beside=("diagnostics",))
# Rows of TSM-Bench, each with all sensors of a station at a time.
STATION_READINGS = Readings("stations", ("site",), "time", is_wide=True)
READINGS = (
    TRAFFIC_READINGS,
    MEASUREMENT_READINGS,
    LOG_READINGS,
    ARTICLE_READINGS,
    SERVER_READINGS,
    CPU_READINGS,
    TRUCK_READINGS,
    STATION_READINGS,
)


def readings_of(relations: Iterable[str]) -> Readings:
    """The one of a dataset with these relations."""
    names = set(relations)
    return next(readings for readings in READINGS if names.issuperset(readings.relations))


def workbench() -> duckdb.DuckDBPyConnection:
    """A DuckDB connection whose times are UTC whatever the machine's are."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    # DuckDB takes what comes from unnest for a few rows, and compares each of them with all others: 4.6 s instead of 0.04 s for a day of q5 of TSM-Bench.
    connection.execute("SET asof_loop_join_threshold = 0")
    return connection


class Relation(BaseModel):
    """One relation: a Parquet file in the dataset's folder, or several by a pattern, whose order is that of their names."""

    model_config = ConfigDict(frozen=True)

    file: str
    rows: int
    columns: dict[str, str]


class Description(BaseModel):
    """What `data describe` says of a dataset."""

    model_config = ConfigDict(frozen=True)

    format: int = FORMAT
    name: str
    title: str
    generated: bool
    source: str
    license: str
    how_made: str
    site_is: str = "site"
    zone_is: str = "zone"
    seed: int | None = None
    scale: float = 1.0
    first_time: datetime | None = None
    last_time: datetime | None = None
    interval_s: float | None = None
    notes: list[str] = []
    # What an importer counted in its files, in the words of their format.
    counted: dict[str, int | bool | list[str]] = {}
    relations: dict[str, Relation] = {}
    # SQL over relations, by name: what the rows of a relation are in another form.
    views: dict[str, str] = {}
    fingerprint: str = ""

    @property
    def readings(self) -> int:
        """How many readings there are: measurements, records of a log, or articles; of fitted traffic, rows of the user's own tables."""
        relations = self._own_tables if TRAFFIC in self.relations else readings_of(self.relations).relations
        return sum(self.relations[name].rows for name in relations)

    @property
    def extent(self) -> str:
        """How much there is, in words."""
        if TRAFFIC not in self.relations:
            return f"{self.readings:,} readings"
        tables, operations = len(self._own_tables), self.relations[TRAFFIC].rows
        own = f"{counted(self.readings, 'row')} in {counted(tables, 'table')}"
        return f"{own}, for {counted(operations, 'operation')} of recorded traffic"

    @property
    def _own_tables(self) -> list[str]:
        return [name for name in self.relations if name != TRAFFIC and not name.startswith(VALUES_PREFIX)]

    @property
    def values(self) -> int:
        """How many values they have, of which some may be null: the metrics of rows of wide relations, else one of each."""
        readings = readings_of(self.relations)
        if not readings.is_wide:
            return self.readings
        others = len(readings.key) + len(readings.valueless)
        return sum(
            relation.rows * (len(relation.columns) - others) for relation in map(self.relations.__getitem__, readings.relations)
        )

    @property
    def values_per_reading(self) -> int | float:
        """How many values each of them has, or has in the mean where there are relations of several widths."""
        mean = self.values / self.readings if self.readings else 1.0
        return int(mean) if mean.is_integer() else mean


class Dataset:
    """A dataset on disk."""

    def __init__(self, folder: Path, description: Description, scale: float = 1.0) -> None:
        self.folder = folder
        self._description = description
        self._scale = scale

    @classmethod
    def at(cls, folder: Path, scale: float = 1.0) -> "Dataset":
        """The dataset in a folder. With `scale` below 1, only the first part of its span is used, or of its articles."""
        try:
            description = Description.model_validate_json((folder / DESCRIPTION_FILE).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise UsageError(
                f"{folder}: no dataset is there ({DESCRIPTION_FILE} is missing); make one with `sensorbench data import`"
            ) from None
        except ValueError as error:
            raise UsageError(f"{folder / DESCRIPTION_FILE}: {error}") from None
        if description.format > FORMAT:
            raise UsageError(
                f"{folder}: written by a newer version of sensorbench (format {description.format}); this one reads {FORMAT}"
            )
        return cls(folder, description, scale)

    @property
    def name(self) -> str:
        """Its name."""
        return self._description.name

    @property
    def scale(self) -> float:
        """Which share of the whole is there: of the dataset as it was made, and of that as it is used."""
        return self._description.scale * self._scale

    @property
    def fingerprint(self) -> str:
        """Equal for equal rows."""
        return self._description.fingerprint if self._scale == 1.0 else f"{self._description.fingerprint}-{self._scale:g}"

    @property
    def known_answers_file(self) -> Path | None:
        """Answers that were computed by hand, if there are any."""
        path = self.folder / KNOWN_ANSWERS_FILE
        return path if path.exists() else None

    def connect(self) -> duckdb.DuckDBPyConnection:
        """A DuckDB connection in which each relation is a view, and those of the dataset are; and usual_step(), for the SQL of parameter sources, a macro."""
        connection = workbench()
        readings = readings_of(self._description.relations)
        for name, relation in self._description.relations.items():
            rows = connection.read_parquet(str(self.folder / relation.file))
            if self._scale < 1.0 and readings.time in relation.columns:
                rows = rows.filter(f"{readings.time} < TIMESTAMP '{self._end().isoformat()}'")
            elif self._scale < 1.0 and readings.time is None and name == readings.relation:
                rows = rows.filter(f"{readings.series[0]} <= {math.ceil(self._scale * relation.rows)}")
            rows.create_view(name)
        for name, query in self._description.views.items():
            connection.execute(f"CREATE VIEW {name} AS {query}")
        connection.execute(_default_step(readings))
        return connection

    def _end(self) -> datetime:
        first, last = self._description.first_time, self._description.last_time
        if first is None or last is None:
            raise UsageError(f"dataset {self.name} has no span of time, so that it cannot be scaled")
        return first + (last - first) * self._scale

    def describe(self) -> Description:
        """The description, of what is used: rows and span after scaling."""
        return self._description if self._scale == 1.0 else self._scaled_description

    @cached_property
    def _scaled_description(self) -> Description:
        """Rows are counted once: a dataset on disk does not change, and it is described for each run."""
        with self.connect() as connection:
            rows = {name: connection.table(name).count("*").fetchall()[0][0] for name in self._description.relations}
            first, last = _span(connection, readings_of(self._description.relations))
        relations = {
            name: relation.model_copy(update={"rows": rows[name]}) for name, relation in self._description.relations.items()
        }
        changes = {
            "relations": relations,
            "scale": self.scale,
            "first_time": first,
            "last_time": last,
            "fingerprint": self.fingerprint,
        }
        return self._description.model_copy(update=changes)


class RelationWriter:
    """Writes the batches of a relation, and counts their rows."""

    def __init__(self, parquet: pq.ParquetWriter) -> None:
        self._parquet = parquet
        self.rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Writes a batch."""
        self._parquet.write_batch(batch, row_group_size=ROWS_A_GROUP)
        self.rows += batch.num_rows


class DatasetWriter:
    """Writes a dataset into a folder; the description comes last, so that a folder with one is whole."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._relations: dict[str, Relation] = {}
        self._views: dict[str, str] = {}
        self._generated: dict[str, list[WrittenFile]] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def add(self, name: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
        """Writes a relation, and returns the number of its rows."""
        with self.writing(name, schema) as relation:
            for batch in batches:
                relation.write(batch)
        return relation.rows

    @contextmanager
    def writing(self, name: str, schema: pa.Schema) -> Iterator["RelationWriter"]:
        """Writes a relation batch by batch, beside others."""
        file = f"{name}{SUFFIX}"
        with pq.ParquetWriter(self._folder / file, schema, **parquet_options(schema)) as parquet:
            writer = RelationWriter(parquet)
            yield writer
        self._add_relation(name, file, writer.rows, schema)

    def add_generated(
        self, readings: Readings, schema: pa.Schema, generator: Callable[[], RowsInParts], write: WriteFiles
    ) -> None:
        """Has readings generated and written, by `write`, which may send `generator` elsewhere."""
        name, files = readings.relation, files_of(readings.relation, generator().parts)
        (self._folder / files[0].place).parent.mkdir(exist_ok=True)
        written = self._generated[name] = write(Generated(name, generator, schema, readings.time), self._folder, files)
        file = files[0].place if len(files) == 1 else f"{name}/*{SUFFIX}"
        self._add_relation(name, file, sum(file.rows for file in written), schema)

    def _add_relation(self, name: str, file: str, rows: int, schema: pa.Schema) -> None:
        self._relations[name] = Relation(file=file, rows=rows, columns={field.name: str(field.type) for field in schema})

    def add_view(self, name: str, query: str) -> None:
        """Has rows of relations in another form, by a query."""
        self._views[name] = query

    def add_table(self, name: str, table: pa.Table) -> None:
        """Writes a relation that is in memory."""
        self.add(name, table.schema, table.to_batches())

    def finish(self, description: Description) -> Dataset:
        """Writes the description, with what is known from the rows."""
        readings = readings_of(self._relations)
        facts = self._facts(readings)
        written = {"relations": self._relations, "views": self._views, "fingerprint": self._fingerprint()}
        description = description.model_copy(update={**facts, **written})
        text = json.dumps(description.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"
        (self._folder / DESCRIPTION_FILE).write_text(text, encoding="utf-8")
        return Dataset(self._folder, description)

    def _facts(self, readings: Readings) -> dict[str, Any]:
        """First and last time, and the interval; nothing if there are no times. Of generated readings, only the first file is
        read, however many there are.
        """
        if readings.time is None:
            return {}
        generated = self._generated.get(readings.relation)
        first_file = min(self._folder.glob(self._relations[readings.relation].file))
        with workbench() as connection:
            connection.read_parquet(str(first_file)).create_view(readings.relation)
            interval_s = _interval_s(connection, readings)
            first, last = _span(connection, readings) if generated is None else _span_of_files(generated)
        return {"first_time": first, "last_time": last, "interval_s": interval_s}

    def _fingerprint(self) -> str:
        digest = hashlib.sha256()
        for name, relation in sorted(self._relations.items()):
            digest.update(name.encode())
            for file_digest in self._file_digests(name, relation):
                digest.update(file_digest)
        return digest.hexdigest()[:16]

    def _file_digests(self, name: str, relation: Relation) -> list[bytes]:
        """The SHA-256 of each file of a relation. Nobody reads generated ones again for that."""
        if name in self._generated:
            return [file.sha256 for file in self._generated[name]]
        with (self._folder / relation.file).open("rb") as file:
            return [hashlib.file_digest(file, "sha256").digest()]


def _default_step(readings: Readings) -> str:
    """Makes a macro: the usual time between two readings of the first sensor, in µs; null if it has no two, or no times. It is
    computed where a query has it, from the readings as scaled.
    """
    if readings.time is None:
        return "CREATE MACRO usual_step() AS CAST(NULL AS BIGINT)"
    relation, time, series = readings.relation, readings.time, ", ".join(readings.series)
    return f"""
        CREATE MACRO usual_step() AS (
            SELECT mode(step) FROM (
                SELECT epoch_us(lead({time}) OVER (PARTITION BY {series} ORDER BY {time})) - epoch_us({time}) AS step
                FROM {relation} SEMI JOIN (SELECT {series} FROM {relation} LIMIT 1) USING ({series}))
            WHERE step > 0)
        """


def _span(connection: duckdb.DuckDBPyConnection, readings: Readings) -> tuple[datetime | None, datetime | None]:
    """First and last time, where there are times."""
    if readings.time is None:
        return None, None
    first, last = connection.sql(f"SELECT min({readings.time}), max({readings.time}) FROM {readings.relation}").fetchall()[0]
    return first, last


def _span_of_files(files: list[WrittenFile]) -> tuple[datetime | None, datetime | None]:
    firsts = [file.first_time for file in files if file.first_time is not None]
    lasts = [file.last_time for file in files if file.last_time is not None]
    return min(firsts, default=None), max(lasts, default=None)


def _interval_s(connection: duckdb.DuckDBPyConnection, readings: Readings) -> float | None:
    """The median interval between readings of one sensor."""
    relation, time, series = readings.relation, readings.time, ", ".join(readings.series)
    interval_s: float | None = connection.sql(
        f"""
        SELECT quantile_disc(epoch_us(next) - epoch_us({time}), 0.5) / 1e6 FROM (
            SELECT {time}, lead({time}) OVER (PARTITION BY {series} ORDER BY {time}) AS next
            FROM {relation} SEMI JOIN (SELECT {series} FROM {relation} LIMIT 1) USING ({series}))
        """
    ).fetchall()[0][0]
    return interval_s
