"""The axes on which databases are distinguished, with the words of each, and the studies in which they were studied: files."""

from functools import cache
from pathlib import Path

from pydantic import RootModel

from sensorbench.toml_file import FileModel, load

FOLDER = Path(__file__).parent


class Axis(FileModel):
    """An axis: its words with what each means; `several` may be true of a database."""

    title: str
    several: bool = False
    words: dict[str, str]


class Study(FileModel):
    """A study: what it was, when, and the file that it was read from."""

    title: str
    year: str
    file: str


class _Axes(RootModel[dict[str, Axis]]):
    pass


class _Studies(RootModel[dict[str, Study]]):
    pass


@cache
def axes() -> dict[str, Axis]:
    """All axes by name."""
    return load(FOLDER / "axes.toml", _Axes).root


@cache
def studies() -> dict[str, Study]:
    """All studies by name."""
    return load(FOLDER / "studies.toml", _Studies).root
