"""The catalogue, and what was chosen from it, as plain values: what `--json` prints and pages show."""

from dataclasses import asdict
from typing import Any

from sensorbench.analysis.choosing import Outcome, Verdict
from sensorbench.catalog.axes import axes, studies
from sensorbench.catalog.capability import capabilities
from sensorbench.catalog.choose import Chosen, told_facts, told_trait
from sensorbench.catalog.claims import catalogue_claims
from sensorbench.catalog.entry import WHEN, Entry, When, entries
from sensorbench.catalog.needs import clashes_of


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


def told_choice(chosen: Chosen) -> dict[str, Any]:
    """Needs, databases from the best to the worst with what they have of each, needs to drop, and what the study of a profile advises."""
    profile = chosen.profile
    return {
        "when": chosen.when,
        "needs": [
            {"name": need.name, "axis": need.axis, "accepts": sorted(need.accepts), "is_must": need.is_must}
            for need in chosen.needs
        ],
        "has_wishes": not all(need.is_must for need in chosen.needs),
        "clashes": [{"needs": sorted(clash.needs), "why": clash.why} for clash in clashes_of(chosen.needs)],
        "fitting": list(chosen.choice.fitting),
        "to_drop": [{"needs": list(drop.needs), "leaves": list(drop.leaves)} for drop in chosen.choice.to_drop],
        "databases": [_told_outcome(chosen, outcome) for outcome in chosen.choice.outcomes],
        "profile": {
            **profile.model_dump(mode="json", include={"name", "title", "summary", "source", "advice"}),
            "differences": [asdict(one) for one in chosen.differences],
        }
        if profile
        else None,
    }


def _told_outcome(chosen: Chosen, outcome: Outcome) -> dict[str, Any]:
    entry = entries()[outcome.name]
    return {
        "name": outcome.name,
        "title": entry.title,
        "fits": outcome.fits,
        "missing": list(outcome.missing),
        "clashes": [{"needs": sorted(clash.needs), "why": clash.why} for clash in outcome.clashes],
        "why_not": told_facts(entry, chosen.needs, outcome.missing, chosen.when),
        "might_fit": bool(outcome.missing)
        and not outcome.clashes
        and all(outcome.verdicts[name] is Verdict.UNKNOWN for name in outcome.missing),
        "is_known": chosen.when == "today" or bool(entry.studied),
        "wishes_met": outcome.wishes_met,
        "needs": {
            need.name: {"verdict": outcome.verdicts[need.name].value, "has": told_trait(entry, need.axis, chosen.when)}
            for need in chosen.needs
        },
        "measurements": [asdict(one) for one in chosen.measurements[outcome.name]],
    }
