"""The pages of the catalogue: databases by axes, to be filtered, each with all facts and their sources; and what was chosen."""

from pathlib import Path
from typing import Any

from sensorbench.report.build import page_environment
from sensorbench.results.files import write_text


def write_catalogue(path: Path, catalogue: dict[str, Any]) -> Path:
    """Writes the page of a catalogue, which is as `sensorbench databases --json` prints it. Returns the page."""
    write_text(path, page_environment().get_template("databases.html.j2").render(**catalogue))
    return path


def write_choice(path: Path, told: dict[str, Any]) -> Path:
    """Writes the page of a choice, which is as `sensorbench choose --json` prints it. Returns the page."""
    write_text(path, page_environment().get_template("choice.html.j2").render(**told))
    return path
