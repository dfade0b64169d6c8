"""What was chosen from the catalog: what `--json` prints and pages show."""

from pydantic import BaseModel

from sensorbench.analysis.choosing import Clash, Outcome, Verdict
from sensorbench.catalog.choose import Chosen, Difference, described_facts, described_trait
from sensorbench.catalog.entry import When, entries
from sensorbench.catalog.measurements import Measurement
from sensorbench.catalog.needs import clashes_of
from sensorbench.catalog.profiles import Advice


class ChosenNeed(BaseModel):
    """A need: the axis that it is about, and the words of that which meet it."""

    name: str
    axis: str
    accepts: list[str]
    is_must: bool


class ClashingNeeds(BaseModel):
    """Needs that no database can meet at once, and why."""

    needs: list[str]
    why: str


class NeedsToDrop(BaseModel):
    """Needs without which databases are left."""

    needs: list[str]
    leaves: list[str]


class NeedVerdict(BaseModel):
    """Whether a database meets a need, and what is true of it there."""

    verdict: str
    has: str


class ChosenDatabase(BaseModel):
    """A database beside the needs; `missing` are musts that it does not meet, or of which nothing is known."""

    name: str
    title: str
    fits: bool
    missing: list[str]
    clashes: list[ClashingNeeds]
    why_not: str
    might_fit: bool
    is_known: bool
    wishes_met: int
    needs: dict[str, NeedVerdict]
    measurements: list[Measurement]


class ChosenProfile(BaseModel):
    """A use case, what its study advises, and where the facts say otherwise."""

    name: str
    title: str
    summary: str
    source: str
    advice: Advice
    differences: list[Difference]


class ChoiceSummary(BaseModel):
    """Needs, databases from the best to the worst, needs to drop, and the profile that the needs are of."""

    when: When
    needs: list[ChosenNeed]
    has_wishes: bool
    clashes: list[ClashingNeeds]
    fitting: list[str]
    to_drop: list[NeedsToDrop]
    databases: list[ChosenDatabase]
    profile: ChosenProfile | None


def choice_summary(chosen: Chosen) -> ChoiceSummary:
    """What is shown of a choice."""
    profile = chosen.profile
    return ChoiceSummary(
        when=chosen.when,
        needs=[
            ChosenNeed(name=need.name, axis=need.axis, accepts=sorted(need.accepts), is_must=need.is_must)
            for need in chosen.needs
        ],
        has_wishes=not all(need.is_must for need in chosen.needs),
        clashes=_clashing(clashes_of(chosen.needs)),
        fitting=list(chosen.choice.fitting),
        to_drop=[NeedsToDrop(needs=list(drop.needs), leaves=list(drop.leaves)) for drop in chosen.choice.to_drop],
        databases=[_database(chosen, outcome) for outcome in chosen.choice.outcomes],
        profile=ChosenProfile(
            name=profile.name,
            title=profile.title,
            summary=profile.summary,
            source=profile.source,
            advice=profile.advice,
            differences=list(chosen.differences),
        )
        if profile
        else None,
    )


def _clashing(clashes: list[Clash] | tuple[Clash, ...]) -> list[ClashingNeeds]:
    return [ClashingNeeds(needs=sorted(clash.needs), why=clash.why) for clash in clashes]


def _database(chosen: Chosen, outcome: Outcome) -> ChosenDatabase:
    entry = entries()[outcome.name]
    return ChosenDatabase(
        name=outcome.name,
        title=entry.title,
        fits=outcome.fits,
        missing=list(outcome.missing),
        clashes=_clashing(outcome.clashes),
        why_not=described_facts(entry, chosen.needs, outcome.missing, chosen.when),
        might_fit=bool(outcome.missing)
        and not outcome.clashes
        and all(outcome.verdicts[name] is Verdict.UNKNOWN for name in outcome.missing),
        is_known=chosen.when == "today" or bool(entry.studied),
        wishes_met=outcome.wishes_met,
        needs={
            need.name: NeedVerdict(verdict=outcome.verdicts[need.name].value, has=described_trait(entry, need.axis, chosen.when))
            for need in chosen.needs
        },
        measurements=chosen.measurements[outcome.name],
    )
