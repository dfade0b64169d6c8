"""Group-sequential designs: published boundaries, and how often looking several times errs."""

import numpy as np
import pytest
from scipy import stats

from sensorbench.analysis.sequential import confidences, spent
from sensorbench.claims import Greater, RunValues, look_at
from sensorbench.claims.expression import Figure
from sensorbench.claims.figures import FigureEvidence
from sensorbench.claims.rules import Ratio


def test_boundaries_are_those_that_are_published() -> None:
    """Five equal looks at 5%, two-sided: Reboussin, DeMets, Kim and Lan, Controlled Clinical Trials 21, 2000, Pocock's type."""
    found = confidences((1, 2, 3, 4, 5), 0.95)
    bounds = [stats.norm.isf((1.0 - confidence) / 2) for confidence in found]
    assert bounds == pytest.approx([2.438, 2.427, 2.410, 2.397, 2.386], abs=6e-4)


def test_a_single_look_has_the_whole_confidence_and_all_looks_spend_the_whole_error() -> None:
    assert confidences((3,), 0.95)[0] == pytest.approx(0.95, abs=1e-9)
    assert spent(1.0, 0.025) == pytest.approx(0.025)


def test_looking_twice_at_few_runs_errs_no_more_often_than_once() -> None:
    """Student's t at three and at five runs, without an effect: each side errs in at most 2.5%, and more often without the design."""
    logs = np.random.default_rng(1).normal(size=(40_000, 5))

    def errs(levels: tuple[float, ...]) -> float:
        above = np.zeros(len(logs), dtype=bool)
        for runs, confidence in zip((3, 5), levels, strict=True):
            first = logs[:, :runs]
            t = first.mean(axis=1) / first.std(axis=1, ddof=1) * np.sqrt(runs)
            above |= t > stats.t.ppf(0.5 + confidence / 2, runs - 1)
        return float(above.mean())

    # The standard error is 0.08%.
    assert errs(confidences((3, 5), 0.95)) <= 0.028
    assert errs((0.95, 0.95)) > 0.035


class Ratios(FigureEvidence):
    """One formula, by run."""

    def __init__(self, values: list[float]) -> None:
        self._values = values

    def values(self, figure: Figure) -> RunValues:
        return RunValues(dict(enumerate(self._values)))

    @classmethod
    def of(cls, *values: float) -> "Ratios":
        return cls(list(values))

    def up_to(self, runs: int) -> "Ratios":
        return Ratios(self._values[:runs])


GREATER = [Greater(kind="greater", of="speed(a)", at_least=1.05)]
RATIO = [Ratio(kind="ratio", of="speed(a)", published=1.4)]


def test_what_a_look_has_decided_stays() -> None:
    """The last two runs say the contrary, and would leave it open."""
    evidence = Ratios.of(1.50, 1.51, 1.49, 0.5, 0.5)
    assert look_at(GREATER, evidence.up_to, (5,), 5).judgement.verdict == "inconclusive"
    looked = look_at(GREATER, evidence.up_to, (3, 5), 5)
    assert (looked.judgement.verdict, looked.runs, looked.goes_on) == ("reproduced", 3, False)


def test_what_is_open_goes_on_until_the_last_look() -> None:
    evidence = Ratios.of(1.2, 1.0, 1.3, 1.25, 1.2)
    assert look_at(GREATER, evidence.up_to, (3, 5), 3).goes_on
    ended = look_at(GREATER, evidence.up_to, (3, 5), 5)
    assert (ended.judgement.verdict, ended.goes_on) == ("inconclusive", False)


def test_before_the_first_look_is_complete_nothing_is_decided_for_good() -> None:
    assert look_at(GREATER, Ratios.of(1.50, 1.51).up_to, (3, 5), 2).goes_on


def test_a_direction_without_a_magnitude_goes_on_and_is_kept() -> None:
    """At three runs the direction is clear, and the magnitude is not; two more runs blur both."""
    evidence = Ratios.of(1.20, 1.22, 1.26, 1.5, 1.0)
    first = look_at(RATIO, evidence.up_to, (3, 5), 3)
    assert (first.judgement.verdict, first.judgement.is_open, first.goes_on) == ("partly reproduced", True, True)
    last = look_at(RATIO, evidence.up_to, (3, 5), 5)
    assert (last.judgement.verdict, last.goes_on) == ("partly reproduced", False)
