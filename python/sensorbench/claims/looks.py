"""Claims that are judged several times while runs are made, until they are decided: a group-sequential design.

Each look judges by intervals that are so confident that all looks together err as often as one (`analysis/sequential.py`). What a look has
decided stays, whatever comes later.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sensorbench.analysis.intervals import CONFIDENCE
from sensorbench.analysis.sequential import confidences
from sensorbench.claims import rules
from sensorbench.claims.deciding import decide
from sensorbench.claims.figures import FigureEvidence
from sensorbench.claims.judgement import Judgement

# What was measured in the runs up to a number.
EvidenceUpTo = Callable[[int], FigureEvidence]


@dataclass(frozen=True)
class LookedAt:
    """What a claim's looks say so far: its verdict, and after how many runs that was found. `goes_on`: later looks may decide it."""

    judgement: Judgement
    runs: int
    goes_on: bool


def look_at(all_rules: Sequence[rules.Rule], evidence: EvidenceUpTo, looks: Sequence[int], runs: int) -> LookedAt:
    """What the looks say of the rules of a claim.

    Args:
        all_rules: of the claim.
        evidence: what was measured in the runs up to a number.
        looks: after how many runs is looked, rising.
        runs: how many there are of everything that the claim needs. With fewer than the first look needs, that look says what it can.

    """
    found: list[LookedAt] = []
    for number, confidence in zip(looks, confidences(tuple(looks), CONFIDENCE), strict=True):
        if found and number > runs:
            break
        found.append(LookedAt(decide(all_rules, evidence(number), confidence), number, goes_on=True))
        if not found[-1].judgement.is_open and number <= runs:
            return LookedAt(found[-1].judgement, number, goes_on=False)
    # A direction that was found stays found where its magnitude never is.
    directed = [look for look in found if look.judgement.verdict == "partly reproduced"]
    last = directed[-1] if directed else found[-1]
    return LookedAt(last.judgement, last.runs, goes_on=runs < looks[-1])
