"""The file of a history: a DuckDB database with an ownership marker. What has no marker is never changed."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import duckdb

from sensorbench.errors import FailedError, UsageError
from sensorbench.history.tables import COLUMNS, FORMAT, MARKER, TABLES, columns_since
from sensorbench.results.files import whole_file
from sensorbench.results.history_entries import (
    DoctorFigures,
    HistoryFigure,
    HistoryHistogram,
    HistoryResult,
    HistoryVariant,
    ListedResult,
    StoredFigure,
)
from sensorbench.results.ownership import new_id

DEFAULT_STORE = Path("sensorbench-history.duckdb")


@dataclass(frozen=True)
class Added:
    """A result that was to go into a history, and whether it was there already."""

    result: HistoryResult
    is_new: bool


class HistoryStore:
    """An open history. Only one process has it open for writing. A file of an earlier format is read as it is, and becomes one of today when it is
    opened for writing.
    """

    def __init__(self, path: Path, connection: duckdb.DuckDBPyConnection, stored_format: int = FORMAT) -> None:
        self.path = path
        self.connection = connection
        # What an earlier format did not keep is not known.
        lacking = [name for table, name in columns_since(stored_format) if table == "results"]
        unknown = "".join(f", NULL::{COLUMNS['results'][name]} AS {name}" for name in lacking)
        self._all_figures = _ALL_FIGURES.format(results=f"(SELECT *{unknown} FROM results)" if lacking else "results")

    @classmethod
    def open(cls, path: Path, mode: Literal["read", "write"] = "read") -> "HistoryStore":
        """Opens a history; to write, one that is not there is made.

        Args:
            path: its file.
            mode: whether results are added.

        Raises:
            UsageError: for a file that is not there, is not a DuckDB database, is of a newer format, or has no ownership marker of ours.
            FailedError: if another process has it open.

        """
        if not path.exists():
            if mode == "read":
                raise UsageError(f"{path}: there is no history; `sensorbench history add FOLDER --store {path}` begins one")
            _create(path)
        # Whose it is, is read without the right to write.
        connection, stored_format = _connect(path, read_only=True)
        if mode == "read":
            return cls(path, connection, stored_format)
        connection.close()
        connection, stored_format = _connect(path, read_only=False)
        try:
            _migrate(connection, stored_format)
        except BaseException:
            connection.close()
            raise
        return cls(path, connection)

    def __enter__(self) -> "HistoryStore":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.connection.close()

    def add(self, results: Sequence[HistoryResult]) -> list[Added]:
        """Adds results, all of them or none. One that is there already, wherever its folder lay, is not added again.

        Args:
            results: what `collect` gave.

        Returns:
            Each of them, and whether it is new.

        """
        added = []
        self.connection.begin()
        try:
            for result in results:
                is_new = not self._query("SELECT 1 FROM results WHERE id = ?", [result.id])
                if is_new:
                    self._insert(result)
                added.append(Added(result, is_new))
            self.connection.commit()
        except BaseException:
            self.connection.rollback()
            raise
        return added

    def results(self) -> list[ListedResult]:
        """The results of the history, the oldest first."""
        rows = self._query(
            "SELECT r.id, folder, kind, title, experiment, name, measured, added, label, machine, machine_words, count(f.result) "
            "FROM results r LEFT JOIN figures f ON f.result = r.id GROUP BY ALL ORDER BY measured, r.id"
        )
        names = list(ListedResult.model_fields)
        return [
            ListedResult.model_validate({name: _aware(value) for name, value in zip(names, row, strict=True)}) for row in rows
        ]

    def export(self, path: Path) -> int:
        """Writes a row for each figure, with its result and variant, into a file of CSV or Parquet by the ending of its name.

        Returns:
            The number of rows.

        """
        kind = "PARQUET" if path.suffix == ".parquet" else "CSV, HEADER"
        with whole_file(path) as unfinished:
            target = str(unfinished).replace("'", "''")
            self.connection.execute(f"COPY ({self._all_figures}) TO '{target}' (FORMAT {kind})")
        (row,) = self._query("SELECT count(*) FROM figures")
        return int(row[0])

    def figures(self) -> list[StoredFigure]:
        """The same rows as `export` writes."""
        found = self.connection.execute(self._all_figures)
        names = [column[0] for column in found.description or ()]
        return [
            StoredFigure.model_validate({name: _aware(value) for name, value in zip(names, row, strict=True)})
            for row in found.fetchall()
        ]

    def _insert(self, result: HistoryResult) -> None:
        added = datetime.now(UTC).replace(microsecond=0)
        self._rows(
            "results",
            [
                [
                    result.id,
                    result.folder,
                    result.kind,
                    result.title,
                    result.experiment,
                    result.name,
                    _naive(result.measured),
                    _naive(added),
                    result.label,
                    result.machine,
                    result.machine_words,
                    result.sensorbench,
                    result.kernel,
                    *_values(result.doctor),
                ]
            ],
        )
        self._rows("variants", [self._variant_row(result.id, variant) for variant in result.variants])
        self._rows("figures", [[result.id, *_values(figure)] for figure in result.figures])
        self._rows("histograms", [[result.id, *_values(histogram)] for histogram in result.histograms])

    def _variant_row(self, result: str, variant: HistoryVariant) -> list[Any]:
        return [
            result,
            variant.id,
            self._series_of(variant),
            variant.target,
            variant.database,
            variant.database_version,
            variant.schema_name,
            variant.schema_digest,
            json.dumps(variant.parameters),
            json.dumps(variant.server_settings),
            variant.no_op_per_s,
        ]

    def _series_of(self, variant: HistoryVariant) -> str:
        """What the variant is called in series: a schema that has been there with the same content keeps the name that it had then."""
        known = self._query(
            "SELECT series_schema FROM schemas WHERE database = ? AND digest = ? ORDER BY number LIMIT 1",
            [variant.database, variant.schema_digest],
        )
        schema = str(known[0][0]) if known else variant.schema_name
        if not known:
            self.connection.execute(
                "INSERT INTO schemas SELECT ?, ?, ?, count(*) FROM schemas", [variant.database, variant.schema_digest, schema]
            )
        parameters = [f"{name}={value}" for name, value in variant.parameters.items()]
        return " ".join(filter(None, [variant.target, schema, *parameters, variant.distinct]))

    def _rows(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        if rows:
            places = ", ".join("?" * len(COLUMNS[table]))
            self.connection.executemany(f"INSERT INTO {table} VALUES ({places})", [list(row) for row in rows])

    def _query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql, list(values)).fetchall()


# `results` is the table, or one that has the columns of today.
_ALL_FIGURES = """
SELECT r.experiment, r.name, v.series AS variant, f.operation, f.metric, f.unit, f.higher_is_better, f.is_main, f.value, f.low, f.high, f.confidence,
       f.runs, r.measured, r.label, v.database, v.database_version, v.schema_name, v.schema_digest, v.server_settings, v.no_op_per_s,
       r.machine, r.machine_words, r.sensorbench, r.kernel, r.folder, r.id AS result, r.timer_lag_s, r.null_ops_per_s, r.aa_variation
