"""The catalogue as plain values: what `--json` prints and pages show."""

from dataclasses import asdict
from typing import Any

from sensorbench.catalog.axes import axes, studies
from sensorbench.catalog.capability import capabilities
from sensorbench.catalog.claims import catalogue_claims
from sensorbench.catalog.entry import WHEN, Entry, When, entries


def told_catalogue() -> dict[str, Any]:
    """Axes with their words, studies, all databases, and the claims of the classification."""
    return {
        "axes": {name: axis.model_dump() for name, axis in axes().items()},
        "studies": {name: study.model_dump() for name, study in studies().items()},
        "databases": [told_entry(entry) for entry in entries().values()],
        "claims": [claim.model_dump() for claim in catalogue_claims()],
    }


def told_entry(entry: Entry) -> dict[str, Any]:
    """A database with all its facts, their sources, and what this project can do with it."""
    return {
        "name": entry.name,
        "title": entry.title,
        "summary": entry.summary,
        "targets": list(entry.targets),
        "versions": {"studied": entry.studied, "today": entry.today.model_dump()},
        "facts": {axis: {when: _told_fact(entry, axis, when) for when in WHEN} for axis in axes()},
        "capabilities": {name: {"can": one.can, "short": one.short, **asdict(one)} for name, one in capabilities(entry).items()},
    }


def _told_fact(entry: Entry, axis: str, when: When) -> dict[str, Any] | None:
    fact = entry.fact(axis, when)
    return {"value": list(fact.value), "note": fact.note, "source": entry.told_source(fact)} if fact else None
