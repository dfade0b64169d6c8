"""Evidence with figures that are known: what claims say of them can be said beforehand."""

from collections.abc import Mapping

from sensorbench.claims import Claim, Figure, FigureEvidence, Judgement, RunValues, decide

# Each figure is that of three runs, which differ by this much.
NOISE = (0.999, 1.0, 1.001)


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
