"""Which databases of the catalog meet which needs, why others fall out, and how that compares with what a study advises."""

from collections.abc import Sequence
from dataclasses import dataclass

from sensorbench.advisor import EvidenceBundle, shipped, shipped_evidence
from sensorbench.analysis.choosing import Candidate, Choice, Need, choose
from sensorbench.catalog.capability import measurable
from sensorbench.catalog.entry import WHEN, Entry, When, entries
from sensorbench.catalog.measurements import Measurement, measurements
from sensorbench.catalog.needs import Machine, clashes_of, needs_of
from sensorbench.catalog.profiles import Profile
from sensorbench.results.summaries import Measured

# Axes that follow from others: where data lie, and so how much they may be; and whether this project can measure a database.
HOLDS, MEASURABLE = "holds", "measurable"
_MEANT = {
    "memory": "data are in the memory of one server",
    "memories": "data are in the memory of the nodes",
    "disk": "all data are on the disk of one server",
    "disks": "data are on the disks of all nodes",
    "here": "embedded, or started by the lab",
    "by-url": "where you start it",
    "no": "there is no driver",
}
_NOT_SAID = "not stated"
_IN_MEMORY = {"memory", "optional"}


@dataclass(frozen=True)
class Difference:
    """Where a choice and a study's advice are not of one mind about a database, or where today differs from then; and why."""

    name: str
    what: str
    why: str


@dataclass(frozen=True)
class Chosen:
    """A choice for needs, by the facts of then or of today; where the databases were measured; the profile, if the needs are of one,
    and where the study that it is from sees things otherwise.
    """

    needs: tuple[Need, ...]
    when: When
    choice: Choice
    measurements: dict[str, list[Measurement]]
    profile: Profile | None
    differences: tuple[Difference, ...]


def choose_for(
    needs: Sequence[Need],
    when: When,
    profile: Profile | None,
    works: Sequence[Measured],
    evidence: Sequence[EvidenceBundle] = (),
    data_bytes: float | None = None,
) -> Chosen:
    """Chooses databases for needs, and gathers what is said of the choice.

    Args:
        needs: what a database must have, and wishes.
        when: by which facts: those that the studies found, or those of today.
        profile: the use case that the needs are of, if they are of one.
        works: results of the user's own, which are named where a database was measured.
        evidence: bundles of the user's own, likewise; those that are shipped are named, too.
        data_bytes: how much data there will be, if that is known; what was measured with less says how far.

    """
    reference = shipped()
    bundles = list({bundle.sha256: bundle for bundle in [*shipped_evidence(), *evidence]}.values())
    found = {name: measurements(entry, works, bundles, reference, data_bytes) for name, entry in entries().items()}
    return Chosen(
        tuple(needs), when, choose_databases(needs, when), found, profile, tuple(differences(profile)) if profile else ()
    )


def choose_databases(needs: Sequence[Need], when: When) -> Choice:
    """All databases beside the needs, by the facts of then or of today."""
    return choose(needs, [candidate(entry, when) for entry in entries().values()], clashes_of(needs))


def candidate(entry: Entry, when: When) -> Candidate:
    """A database with its words on each axis, and on two that follow from others: how much it holds, and whether it can be
    measured.
    """
    traits = {axis: frozenset(fact.value) for axis in entry.facts if (fact := entry.fact(axis, when))}
    return Candidate(entry.name, {**traits, HOLDS: _holds(traits), MEASURABLE: frozenset({measurable(entry)})})


def described_trait(entry: Entry, axis: str, when: When) -> str:
    """What is true of a database on an axis, in its words and with the note."""
    if axis not in entry.facts:
        return ", ".join(_MEANT[word] for word in candidate(entry, when).traits[axis]) or _NOT_SAID
    fact = entry.fact(axis, when)
    if fact is None:
        return _NOT_SAID
    words = ", ".join(fact.value) or "not known"
    return f"{words} ({fact.note})" if fact.note else words


def differences(profile: Profile) -> list[Difference]:
    """What the chooser says of a profile's own needs otherwise than the study that it is from: by the facts of then, and by those of
    today.
    """
    needs = needs_of(profile.needs, profile.wishes, Machine())
    then, now = (choose_databases(needs, when) for when in ("studied", "today"))
    return [*_from_advice(profile, needs, then), *_since_then(profile, needs, then, now)]


def _holds(traits: dict[str, frozenset[str]]) -> frozenset[str]:
    """Where data lie, and so how much they may be; nothing if that is not known."""
    persistence, distribution = traits.get("persistence"), traits.get("distribution")
    if not persistence or not distribution:
        return frozenset()
    is_in_memory, is_on_one = bool(persistence & _IN_MEMORY), "not-distributed" in distribution
    if is_in_memory:
        return frozenset({"memory" if is_on_one else "memories"})
    return frozenset({"disk" if is_on_one else "disks"})


def _from_advice(profile: Profile, needs: Sequence[Need], choice: Choice) -> list[Difference]:
    """Advised but not chosen, chosen but not advised."""
    advice, found = profile.advice, []
    for outcome in choice.outcomes:
        entry = entries()[outcome.name]
        is_advised = outcome.name in advice.advised or outcome.name in advice.also
        if is_advised and not outcome.fits:
            how = advice.also.get(outcome.name)
            what = f"advised {how}, for what it lacks" if how else "advised; by the study's own facts it does not fit"
            found.append(Difference(outcome.name, what, described_facts(entry, needs, outcome.missing, "studied")))
        elif outcome.fits and not is_advised:
            why = _described_dismissal(profile, outcome.name) or "the study does not mention it for this use case"
            found.append(Difference(outcome.name, "not advised; by the study's own facts it fits", why))
    return found


def _described_dismissal(profile: Profile, name: str) -> str:
    """Why the study dismisses a database; empty if it does not."""
    reason = profile.advice.dismissed.get(name)
    return f"the study dismisses it: {reason}" if reason else ""


def _since_then(profile: Profile, needs: Sequence[Need], then: Choice, now: Choice) -> list[Difference]:
    """What fits today and did not, or could not be known to, and the other way round."""
    before = {outcome.name: outcome for outcome in then.outcomes}
    found = []
    for outcome in now.outcomes:
        entry, old = entries()[outcome.name], before[outcome.name]
        if outcome.fits == old.fits:
            continue
        if not entry.studied:
            found.append(Difference(outcome.name, "fits today", "no study had it"))
            continue
        changed = [need.name for need in needs if outcome.verdicts[need.name] is not old.verdicts[need.name]]
        then_had, now_has = (described_facts(entry, needs, changed, when) for when in WHEN)
        dismissal = _described_dismissal(profile, outcome.name) if outcome.fits else ""
        why = "; ".join(filter(None, [f"then {then_had}", f"today {now_has}", dismissal]))
        found.append(Difference(outcome.name, "fits today, not then" if outcome.fits else "fitted then, not today", why))
    return found


def described_facts(entry: Entry, needs: Sequence[Need], names: Sequence[str], when: When) -> str:
    """What is true of a database where some needs are concerned, needs on one axis together."""
    by_axis: dict[str, list[str]] = {}
    for need in needs:
        if need.name in names:
            by_axis.setdefault(need.axis, []).append(need.name)
    return "; ".join(f"{', '.join(of_axis)}: {described_trait(entry, axis, when)}" for axis, of_axis in by_axis.items())
