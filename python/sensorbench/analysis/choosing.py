"""Which candidates meet which needs, and which needs stand in one another's way.

A candidate has traits: on each axis the words that are true of it, or nothing if that is not known. A need is met by any of
some words on one axis. What is not known does not meet a need, and is distinguished from what does not. Needs may clash: each can be
met, but never all of them at once. Selection is the source's: list the least that is needed on each axis, and maximise the number
that is met (study of elastic databases, use-case advice).

Where no candidate is left, needs have to be dropped. The smallest sets whose dropping leaves a candidate are found by trying sets
of one need, of two, and so on: minimal correction sets (Liffiton and Sakallah, "Algorithms for computing minimal unsatisfiable
subsets of constraints", Journal of Automated Reasoning 40, 2008), of which there are few, as people have few needs.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations


class Verdict(StrEnum):
    """What a candidate is to a need."""

    MET = "met"
    NOT_MET = "not met"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Need:
    """Met by any of the words `accepts` on an axis. A wish counts, but nobody falls out for it."""

    name: str
    axis: str
    accepts: frozenset[str]
    is_must: bool = True


@dataclass(frozen=True)
class Clash:
    """Needs, by name, that nobody meets at once, and why."""

    needs: frozenset[str]
    why: str


@dataclass(frozen=True)
class Candidate:
    """Its words on each axis; none where they are not known."""

    name: str
    traits: Mapping[str, frozenset[str]]

    def verdict(self, need: Need) -> Verdict:
        """Whether it meets a need."""
        words = self.traits.get(need.axis, frozenset())
        if not words:
            return Verdict.UNKNOWN
        return Verdict.MET if words & need.accepts else Verdict.NOT_MET


@dataclass(frozen=True)
class Outcome:
    """A candidate, its verdict on each need, by name; the musts that it is not known to meet; the clashes of musts that it would meet one
    by one.
    """

    name: str
    verdicts: Mapping[str, Verdict]
    missing: tuple[str, ...]
    clashes: tuple[Clash, ...]
    wishes_met: int

    @property
    def fits(self) -> bool:
        """Whether it meets all that must be."""
        return not self.missing and not self.clashes

    def fits_without(self, dropped: AbstractSet[str]) -> bool:
        """Whether it would, if some needs were none."""
        return dropped >= set(self.missing) and all(dropped & clash.needs for clash in self.clashes)


@dataclass(frozen=True)
class Drop:
    """Needs whose dropping leaves candidates, and those."""

    needs: tuple[str, ...]
    leaves: tuple[str, ...]


@dataclass(frozen=True)
class Choice:
    """Outcomes, those first that miss least and then those that meet most wishes; and the smallest sets to drop, if none fits."""

    outcomes: tuple[Outcome, ...]
    to_drop: tuple[Drop, ...]

    @property
    def fitting(self) -> tuple[str, ...]:
        """The candidates that meet all that must be."""
        return tuple(outcome.name for outcome in self.outcomes if outcome.fits)


def choose(needs: Sequence[Need], candidates: Sequence[Candidate], clashes: Sequence[Clash] = ()) -> Choice:
    """Sets candidates beside needs, whose names differ. Equal candidates stay in their order."""
    outcomes = [_outcome(needs, candidate, clashes) for candidate in candidates]
    ordered = tuple(sorted(outcomes, key=lambda outcome: (len(outcome.missing) + len(outcome.clashes), -outcome.wishes_met)))
    return Choice(ordered, () if any(outcome.fits for outcome in ordered) else _smallest_drops(needs, ordered))


def _smallest_drops(needs: Sequence[Need], outcomes: Sequence[Outcome]) -> tuple[Drop, ...]:
    """All smallest sets of musts whose dropping leaves a candidate, each with those that it leaves."""
    musts = [need.name for need in needs if need.is_must]
    for size in range(1, len(musts) + 1):
        tried = [
            (names, tuple(outcome.name for outcome in outcomes if outcome.fits_without(set(names))))
            for names in combinations(musts, size)
        ]
        if found := tuple(Drop(names, leaves) for names, leaves in tried if leaves):
            return found
    return ()


def _outcome(needs: Sequence[Need], candidate: Candidate, clashes: Sequence[Clash]) -> Outcome:
    verdicts = {need.name: candidate.verdict(need) for need in needs}
    met = {need.name for need in needs if need.is_must and verdicts[need.name] is Verdict.MET}
    return Outcome(
        name=candidate.name,
        verdicts=verdicts,
        missing=tuple(need.name for need in needs if need.is_must and need.name not in met),
        clashes=tuple(clash for clash in clashes if clash.needs <= met),
        wishes_met=sum(not need.is_must and verdicts[need.name] is Verdict.MET for need in needs),
    )
