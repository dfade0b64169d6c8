"""What a rule says of evidence that is made up from a model of runs, so that it is known how often it errs.

The model: each run gives a formula the value that is true, times a log-normal factor of its own (runs of one machine differ) for each of its
figures. In which world the runs were made is a `Scenario`: at the rule's null, where nothing relevant is to be seen; under the effect that the
paper published, or, where it printed no figure, one that is half as large again as the smallest relevant; and under the contrary. What is measured once
is drawn once, with at most the variation that its interval assumes.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sensorbench.analysis.intervals import CONFIDENCE, Interval, mean_over_runs, spread_over_runs
from sensorbench.claims import rules
from sensorbench.claims.deciding import decide
from sensorbench.claims.expression import Expression, Figure
from sensorbench.claims.figures import (
    LOAD_VARIATION,
    SIZE_VARIATION,
    FigureEvidence,
    RunValues,
    WindowedSeries,
    interval_of,
)
from sensorbench.claims.judgement import Verdict
from sensorbench.claims.looks import look_at

Scenario = Literal["null", "effect", "contrary"]
SCENARIOS: tuple[Scenario, ...] = ("null", "effect", "contrary")
# Between-run coefficients of variation.
VARIATIONS = (0.05, 0.10, 0.20)
REPETITIONS = (3, 5, 10)
# What is promised of every rule.
MAX_FALSE, MIN_RIGHT = 0.05, 0.80
# Where a paper printed no figure, its effect is taken to be this many times the smallest relevant one.
UNPRINTED_EFFECT = 1.5
OPERATIONS_PER_RUN = 1_000
SERIES_LENGTH, WINDOW_LENGTH = 120, 5

# Quantities that are measured once, and how much they vary at most.
ONCE: Mapping[str, float] = {
    "load_s": LOAD_VARIATION,
    "size_bytes": SIZE_VARIATION,
    "partition_bytes": SIZE_VARIATION,
    "year_bytes": SIZE_VARIATION,
    "five_years_bytes": SIZE_VARIATION,
    # Numbers of nodes and workers are known.
    "nodes": 0.0,
    "growth": 0.0,
    # So are the bytes of a dataset as text, and how many of its records were loaded.
    "raw_bytes": 0.0,
    "loaded_share": 0.0,
}


@dataclass(frozen=True)
class Outcome:
    """How often a claim got each verdict, as shares; and after how many runs in the mean, where it is looked at several times."""

    shares: Mapping[Verdict, float]
    mean_runs: float

    def of(self, *verdicts: Verdict) -> float:
        """The share of some verdicts together."""
        return sum(self.shares.get(verdict, 0.0) for verdict in verdicts)


def simulate(
    claim_rules: Sequence[rules.Rule],
    scenario: Scenario,
    *,
    repetitions: int,
    variation: float,
    simulations: int,
    seed: int = 0,
    looks: Sequence[int] = (),
) -> Outcome:
    """How often the rules of a claim give each verdict in a world.

    Args:
        claim_rules: all rules of a claim, or one rule.
        scenario: the world.
        repetitions: runs of each variant.
        variation: the coefficient of variation between runs.
        simulations: how often the runs are made.
        seed: of the random numbers.
        looks: after how many repetitions it is looked whether the claim is decided, the last after all; none where all are made at once.

    """
    generator = np.random.default_rng(seed)
    instances = [instance for rule in claim_rules for instance in _instances(rule)]
    verdicts: Counter[Verdict] = Counter()
    runs = 0
    for _ in range(simulations):
        evidence = _Simulated(instances, scenario, repetitions, variation, generator)
        verdict, needed = _judged(claim_rules, evidence, looks) if looks else (decide(claim_rules, evidence).verdict, repetitions)
        verdicts[verdict] += 1
        runs += needed
    return Outcome({verdict: count / simulations for verdict, count in verdicts.items()}, runs / simulations)


def simulate_all(
    claim_rules: Sequence[rules.Rule],
    *,
    repetitions: int,
    variation: float,
    simulations: int,
    seed: int = 0,
    looks: Sequence[int] = (),
) -> dict[Scenario, Outcome]:
    """The same in each world."""
    return {
        scenario: simulate(
            claim_rules,
            scenario,
            repetitions=repetitions,
            variation=variation,
            simulations=simulations,
            seed=seed,
            looks=looks,
        )
        for scenario in SCENARIOS
    }


def _judged(claim_rules: Sequence[rules.Rule], evidence: "_Simulated", looks: Sequence[int]) -> tuple[Verdict, int]:
    """The verdict of a claim whose runs end when a look has decided it, and how many runs were made."""
    looked = look_at(claim_rules, evidence.up_to, looks, looks[-1])
    return looked.judgement.verdict, looks[-1] if looked.judgement.is_open else looked.runs


def _instances(rule: Any) -> list[Any]:
    """The comparisons that a rule is made of."""
    return [
        part for instance in rule.expanded() for part in (instance.pairs() if isinstance(instance, rules.Order) else [instance])
    ]


class _Simulated(FigureEvidence):
    """Runs of one world, made when they are asked for, and then kept: formulas that occur twice were measured once."""

    def __init__(
        self, instances: Sequence[Any], scenario: Scenario, repetitions: int, variation: float, generator: np.random.Generator
    ) -> None:
        self._repetitions, self._variation, self._generator = repetitions, variation, generator
        self._worlds = {formula: (rule, scenario) for rule in instances for formula in rule.formulas()}
        self._levels = {}
        self._used = repetitions
        # All runs are made at once, and looked at in part.
        self._noises: dict[str, Any] = {}
        self._series: dict[Figure, list[WindowedSeries]] = {}
        for rule in instances:
            if isinstance(rule, rules.Trend):
                self._levels.update(_true_levels(rule, scenario))

    def up_to(self, runs: int) -> "_Simulated":
        """The same, of the first runs alone."""
        first = copy(self)
        first._used = runs
        return first

    def values(self, figure: Figure) -> RunValues:
        """A figure by run: a level of a trend, or a number that is counted."""
        rule, scenario = self._worlds.get(str(figure), (None, "effect"))
        if isinstance(rule, rules.Count):
            return RunValues(dict.fromkeys(range(self._used), _true_count(rule, scenario)))
        truth = self._levels.get(str(figure), 1.0)
        return RunValues(dict(enumerate(truth * np.exp(self._noise(f"values of {figure}", self._variation)))))

    def _noise(self, what: str, size: float) -> Any:
        """By how much the runs that are used differ from what is true, drawn once."""
        if what not in self._noises:
            self._noises[what] = self._generator.normal(0.0, size, self._repetitions)
        return self._noises[what][: self._used]

    def interval(self, expression: Expression, confidence: float = CONFIDENCE, *, is_ratio: bool = True) -> Interval | None:
        """The interval of a formula, of which a rule says what is true."""
        if expression.text not in self._worlds:
            return super().interval(expression, confidence, is_ratio=is_ratio)
        return self._interval(expression, *self._worlds[expression.text], confidence)

    def _interval(self, expression: Expression, rule: Any, scenario: Scenario, confidence: float) -> Interval | None:
        truth = true_value(rule, scenario)
        weights = expression.weights
        if weights is None or (
            isinstance(rule, rules.Threshold) and not any(figure.quantity in ONCE for figure in expression.figures)
        ):
            size = self._variation * _size(expression, rule)
            return mean_over_runs(truth + self._noise(f"mean of {expression}", size), confidence)
        variations = [min(self._variation, ONCE.get(figure.quantity, math.inf)) for figure in expression.figures]
        is_once = any(figure.quantity in ONCE for figure in expression.figures)
        spread = math.sqrt(sum((weight * of) ** 2 for weight, of in zip(weights, variations, strict=True)))
        if not is_once:
            return spread_over_runs(truth * np.exp(self._noise(f"product of {expression}", spread)), confidence)
        made = [self._made(figure, of, expression) for figure, of in zip(expression.figures, variations, strict=True)]
        # All of the effect is in the first figure.
        shift = (truth / expression.factor) ** (1.0 / weights[0])
        made[0] = RunValues(
            {run: value * shift for run, value in made[0].by_run.items()}, made[0].group, made[0].assumed_variation
        )
        return interval_of(expression, made, confidence)

    def _made(self, figure: Figure, variation: float, expression: Expression) -> RunValues:
        what = f"{figure} in {expression}"
        if figure.quantity in ONCE:
            if what not in self._noises:
                self._noises[what] = self._generator.normal(0.0, variation)
            return RunValues.once(math.exp(self._noises[what]), ONCE[figure.quantity]) or RunValues({})
        return RunValues(dict(enumerate(np.exp(self._noise(what, variation)))))

    def shares(self, figure: Figure) -> list[tuple[int, int]]:
        """Of each run, how many operations are meant, and of how many."""
        rule, scenario = self._worlds[str(figure)]
        share = _true_share(rule, scenario)
        what = f"hits of {figure}"
        if what not in self._noises:
            odds = share / (1.0 - share) * np.exp(self._generator.normal(0.0, self._variation, self._repetitions))
            self._noises[what] = self._generator.binomial(OPERATIONS_PER_RUN, odds / (1.0 + odds))
        return [(int(of_run), OPERATIONS_PER_RUN) for of_run in self._noises[what][: self._used]]

    def series(self, figure: Figure) -> list[WindowedSeries]:
        """A series of each run, whose values next to each other are alike, and a window after it."""
        rule, scenario = self._worlds[str(figure)]
        if figure not in self._series:
            self._series[figure] = [_series(rule, scenario, self._variation, self._generator) for _ in range(self._repetitions)]
        return self._series[figure][: self._used]


def true_value(rule: Any, scenario: Scenario) -> float:
    """What is true of the formula of a rule in a world."""
    match rule:
        case rules.Ratio():
            towards = rules.number(rule.at_least) if rule.published > 1.0 else 1.0 / rules.number(rule.at_least)
            return {"null": towards, "effect": rule.published, "contrary": 1.0 / rule.published}[scenario]
        case rules.Greater():
            at_least = rules.number(rule.at_least)
            effect = rule.expected or UNPRINTED_EFFECT * at_least
            return {"null": at_least, "effect": effect, "contrary": 1.0 / effect}[scenario]
        case rules.Equal():
            beyond = 1.0 + rules.number(rule.margin)
            return {"null": beyond, "effect": 1.0, "contrary": beyond * UNPRINTED_EFFECT}[scenario]
        case rules.NoLess():
            margin = 1.0 + rules.number(rule.margin)
            return {"null": 1.0 / margin, "effect": rule.expected or 1.0, "contrary": 1.0 / margin / UNPRINTED_EFFECT}[scenario]
        case rules.Threshold():
            limits = [limit for limit in (rule.above, rule.below) if limit is not None]
            nearest = min(limits, key=lambda limit: abs(limit - rule.contrary))
            return {"null": nearest, "effect": rule.expected, "contrary": rule.contrary}[scenario]
    raise AssertionError(f"nothing is known to be true of {rule!r}")


def _size(expression: Expression, rule: Any) -> float:
    """By how large a number a formula varies with its figures: a sum with theirs where the rule says it, else with what it is about; a product
    of powers with each of its figures.
    """
    size = max(abs(true_value(rule, world)) for world in SCENARIOS)
    if expression.weights is not None:
        return size * math.sqrt(sum(weight**2 for weight in expression.weights))
    if getattr(rule, "size", None) and expression.coefficients is not None:
        return float(rule.size * np.sqrt(np.square(expression.coefficients).sum()))
    return size


def _true_levels(rule: rules.Trend, scenario: Scenario) -> dict[str, float]:
    """The levels of a trend: none, one to the last level by equal factors, or the contrary."""
    last = rule.expected or UNPRINTED_EFFECT * rules.number(rule.at_least)
    power = {"null": 0.0, "effect": 1.0, "contrary": -1.0}[scenario]
    steps = np.linspace(0.0, 1.0, len(rule.of))
    return {
        str(Expression.parse(level).figures[0]): float(last ** (power * step)) for level, step in zip(rule.of, steps, strict=True)
    }


def _true_share(rule: rules.Share, scenario: Scenario) -> float:
    limit = rule.above if rule.above is not None else rule.below
    if limit is None:
        raise AssertionError(f"a share without a limit: {rule!r}")
    high, low = (1.0 + limit) / 2, limit / 2
    effect, contrary = (high, low) if rule.above is not None else (low, high)
    return {"null": limit, "effect": effect, "contrary": contrary}[scenario]


def _true_count(rule: rules.Count, scenario: Scenario) -> float:
    """A count has no null of its own: just outside of what is claimed."""
    inside = rule.min if rule.min is not None else rule.max
    outside = rule.min - 1 if rule.min is not None else (rule.max or 0.0) + 1
    return float(inside or 0.0) if scenario == "effect" else float(outside)


def _series(rule: rules.Extreme, scenario: Scenario, variation: float, generator: np.random.Generator) -> WindowedSeries:
    noise = generator.normal(0.0, variation, SERIES_LENGTH + WINDOW_LENGTH)
    logs = np.empty_like(noise)
    logs[0] = noise[0]
    for number in range(1, len(noise)):
        logs[number] = 0.5 * logs[number - 1] + math.sqrt(0.75) * noise[number]
    values = np.exp(logs)
    window = values[SERIES_LENGTH:]
    effect = rule.published or UNPRINTED_EFFECT * rules.number(rule.at_least)
    has_effect = (scenario == "effect") != rule.absent if scenario != "null" else rule.absent
    if has_effect:
        position = int(generator.integers(len(window)))
        window = window.copy()
        window[position] *= effect if rule.side == "max" else 1.0 / effect
    return WindowedSeries(values[:SERIES_LENGTH], window)
