"""The page of the catalogue: databases by axes, to be filtered, and each with all facts and their sources."""

from pathlib import Path
from typing import Any

from sensorbench.report.build import page_environment
from sensorbench.results.files import write_text


def write_catalogue(path: Path, catalogue: dict[str, Any]) -> Path:
    """Writes the page of a catalogue, which is as `sensorbench databases --json` prints it. Returns the page."""
    write_text(path, page_environment().get_template("databases.html.j2").render(**catalogue))
    return path
