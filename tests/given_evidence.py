"""Evidence with figures that are known: what claims say of them can be said beforehand."""

from collections.abc import Mapping

from sensorbench.claims import Claim, Figure, FigureEvidence, Judgement, RunValues, decide
from sensorbench.claims.simulation import MAX_FALSE, Outcome, Scenario, is_decidable, simulate_all

# Each figure is that of three runs, which differ by so much.
NOISE = (0.999, 1.0, 1.001)
# Of 200 simulations, more than this are more than 5 % in truth with a probability of 99.9 %: binomial.
SIMULATIONS = 200
MOST_FALSE = 22 / SIMULATIONS


class GivenEvidence(FigureEvidence):
    """Figures by how claims write them, and scales. What is not given was not measured."""

    def __init__(self, figures: Mapping[str, float], scales: Mapping[str, float] | None = None) -> None:
        self.figures, self.scales = figures, scales or {}

    def values(self, figure: Figure) -> RunValues | None:
        value = self.figures.get(str(figure))
        return None if value is None else RunValues({run: value * noise for run, noise in enumerate(NOISE)})

    def scale(self, name: str) -> float | None:
        return self.scales.get(name)


def verdict_on(claim: Claim, figures: Mapping[str, float]) -> Judgement:
    """What the rules of a claim say of figures."""
    return decide(claim.rules, GivenEvidence(figures))


def check_simulated(claim: Claim) -> dict[Scenario, Outcome]:
    """Simulates a claim at ten repetitions, where runs vary by 10 %: it errs in at most 5 % of all cases, but for chance."""
    outcomes = simulate_all(claim.rules, repetitions=10, variation=0.10, simulations=SIMULATIONS)
    false = outcomes["null"].of("reproduced", "partly reproduced")
    assert false <= MOST_FALSE, f"{claim.id} is reproduced in {false:.0%} of all cases where nothing is to be seen"
    denied = outcomes["effect"].of("not reproduced")
    assert denied <= MOST_FALSE, f"{claim.id} is denied in {denied:.0%} of all cases under the published effect"
    return outcomes


__all__ = ["MAX_FALSE", "GivenEvidence", "check_simulated", "is_decidable", "verdict_on"]
