"""Whether recommendations hold where they were not made: each bundle of evidence is left out, and then asked what the others recommend."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sensorbench.advisor.source import EvidenceBundle
from sensorbench.analysis.advice import Ranking

# The recommended layout holds where the best there has at most this many times its score.
WITHIN = 1.25


@dataclass(frozen=True)
class LeaveOneOut:
    """The check by bundles.

    Attributes:
        bundles: how many bundles measured what is needed.
        judged: of these, those in which something that the others recommend was measured, so that it could be judged.
        held: of these, those in which the recommended layout was within 25% of the best.

    """

    bundles: int
    judged: int
    held: int

    @property
    def text(self) -> str:
        """The result in words; no figure where it would rest on nothing."""
        if self.bundles < 2:
            measured = "one bundle" if self.bundles == 1 else "no bundle"
            return (
                f"leave-one-bundle-out check: not possible, because {measured} of evidence measured what you need; it takes two"
            )
        if not self.judged:
            return f"leave-one-bundle-out check: not possible, because the {self.bundles} bundles of evidence have no layout in common"
        share = f"within {WITHIN - 1.0:.0%} of the best in {self.held} of {self.judged} bundles that were left out"
        return f"leave-one-bundle-out check: the recommended layout was {share}; it rests on {self.bundles} bundles"


def leave_one_out(
    rankings: Mapping[str, Ranking],
    bundles: Sequence[EvidenceBundle],
    choose: Callable[[Sequence[EvidenceBundle]], EvidenceBundle],
) -> LeaveOneOut:
    """Leaves each bundle out, and looks there for what the others recommend.

    Args:
        rankings: by the SHA-256 of each bundle that measured what is needed.
        bundles: these.
        choose: which of some bundles a recommendation is made from.

    """
    ratios = [
        _ratio(rankings[choose([other for other in bundles if other is not held_out]).sha256], rankings[held_out.sha256])
        for held_out in bundles
        if len(bundles) > 1
    ]
    judged = [ratio for ratio in ratios if ratio is not None]
    return LeaveOneOut(len(bundles), len(judged), sum(ratio <= WITHIN for ratio in judged))


def _ratio(recommended: Ranking, held_out: Ranking) -> float | None:
    """How many times the score of the first layout that both measured the best has where it was held out; None if they have none in common."""
    there = {place.candidate.layout: place.candidate for place in held_out.places}
    first = next((there[key] for place in recommended.places if (key := place.candidate.layout) in there), None)
    return held_out.ratio(held_out.places[0].candidate, first).value if first is not None else None
