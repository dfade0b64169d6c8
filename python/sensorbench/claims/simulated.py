"""What the simulation of each claim gave (`make bench-claims`), as it lies in the package: by it, reports say what a claim would need."""

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict

from sensorbench.claims.claim import Claim
from sensorbench.claims.simulation import MAX_FALSE, MIN_RIGHT, Outcome, Scenario

FILE = Path(__file__).parent / "simulated.json"


class SimulatedCell(BaseModel):
    """How often a claim got which verdict, as shares: (partly) reproduced at its null; reproduced, and denied, under its effect; not reproduced
    under the contrary.
    """

    model_config = ConfigDict(frozen=True)

    repetitions: int
    variation: float
    null: float
    effect: float
    denied: float
    contrary: float
    # Under its effect, of a claim that is looked at several times.
    mean_runs: float | None = None

    @classmethod
    def of(cls, repetitions: int, variation: float, outcomes: Mapping[Scenario, Outcome]) -> Self:
        """The shares that matter."""
        return cls(
            repetitions=repetitions,
            variation=variation,
            null=outcomes["null"].of("reproduced", "partly reproduced"),
            effect=outcomes["effect"].of("reproduced"),
            denied=outcomes["effect"].of("not reproduced"),
            contrary=outcomes["contrary"].of("not reproduced"),
        )

    @classmethod
    def of_looks(cls, repetitions: int, variation: float, outcomes: Mapping[Scenario, Outcome]) -> Self:
        """The same of runs that end when a look has decided the claim."""
        return cls.of(repetitions, variation, outcomes).model_copy(update={"mean_runs": outcomes["effect"].mean_runs})

    @property
    def is_decidable(self) -> bool:
        """Whether the claim keeps what is promised of every rule."""
        return self.null <= MAX_FALSE and self.effect >= MIN_RIGHT and self.denied <= MAX_FALSE and self.contrary >= MIN_RIGHT


class SimulatedClaim(BaseModel):
    """What was found of a claim, and of which rules."""

    rules: str
    cells: list[SimulatedCell]
    # Of a study that looks at its claims while it runs: after how many runs, and what was found then.
    looks: list[int] = []
    at_looks: list[SimulatedCell] = []

    def repetitions_at(self, variation: float) -> int | None:
        """From how many repetitions on it is decidable where runs vary this much; None if ten are too few."""
        return min((cell.repetitions for cell in self.cells if cell.variation == variation and cell.is_decidable), default=None)

    def repetitions(self) -> dict[str, int | None]:
        """The same by variation."""
        return {
            f"{variation:.0%}": self.repetitions_at(variation)
            for variation in dict.fromkeys(cell.variation for cell in self.cells)
        }


class SimulatedClaims(BaseModel):
    """`simulated.json`."""

    simulations: int
    # This many for claims that are looked at while runs are made.
    simulations_of_looks: int
    claims: dict[str, SimulatedClaim]


def fingerprint(claim: Claim) -> str:
    """What distinguishes the rules of a claim from others: a simulation is of these."""
    text = "\n".join(rule.model_dump_json(exclude={"name"}) for rule in claim.rules)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@cache
def simulated_claims() -> SimulatedClaims:
    """What was found of all claims."""
    return SimulatedClaims.model_validate_json(FILE.read_text(encoding="utf-8"))
