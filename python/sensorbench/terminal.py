"""What of a run is printed, and how: -q, -v, --no-color and --format set it once, and all consoles follow."""

import csv
import io
import json
import logging
import os
import sys
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

# Where there is no terminal, tables are as wide as they need to be.
WIDTH_ELSEWHERE = 200


class TableFormat(StrEnum):
    """How --format prints the rows of tables."""

    CSV = "csv"
    MARKDOWN = "markdown"
    JSON = "json"


@dataclass(frozen=True)
class Rows:
    """A table as text: what stands above its columns, which of them end on the right, and its cells."""

    title: str
    columns: list[str]
    is_number: list[bool]
    cells: list[list[str]]

    def as_objects(self) -> list[dict[str, str]]:
        """Each row with its cells by the names of their columns."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.cells]


@dataclass
class Terminal:
    """What the user wants to see. There is one of it, since a process has one standard output."""

    quiet: bool = False
    verbose: bool = False
    no_color: bool = False
    table_format: TableFormat | None = None
    # Tables that wait for the end of the command: several of them are one JSON document.
    tables: list[Rows] = field(default_factory=list)

    @property
    def is_plain(self) -> bool:
        """Whether no escape codes may be printed; NO_COLOR is as https://no-color.org has it."""
        return self.no_color or bool(os.environ.get("NO_COLOR"))

    def reset(self) -> None:
        """Everything as if nothing were said."""
        self.quiet = self.verbose = self.no_color = False
        self.table_format = None
        self.tables.clear()
        _logger().handlers.clear()

    def log_steps(self) -> None:
        """Has the steps and statements of a run printed to standard error as they come."""
        self.verbose = True
        _logger().setLevel(logging.INFO)
        _logger().handlers = [_StepHandler()]

    def print_tables(self) -> None:
        """Prints the tables that wait, as --format has it."""
        if self.table_format is not None:
            sys.stdout.write(formatted(self.tables, self.table_format))
        self.tables.clear()


TERMINAL = Terminal()


def console() -> Console:
    """Standard output, for people. Texts are printed as they are: `[spark]` is not markup, and `join:x:` is not a picture. Colours are styles."""
    width = None if sys.stdout.isatty() else WIDTH_ELSEWHERE
    return _console(Console if TERMINAL.table_format is None else _TableConsole, width=width)


def error_console() -> Console:
    """Standard error, for people; texts are printed as they are."""
    return _console(Console, stderr=True)


def _console(kind: type[Console], *, stderr: bool = False, width: int | None = None) -> Console:
    common: dict[str, bool] = {"soft_wrap": True, "emoji": False, "markup": False, "stderr": stderr}
    if TERMINAL.is_plain:
        return kind(**common, width=width, color_system=None, force_terminal=False)  # type: ignore[arg-type]
    return kind(**common, width=width)  # type: ignore[arg-type]


class _TableConsole(Console):
    """Standard output with --format: rows of tables alone. What else is printed for people goes to standard error."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Keeps tables for the end, and prints all else to standard error."""
        texts = []
        for item in objects:
            if isinstance(item, Table):
                TERMINAL.tables.append(rows_of(item))
            else:
                texts.append(item)
        if texts:
            error_console().print(*texts, **options)


class _StepHandler(logging.Handler):
    """Prints steps to standard error, whatever that is at the moment."""

    def emit(self, record: logging.LogRecord) -> None:
        error_console().print(f"{self.format(record)}", style="dim", highlight=False)


def _logger() -> logging.Logger:
    return logging.getLogger("sensorbench")


def rows_of(table: Table) -> Rows:
    """The texts of a table. Columns without a name, or with that of another, get one, so that each can be addressed."""
    columns: list[str] = []
    for number, column in enumerate(table.columns, start=1):
        name = _plain(column.header) or f"column {number}"
        same = sum(known == name or known.rpartition(" ")[0] == name for known in columns)
        columns.append(f"{name} {same + 1}" if same else name)
    cells = [[_plain(cell) for cell in column.cells] for column in table.columns]
    is_number = [column.justify == "right" for column in table.columns]
    return Rows(_plain(table.title or ""), columns, is_number, [list(row) for row in zip(*cells, strict=True)])


def _plain(cell: Any) -> str:
    return cell.plain if isinstance(cell, Text) else str(cell)


def formatted(tables: list[Rows], form: TableFormat) -> str:
    """Tables as --format has them. In JSON, one table is a list of rows; of several, each has its title and its rows."""
    if form is TableFormat.JSON:
        rows = [table.as_objects() for table in tables]
        several = [{"title": table.title, "rows": of_it} for table, of_it in zip(tables, rows, strict=True)]
        return json.dumps(several if len(tables) > 1 else rows[0] if rows else [], indent=2, ensure_ascii=False) + "\n"
    write = _as_csv if form is TableFormat.CSV else _as_markdown
    return "\n".join(write(table) for table in tables)


def _as_csv(table: Rows) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([table.columns, *table.cells])
    return text.getvalue()


def _as_markdown(table: Rows) -> str:
    def line(cells: list[str]) -> str:
        safe = (cell.replace("|", "\\|").replace("\n", " ") for cell in cells)
        return f"| {' | '.join(safe)} |"

    title = [f"**{table.title}**", ""] if table.title else []
    under = line(["---:" if is_number else "---" for is_number in table.is_number])
    return "\n".join([*title, line(table.columns), under, *map(line, table.cells)]) + "\n"
