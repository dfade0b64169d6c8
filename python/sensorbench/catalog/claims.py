"""What the classification claims of guarantees and distribution, and how each claim can be seen here, or why not. A file."""

from functools import cache
from typing import Self

from pydantic import model_validator

from sensorbench.catalog.axes import FOLDER
from sensorbench.toml_file import FileModel, load


class CatalogueClaim(FileModel):
    """A claim: a command that shows it, a test of the project that sees it, what is lacking for it or for a part of it."""

    id: str
    text: str
    command: str = ""
    test: str = ""
    lacks: str = ""

    @model_validator(mode="after")
    def _says_how_or_why_not(self) -> Self:
        if not (self.command or self.test or self.lacks):
            raise ValueError("expected command, test or lacks")
        return self


class _Claims(FileModel):
    claim: tuple[CatalogueClaim, ...]


@cache
def catalogue_claims() -> tuple[CatalogueClaim, ...]:
    """All claims."""
    return load(FOLDER / "claims.toml", _Claims).claim
