"""Printing JSON, and opening pages."""

import json
import sys
import webbrowser
from collections.abc import Container
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import typer
from pydantic import BaseModel
from rich.table import Table

from sensorbench.errors import UsageError
from sensorbench.paths import check_page_is_free


def print_json(value: Any) -> None:
    """Prints a value as JSON; models and dataclasses may be in it."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False, default=_plain))


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else str(value)


def check_page(page: Path) -> None:
    """Raises UsageError for a page that --html names and that cannot be written there."""
    if page.is_dir() or not page.parent.is_dir():
        raise UsageError(f"--html {page}: expected a file in an existing folder")
    check_page_is_free(page)


def open_page(page: Path, *, no_open: bool) -> None:
    """Opens a page in the browser of whoever sits at the terminal, unless that was declined (`--no-open`)."""
    if not no_open and sys.stdout.isatty():
        webbrowser.open(page.resolve().as_uri())


def new_table(*columns: str, texts: Container[str] | None = None, wide: bool = False) -> Table:
    """A table without lines, to be filled with rows.

    Args:
        columns: what stands above each.
        texts: columns that begin on the left; all others end on the right, as numbers do. All begin on the left if not given.
        wide: whether columns are two spaces apart and begin at the edge.

    """
    table = Table(box=None, padding=(0, 2, 0, 0) if wide else (0, 1))
    for column in columns:
        table.add_column(column, justify="left" if texts is None or column in texts else "right")
    return table