FROM figures f JOIN {results} r ON r.id = f.result JOIN variants v ON v.result = f.result AND v.id = f.variant
ORDER BY r.experiment, v.series, f.operation, f.metric, r.measured, r.id
"""


def _values(entry: HistoryFigure | HistoryHistogram | DoctorFigures) -> list[Any]:
    return [getattr(entry, name) for name in type(entry).model_fields]


def _naive(time: datetime) -> datetime:
    """A time as the file has it: UTC, which DuckDB hands over without a further package."""
    return time.astimezone(UTC).replace(tzinfo=None)


def _aware(value: Any) -> Any:
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) else value


def _create(path: Path) -> None:
    """Makes an empty history with its marker, all of it or nothing."""
    if not path.parent.is_dir():
        raise UsageError(f"--store {path}: expected a file in an existing folder")
    with whole_file(path) as unfinished:
        connection = duckdb.connect(str(unfinished))
        try:
            for statement in TABLES:
                connection.execute(statement)
            connection.execute(
                f"INSERT INTO {MARKER} VALUES (?, ?, ?)", [FORMAT, new_id(), _naive(datetime.now(UTC).replace(microsecond=0))]
            )
        finally:
            connection.close()


def _migrate(connection: duckdb.DuckDBPyConnection, stored_format: int) -> None:
    """Makes a history of an earlier format one of today, all of it or nothing. Nothing that it keeps changes."""
    if stored_format == FORMAT:
        return
    connection.begin()
    try:
        for table, name in columns_since(stored_format):
            connection.execute(f"ALTER TABLE {table} ADD COLUMN {name} {COLUMNS[table][name]}")
        connection.execute(f"UPDATE {MARKER} SET format = ?", [FORMAT])
        connection.commit()
    except BaseException:
        connection.rollback()
        raise


def _connect(path: Path, *, read_only: bool) -> tuple[duckdb.DuckDBPyConnection, int]:
    """A connection to a history of ours, and its format. Raises UsageError, FailedError."""
    try:
        connection = duckdb.connect(str(path), read_only=read_only)
    except duckdb.IOException as error:
        said = str(error)
        if "lock" in said.lower():
            raise FailedError(f"{path}: another process has this history open; try again when it has ended") from None
        raise UsageError(
            f"{path}: not a DuckDB database ({said.splitlines()[0]}); name the file of a history with --store"
        ) from None
    except duckdb.Error as error:
        raise UsageError(
            f"{path}: DuckDB cannot open it ({str(error).splitlines()[0]}); name the file of a history with --store"
        ) from None
    try:
        return connection, _format_of(path, connection)
    except BaseException:
        connection.close()
        raise


def _format_of(path: Path, connection: duckdb.DuckDBPyConnection) -> int:
    """The format of a history. Raises UsageError for a file that is none of ours, or of a later version."""
    tables = {row[0] for row in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
    if MARKER not in tables:
        raise UsageError(
            f"{path}: this DuckDB database has no ownership marker of sensorbench ({MARKER}), so nothing is written to it or read from it; "
            "name another file with --store"
        )
    (row,) = connection.execute(f"SELECT format FROM {MARKER}").fetchall()
    stored_format = int(row[0])
    if stored_format > FORMAT:
        raise UsageError(
            f"{path}: this history has format {stored_format}, and this version of sensorbench reads formats up to {FORMAT}; install a later version"
        )
    return stored_format
