"""What was chosen from the catalog, as plain values: what `--json` prints and pages show."""

from dataclasses import asdict
from typing import Any

from sensorbench.analysis.choosing import Outcome, Verdict
from sensorbench.catalog.choose import Chosen, described_facts, described_trait
from sensorbench.catalog.entry import entries
from sensorbench.catalog.needs import clashes_of


def choice_as_json(chosen: Chosen) -> dict[str, Any]:
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
        "databases": [_serialized_outcome(chosen, outcome) for outcome in chosen.choice.outcomes],
        "profile": {
            **profile.model_dump(mode="json", include={"name", "title", "summary", "source", "advice"}),
            "differences": [asdict(difference) for difference in chosen.differences],
        }
        if profile
        else None,
    }


def _serialized_outcome(chosen: Chosen, outcome: Outcome) -> dict[str, Any]:
    entry = entries()[outcome.name]
    return {
        "name": outcome.name,
        "title": entry.title,
        "fits": outcome.fits,
        "missing": list(outcome.missing),
        "clashes": [{"needs": sorted(clash.needs), "why": clash.why} for clash in outcome.clashes],
        "why_not": described_facts(entry, chosen.needs, outcome.missing, chosen.when),
        "might_fit": bool(outcome.missing)
        and not outcome.clashes
        and all(outcome.verdicts[name] is Verdict.UNKNOWN for name in outcome.missing),
        "is_known": chosen.when == "today" or bool(entry.studied),
        "wishes_met": outcome.wishes_met,
        "needs": {
            need.name: {"verdict": outcome.verdicts[need.name].value, "has": described_trait(entry, need.axis, chosen.when)}
            for need in chosen.needs
        },
        "measurements": [asdict(measurement) for measurement in chosen.measurements[outcome.name]],
    }
