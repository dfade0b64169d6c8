"""Printing JSON, and opening pages."""

import json
import sys
import webbrowser
from pathlib import Path
from typing import Any

import typer
from pydantic import BaseModel

from sensorbench.errors import UsageError
from sensorbench.paths import check_page_is_free


def print_json(value: Any) -> None:
    """Prints a value as JSON; models may be in it."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False, default=_plain))


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else str(value)


def check_page(page: Path) -> None:
    """Raises UsageError for a page that --html names and that cannot be written there."""
    if page.is_dir() or not page.parent.is_dir():
        raise UsageError(f"--html {page}: expected a file in a folder that is there")
    check_page_is_free(page)


def open_page(page: Path) -> None:
    """Opens a page in the browser of whoever sits at the terminal."""
    if sys.stdout.isatty():
        webbrowser.open(page.resolve().as_uri())
