"""Where the quantities that are the same for every database come from: files in `sources/`, one for each kind of database.

A file names the rows of a run's table `status`; `lab.toml` those that the lab adds for its servers, whatever database they are.
"""

import tomllib
from functools import cache
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, model_validator

from sensorbench.results.quantities import QUANTITIES

FOLDER = Path(__file__).parent / "sources"
_OF_THE_LAB = FOLDER / "lab.toml"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Source(_Part):
    """The names whose sum, times a factor, is a quantity; `documented` says what the database calls it."""

    names: tuple[str, ...]
    factor: float = 1.0
    documented: str


class CacheSource(_Part):
    """The names whose sums are the requests of a cache and those that it answered; two of the three are given."""

    hits: tuple[str, ...] = ()
    misses: tuple[str, ...] = ()
    requests: tuple[str, ...] = ()
    documented: str

    @model_validator(mode="after")
    def _has_two(self) -> Self:
        if sum(bool(names) for names in (self.hits, self.misses, self.requests)) != 2:
            raise ValueError("expected two of hits, misses and requests")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """All names."""
        return (*self.hits, *self.misses, *self.requests)

    @property
    def added_to_hits(self) -> tuple[str, ...]:
        """The names whose sum, less that of `taken_from_hits`, is what the cache answered."""
        return self.hits or self.requests

    @property
    def taken_from_hits(self) -> tuple[str, ...]:
        """See `added_to_hits`."""
        return () if self.hits else self.misses

    @property
    def added_to_requests(self) -> tuple[str, ...]:
        """The names whose sum is what the cache was asked."""
        return self.requests or (*self.hits, *self.misses)


class Sources(_Part):
    """What one kind of database reports. Of several sources of a quantity the first one that was reported counts."""

    databases: tuple[str, ...] = ()
    cache: dict[str, CacheSource] = {}
    quantity: dict[str, tuple[Source, ...]] = {}

    @model_validator(mode="after")
    def _are_known(self) -> Self:
        if unknown := self.quantity.keys() - QUANTITIES.keys():
            raise ValueError(f"unknown quantities: {', '.join(sorted(unknown))}")
        return self


def sources_of(database: str) -> Sources:
    """What a kind of database reports: what the lab knows of any server, and then what the database says itself."""
    common, own = _read(_OF_THE_LAB), own_sources_of(database)
    names = [*own.quantity, *(name for name in common.quantity if name not in own.quantity)]
    return Sources(
        databases=own.databases,
        cache=own.cache,
        quantity={name: (*common.quantity.get(name, ()), *own.quantity.get(name, ())) for name in names},
    )


def own_sources_of(database: str) -> Sources:
    """What a kind of database says itself, wherever it runs; nothing of one that says nothing."""
    return next((sources for sources in map(_read, _files()) if database in sources.databases), Sources())


def _files() -> list[Path]:
    return sorted(file for file in FOLDER.glob("*.toml") if file != _OF_THE_LAB)


@cache
def _read(file: Path) -> Sources:
    return Sources.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
