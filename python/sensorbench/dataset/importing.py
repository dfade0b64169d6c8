"""Taking over rows of many files: cells are checked, and what cannot be taken over is kept to be shown."""

from collections.abc import Iterator
from typing import Protocol

import pyarrow as pa

from sensorbench.dataset.csv_rows import ROW_NUMBER, BadRow, BadRows, quoted
from sensorbench.dataset.dataset import workbench
from sensorbench.wording import counted


class Rows(Protocol):
    """Rows of a file as text, in a table of the staging connection, with their number in ROW_NUMBER."""

    table: str

    def bad_cell(self, row_number: int, column: str, value: str, expected: str) -> BadRow:
        """A cell of a row that is not what was expected."""


class Intake:
    """A connection that rows of files come into, and the bad ones among them."""

    def __init__(self) -> None:
        self.connection = workbench()
        self.bad_rows = BadRows()
        self._files = 0

    def next_file(self) -> int:
        """The number of the next file."""
        self._files += 1
        return self._files

    def check_times(self, rows: Rows, time_sql: str, time_columns: list[str]) -> None:
        """Adds rows whose time cannot be read to the bad rows; `time_sql` is null for them."""
        shown = "concat_ws(' ', " + ", ".join(quoted(column) for column in time_columns) + ")"
        self.add_bad_cells(rows, f"({time_sql}) IS NULL", f"coalesce({shown}, '')", ", ".join(time_columns), "a time")

    def add_bad_cells(
        self, rows: Rows, is_bad: str, value_sql: str, column: str, expected: str, missing: list[str] | None = None
    ) -> None:
        """Adds rows for which the condition `is_bad` is true to the bad rows."""
        parameters = {} if missing is None else {"missing": missing}
        query = f"SELECT {ROW_NUMBER}, {value_sql} FROM {quoted(rows.table)} WHERE {is_bad} ORDER BY ALL"
        found = self.connection.sql(query, params=parameters).fetchall()
        self.bad_rows.add([rows.bad_cell(row_number, column, value, expected) for row_number, value in found])

    def notes(self, dropped: int, why: str) -> list[str]:
        """What should be noted of bad rows, and of readings that were dropped because another one came after them."""
        notes = []
        if self.bad_rows.count:
            notes.append(
                f"{counted(self.bad_rows.count, 'bad row')}: what could not be read was left out, the first: {self.bad_rows.shown[0]}"
            )
        if dropped:
            notes.append(f"{counted(dropped, 'reading')} left out: {why}; the last in file order was kept")
        return notes


def cast(batches: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The same rows with the types of a schema."""
    for batch in batches:
        yield from pa.table(batch.columns, names=batch.schema.names).cast(schema).to_batches()
