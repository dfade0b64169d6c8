"""A study of several datasets or of several parts: a folder with the results of each, and what belongs to all of them."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from sensorbench.errors import UsageError
from sensorbench.results.files import write_result
from sensorbench.results.manifest import MANIFEST_FILE
from sensorbench.results.stored import is_stored, read_model

SERIES_FILE = "series.json"


class SeriesManifest(BaseModel):
    """`series.json`: the folders of its comparisons, by the name of their dataset or of their part of the study, in order."""

    model_config = ConfigDict(extra="forbid")

    format: int = 1
    name: str
    title: str
    of: Literal["datasets", "parts"] = "datasets"
    parts: dict[str, str]


def write_series(folder: Path, manifest: SeriesManifest) -> None:
    """Says that a folder holds a series."""
    folder.mkdir(parents=True, exist_ok=True)
    write_result(folder / SERIES_FILE, manifest.model_dump_json(indent=2) + "\n")


def is_series(folder: Path) -> bool:
    """Whether a folder holds a series. Raises DamagedResultsError when its file is missing, though it was written."""
    return is_stored(folder / SERIES_FILE)


def parts_with_results(folder: Path) -> dict[str, Path]:
    """The folders of those comparisons of a series that were begun, by dataset or part. Raises DamagedResultsError."""
    return {name: folder / part for name, part in read_series(folder).parts.items() if is_stored(folder / part / MANIFEST_FILE)}


def read_series(folder: Path) -> SeriesManifest:
    """What a series consists of. Raises UsageError when there is none, DamagedResultsError."""
    path = folder / SERIES_FILE
    if not is_stored(path):
        raise UsageError(f"{folder}: no series of results is there ({SERIES_FILE} is missing)")
    return read_model(path, SeriesManifest)
