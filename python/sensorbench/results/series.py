"""A study of several datasets or of several parts: a folder with the results of each, and what belongs to all of them."""

import json
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from sensorbench.errors import UsageError
from sensorbench.results.files import write_text
from sensorbench.results.reader import has_results

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
    write_text(folder / SERIES_FILE, manifest.model_dump_json(indent=2) + "\n")


def is_series(folder: Path) -> bool:
    """Whether a folder holds a series."""
    return (folder / SERIES_FILE).exists()


def parts_with_results(folder: Path) -> dict[str, Path]:
    """The folders of those comparisons of a series that were begun, by dataset or part."""
    return {name: folder / part for name, part in read_series(folder).parts.items() if has_results(folder / part)}


def read_series(folder: Path) -> SeriesManifest:
    """What a series consists of. Raises UsageError."""
    path = folder / SERIES_FILE
    try:
        return SeriesManifest.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, ValidationError, json.JSONDecodeError) as error:
        raise UsageError(f"{path}: not a series of results: {error}") from None
