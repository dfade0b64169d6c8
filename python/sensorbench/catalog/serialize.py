"""The catalog as plain values: what `--json` prints and pages show."""

from dataclasses import asdict
from functools import cache
from typing import Any, Self

from pydantic import model_validator

from sensorbench.catalog.axes import FOLDER, axes, studies
from sensorbench.catalog.capability import capabilities
from sensorbench.catalog.entry import WHEN, Entry, When, entries
from sensorbench.toml_file import FileModel, load


class CatalogClaim(FileModel):
    """A claim: a command that shows it, a test of the project that sees it, what is lacking for it or for a part of it."""

    id: str
    text: str
    command: str = ""
    test: str = ""
    blocked_by: str = ""

    @model_validator(mode="after")
    def _says_how_or_why_not(self) -> Self:
        if not (self.command or self.test or self.blocked_by):
            raise ValueError("expected command, test or blocked_by")
        return self


class _Claims(FileModel):
    claim: tuple[CatalogClaim, ...]


@cache
def catalog_claims() -> tuple[CatalogClaim, ...]:
    """All claims."""
    return load(FOLDER / "claims.toml", _Claims).claim


def serialize_catalog() -> dict[str, Any]:
    """Axes with their words, studies, all databases, and the claims of the classification."""
    return {
        "axes": {name: axis.model_dump() for name, axis in axes().items()},
        "studies": {name: study.model_dump() for name, study in studies().items()},
        "databases": [serialize_entry(entry) for entry in entries().values()],
        "claims": [claim.model_dump() for claim in catalog_claims()],
    }


def serialize_entry(entry: Entry) -> dict[str, Any]:
    """A database with all its facts, their sources, and what this project can do with it."""
    return {
        "name": entry.name,
        "title": entry.title,
        "summary": entry.summary,
        "targets": list(entry.targets),
        "versions": {"studied": entry.studied, "today": entry.today.model_dump()},
        "facts": {axis: {when: _serialized_fact(entry, axis, when) for when in WHEN} for axis in axes()},
        "capabilities": {
            name: {"can": capability.can, "short": capability.short, **asdict(capability)}
            for name, capability in capabilities(entry).items()
        },
    }


def _serialized_fact(entry: Entry, axis: str, when: When) -> dict[str, Any] | None:
    fact = entry.fact(axis, when)
    return {"value": list(fact.value), "note": fact.note, "source": entry.described_source(fact)} if fact else None
