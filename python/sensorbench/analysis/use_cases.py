"""The six use cases of the sensor-schema study (Katsantonis 2014, conclusion), with the layout that it
recommends for each, and what measurements say of them.

The source has no advice where neither writing nor reading is high.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sensorbench.analysis.advice import Needs, Place, Ranking, rank
from sensorbench.analysis.candidate import Candidate
from sensorbench.analysis.intervals import Interval


@dataclass(frozen=True)
class UseCase:
    """A use case, by the number of the claim about it, and the layout that the source recommends: its schema and parameters."""

    id: str
    needs: Needs
    advice: str
    schema: str
    parameters: dict[str, str]

    @property
    def text(self) -> str:
        """The need in words."""
        newest = "newest readings at once" if self.needs.fresh else "newest readings may wait"
        return f"writes {self.needs.writes}, reads {self.needs.reads}, {newest}"

    def is_advised(self, candidate: Candidate) -> bool:
        """Whether a layout is the one that the source recommends."""
        return candidate.schema == self.schema and self.parameters.items() <= candidate.parameters.items()


def _typed(width: str) -> tuple[str, str, dict[str, str]]:
    return f"typed, M1, {width.removesuffix('MB')} MB", "typed", {"metadata": "same_table", "width": width}


def _batched(width: str) -> tuple[str, str, dict[str, str]]:
    return f"batched, M2, {width.removesuffix('MB')} MB", "batched", {"metadata": "own_table", "width": width}


USE_CASES = (
    UseCase("SCH-U1", Needs("high", "high", fresh=True), *_typed("15MB")),
    UseCase("SCH-U2", Needs("high", "high", fresh=False), *_batched("10MB")),
    UseCase("SCH-U3", Needs("high", "low", fresh=True), *_typed("5MB")),
    UseCase("SCH-U4", Needs("high", "low", fresh=False), *_batched("20MB")),
    UseCase("SCH-U5", Needs("low", "high", fresh=True), *_typed("15MB")),
    UseCase("SCH-U6", Needs("low", "high", fresh=False), *_batched("13MB")),
)
"""In the order of the source."""


@dataclass(frozen=True)
class Outcome:
    """A use case by what was measured: the best layout, and where the source's stands. `over_advised` is how many times the
    latter's score the best one has. `at_target` is the same among the layouts at the target of the source's, where it was
    measured.
    """

    use_case: UseCase
    ranking: Ranking
    best: Place | None
    advised: Place | None
    over_advised: Interval | None
    at_target: "Outcome | None" = None

    @property
    def advised_place(self) -> int | None:
        """The place of the source's layout, from 1 on."""
        return self.ranking.place_of(self.advised.candidate) if self.advised else None


def outcome(use_case: UseCase, candidates: Sequence[Candidate]) -> Outcome:
    """What measurements say of a use case."""
    among_all = _among(use_case, candidates)
    if among_all.advised is None:
        return among_all
    target = among_all.advised.candidate.target
    return replace(among_all, at_target=_among(use_case, [candidate for candidate in candidates if candidate.target == target]))


def _among(use_case: UseCase, candidates: Sequence[Candidate]) -> Outcome:
    ranking = rank(use_case.needs, candidates)
    best = ranking.places[0] if ranking.places else None
    advised = next((place for place in ranking.places if use_case.is_advised(place.candidate)), None)
    over_advised = ranking.ratio(best.candidate, advised.candidate) if best and advised else None
    return Outcome(use_case, ranking, best, advised, over_advised)
