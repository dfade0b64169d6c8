"""The pages of the catalog: databases by axes, to be filtered, each with all facts and their sources; and what was chosen."""

from pathlib import Path
from typing import Any

from pydantic import BaseModel

from sensorbench.report.build import page_environment
from sensorbench.results.files import write_text


def write_catalog(path: Path, catalog: dict[str, Any]) -> Path:
    """Writes the page of a catalog, which is as `sensorbench databases --json` prints it. Returns the page."""
    write_text(path, page_environment().get_template("databases.html.j2").render(**catalog))
    return path


def write_choice(path: Path, choice: BaseModel) -> Path:
    """Writes the page of a choice, which is as `sensorbench choose --json` prints it. Returns the page."""
    write_text(path, page_environment().get_template("choice.html.j2").render(**dict(choice)))
    return path
