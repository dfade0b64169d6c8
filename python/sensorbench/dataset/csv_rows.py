"""Reading CSV files as text, with the line of each row, so that a bad cell can be named."""

import contextlib
import csv
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from sensorbench.dataset.csv_encoding import UTF_8, as_utf_8, first_line
from sensorbench.errors import UsageError

MAX_SHOWN = 20

# The column with the number of a row, named as no column of a file is.
ROW_NUMBER = '"row number of sensorbench"'


@dataclass(frozen=True, order=True)
class BadRow:
    """A row that could not be taken over, and a cell that is why."""

    file: str
    line: int
    column: str
    value: str
    expected: str

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}, column {self.column}: {self.value!r} is not {self.expected}"


@dataclass
class BadRows:
    """All rows that could not be taken over; some of them are kept to be shown."""

    lines: set[tuple[str, int]] = field(default_factory=set)
    shown: list[BadRow] = field(default_factory=list)

    def add(self, rows: list[BadRow]) -> None:
        """Adds rows; one that has several bad cells counts once."""
        self.lines.update((row.file, row.line) for row in rows)
        self.shown = sorted([*self.shown, *rows])[:MAX_SHOWN]

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self.lines)

    def refuse_or_keep_count(self, *, skip: bool, hint: str = "") -> None:
        """Raises UsageError showing the rows, unless they are to be skipped; `hint` says what else can be done about them."""
        if self.count == 0 or skip:
            return
        shown = "\n".join(f"  {row}" for row in self.shown)
        shown_lines = {(row.file, row.line) for row in self.shown}
        more = f"\n  and {self.count - len(shown_lines)} more" if self.count > len(shown_lines) else ""
        raise UsageError(
            f"{self.count} bad rows; nothing was written:\n{shown}{more}\nFix them, or leave them out with --bad-rows skip."
            + (f"\n{hint}" if hint else "")
        )


def first_value(file: Path, column: str) -> str | None:
    """The cell of a column in the first row, or None when there is no row."""
    with file.open(encoding="utf-8-sig", newline="") as lines:
        rows = csv.DictReader(lines, delimiter=delimiter_of(lines.readline()), fieldnames=columns_of(file))
        return next((row[column] for row in rows), None)


DELIMITERS = ",;\t|"


def columns_of(file: Path, encoding: str = UTF_8) -> list[str]:
    """The names in the first line of a CSV file."""
    header = first_line(file, encoding)
    if "\0" in header:
        raise UsageError(f"{file}: not a CSV file: expected text, found zero bytes")
    if not header.strip():
        raise UsageError(f"{file}, line 1: expected the names of the columns")
    # DuckDB takes names without the blanks around them.
    return [name.strip() for name in next(csv.reader([header], delimiter=delimiter_of(header)))]


def delimiter_of(header: str) -> str:
    """What parts the names of a header: the candidate that is there most often."""
    return max(DELIMITERS, key=header.count)


@contextlib.contextmanager
def text_rows(connection: duckdb.DuckDBPyConnection, file: Path, encoding: str = UTF_8) -> Iterator[duckdb.DuckDBPyRelation]:
    """The rows of a CSV file as text, to be read meanwhile. Nothing is left to guessing, so that a ragged file is not taken for one of
    another form.
    """
    delimiter = delimiter_of(first_line(file, encoding))
    with as_utf_8(file, encoding) as readable:
        yield connection.read_csv(
            str(readable),
            header=True,
            all_varchar=True,
            sep=delimiter,
            quotechar='"',
            escapechar='"',
            ignore_errors=True,
            store_rejects=True,
        )


def refuse_alike(where: str, found: list[str], required: list[str]) -> None:
    """Raises UsageError when a column's name stands there twice, or twice but for upper and lower case: DuckDB
    would take them for one.
    """
    for name in required:
        alike = [other for other in found if other.lower() == name.lower()]
        if len(set(alike)) > 1:
            raise UsageError(f"{where}: the columns {alike[0]!r} and {alike[1]!r} differ in case alone; rename one of them")
        if len(alike) > 1:
            raise UsageError(f"{where}: there are {len(alike)} columns {name!r}; rename all but one of them")


def require_columns(file: Path, found: list[str], required: list[str]) -> None:
    """Raises UsageError when a column is missing, or cannot be distinguished from another one."""
    missing = [name for name in required if name not in found]
    if missing:
        raise UsageError(f"{file}, line 1: there is no column {missing[0]!r}; the columns are {', '.join(found)}")
    refuse_alike(f"{file}, line 1", found, required)


class TextRows:
    """The rows of a CSV file as text, in a table of a connection, with their number in ROW_NUMBER."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, table: str, file: Path, bad_rows: BadRows, encoding: str = UTF_8
    ) -> None:
        """Reads the file; empty cells are null. Rows with another number of cells than the header are added to `bad_rows`."""
        self.table = table
        self._file = file
        # Only a single-threaded scan numbers rows in the order of the file.
        connection.execute("SET preserve_insertion_order = true")
        connection.execute("DROP TABLE IF EXISTS reject_errors; DROP TABLE IF EXISTS reject_scans")
        try:
            with text_rows(connection, file, encoding) as rows:
                rows.project(f"row_number() OVER () AS {ROW_NUMBER}, *").to_table(table)
        except duckdb.Error as error:
            raise UsageError(f"{file}: not a CSV file: {error}") from None
        query = "SELECT line, any_value(coalesce(csv_line, '')), any_value(error_message) FROM reject_errors GROUP BY line ORDER BY line"
        rejects = connection.sql(query).fetchall()
        self._reject_lines = [line for line, _, _ in rejects]
        bad_rows.add(
            [BadRow(str(file), line, "(all)", text, f"a row of the table: {message}") for line, text, message in rejects]
        )

    def bad_cell(self, row_number: int, column: str, value: str, expected: str) -> BadRow:
        """A cell of a row that is not what was expected."""
        return BadRow(str(self._file), self._line(row_number), column, value, expected)

    def _line(self, row_number: int) -> int:
        """The line of a row: after the header, the rows before it, and the lines that were not rows."""
        line = row_number + 1
        for reject_line in self._reject_lines:
            line += reject_line <= line
        return line


def quoted(name: str) -> str:
    """A column's name as SQL has it."""
    return '"' + name.replace('"', '""') + '"'
