"""A study of several datasets or of several parts: a folder with the results of each, and what belongs to all of them."""

from pathlib import Path

from sensorbench.results.manifest import MANIFEST_FILE
from sensorbench.results.planned import SeriesManifest
from sensorbench.results.reader import kind_of, read_manifest
from sensorbench.results.stored import DamagedResultsError, is_stored


def is_series(folder: Path) -> bool:
    """Whether a folder holds a series. Raises DamagedResultsError when its manifest is missing, though it was written."""
    return kind_of(folder) == "series"


def parts_with_results(folder: Path) -> dict[str, Path]:
    """The folders of those comparisons of a series that were begun, by dataset or part. Raises DamagedResultsError."""
    parts = read_series(folder).plan.parts
    # Results may come from somebody else: nothing outside of their folder is read.
    if odd := next((part for part in parts.values() if Path(part).is_absolute() or ".." in Path(part).parts), None):
        raise DamagedResultsError(folder / MANIFEST_FILE, f"plan.parts: {odd!r} is not a folder of a part")
    return {name: folder / part for name, part in parts.items() if is_stored(folder / part / MANIFEST_FILE)}


def read_series(folder: Path) -> SeriesManifest:
    """What a series consists of. Raises UsageError when there is none, DamagedResultsError."""
    return read_manifest(folder, SeriesManifest)
