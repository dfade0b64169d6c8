"""Studies of factors: what varies is settings of a server, not databases and schemas. Their claims are judged by the figures of levels."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from sensorbench import toml_file
from sensorbench.analysis.intervals import MIN_RUNS, Interval, mean_over_runs
from sensorbench.benchmarks.factors import FactorsFile, by_round, measurements_of, ratio, summarise_factors
from sensorbench.claims import NOT_MEASURED, Claim, ClaimsFile, Judgement, judged_claim, needs, untested_for
from sensorbench.results.factors import CellMeasurement, FactorsResult, Where
from sensorbench.results.summary.claims import JudgedClaim
from sensorbench.results.summary.factors import FactorsSummary, PublishedFigure

FactorJudge = Callable[["FactorEvidence"], Judgement]


class FactorEvidence:
    """What was measured, by parts and levels."""

    def __init__(self, file: FactorsFile, result: FactorsResult) -> None:
        self.file = file
        self.result = result

    def has(self, part: str) -> bool:
        """Whether a part was run."""
        return part in self.result.manifest.plan.parts

    def measurements(self, load: str, part: str, level: str) -> Sequence[CellMeasurement]:
        """The measurements of a level under a load."""
        return measurements_of(self.result, load, (part, level))

    def values(self, load: str, part: str, level: str, where: Where, figure: str) -> dict[int, float]:
        """A figure of a level by round."""
        return by_round(self.measurements(load, part, level), where, figure)

    def ratio(self, load: str, part: str, levels: tuple[str, str], where: Where, figure: str) -> Interval | None:
        """The ratio of a figure of the first level to that of the second; None where no round has both above 0."""
        sequence, other = (self.measurements(load, part, level) for level in levels)
        return ratio(sequence, other, where, figure)

    def mean(self, of_rounds: Callable[[int], float | None]) -> Interval | None:
        """The mean of what is made of the figures of each round; None where no round has it."""
        rounds = range(1, self.result.manifest.plan.rounds + 1)
        values = [value for number in rounds if (value := of_rounds(number)) is not None]
        return mean_over_runs(np.array(values)) if values else None


@dataclass(frozen=True)
class FactorStudy:
    """A study of factors: what it varies, its claims, how each is judged, and what the paper printed."""

    name: str
    file: FactorsFile
    claims: tuple[Claim, ...]
    judges: dict[str, FactorJudge]
    published: Sequence[PublishedFigure] = ()

    @classmethod
    def load(
        cls, folder: Path, judges: dict[str, FactorJudge], published: Callable[[Path], Sequence[PublishedFigure]]
    ) -> "FactorStudy":
        """The study in a folder of the package. Every claim that lacks nothing must have a judge and name parts that are there."""
        claims = toml_file.load(folder / "claims.toml", ClaimsFile).claim
        file = toml_file.load(folder / "study.toml", FactorsFile)
        judged = {claim.id for claim in claims if not claim.blocked_by}
        homeless = [claim.id for claim in claims if not set(claim.parts) <= file.parts.keys()]
        if judged != judges.keys() or homeless:
            raise AssertionError(f"{folder}: claims, judges and parts do not fit: {judged ^ judges.keys()}, {homeless}")
        return cls(folder.name.replace("_", "-"), file, tuple(claims), judges, published(folder / "published.csv"))

    def summarise(self, result: FactorsResult) -> FactorsSummary:
        """The summary of results of this study, with its judged claims and what the paper printed."""
        evidence = FactorEvidence(self.file, result)
        return summarise_factors(self.file, result, [self._judged(claim, evidence) for claim in self.claims], self.published)

    def _judged(self, claim: Claim, evidence: FactorEvidence) -> JudgedClaim:
        absent = [part for part in claim.parts if not evidence.has(part)]
        if claim.blocked_by or absent:
            return judged_claim(claim, needs(claim), untested_for(claim.blocked_by or f"part {absent[0]} was not run"))
        if evidence.result.manifest.plan.scale < claim.min_scale:
            why = f"needs scale {claim.min_scale:g}: {claim.scale_matters}"
            return judged_claim(claim, needs(claim), Judgement("not tested at this scale", None, why))
        return judged_claim(claim, needs(claim), self.judges[claim.id](evidence))


def difference(interval: Interval | None, *, below: float, unit: str = "") -> Judgement:
    """Judges "this difference is below a limit", by its interval."""
    if interval is None:
        return untested_for(NOT_MEASURED)
    shown = asdict(interval)
    if interval.low is None or interval.high is None:
        return Judgement("inconclusive", shown, f"{interval.runs} rounds; at least {MIN_RUNS} are needed (--repeat {MIN_RUNS})")
    if interval.high < below:
        return Judgement("holds", shown, f"the interval lies below {below:g}{unit}")
    if interval.low > below:
        return Judgement("does not hold", shown, f"the interval lies above {below:g}{unit}")
    return Judgement("inconclusive", shown, f"the interval holds {below:g}{unit}")
