"""What vendors say of the batches that their databases are written to in, which is data: `recommended_batches.toml`, by database."""

import functools
from pathlib import Path
from typing import Literal

from pydantic import Field

from sensorbench.toml_file import FileModel, load

RECOMMENDED_FILE = Path(__file__).parent / "recommended_batches.toml"


class RecommendedBatches(FileModel):
    """What a vendor says, where, and what this project's driver makes of a batch. Numbers are None if the vendor gives none."""

    rows: int | None = Field(default=None, ge=1)
    writers: int | None = Field(default=None, ge=1)
    writers_per_cpu: int | None = Field(default=None, ge=1)
    kind: Literal["advice", "client"]
    says: str = Field(min_length=1)
    source: str = Field(pattern="^https://")
    sent_as: str = Field(min_length=1)

    @property
    def origin(self) -> str:
        """Whose number it is, in a few words."""
        return "the documentation" if self.kind == "advice" else "default of the vendor’s client"

    def writers_with(self, cpus: int) -> int | None:
        """How many batches are sent at the same time by a client that has this many CPUs; None if the vendor gives no number."""
        return self.writers if self.writers_per_cpu is None else self.writers_per_cpu * cpus


class _File(FileModel):
    database: dict[str, RecommendedBatches]


@functools.cache
def recommended_batches() -> dict[str, RecommendedBatches]:
    """What is known, by the name of a database or by its dialect."""
    return load(RECOMMENDED_FILE, _File, lambda content: {"database": content}).database


def recommended_for(database: str, dialect: str) -> RecommendedBatches | None:
    """What is known of a database: what its own name has, else what its dialect has."""
    known = recommended_batches()
    return known.get(database) or known.get(dialect)
