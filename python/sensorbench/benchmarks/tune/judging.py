"""What the trials of a search say: each by its ratio to the default around it, and which configuration was best."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sensorbench.benchmarks.tune.drift import default_at
from sensorbench.benchmarks.tune.space import Choice, Configuration
from sensorbench.results.tune import Measurement


@dataclass(frozen=True)
class Judged:
    """A trial, and its figure over what the default's was at that time; None if one of them is not known."""

    trial: Measurement
    ratio: float | None


@dataclass(frozen=True)
class Best:
    """A configuration that was best in the search: what was chosen, the geometric mean of its ratios, and of how many
    trials.
    """

    configuration: Configuration
    choices: dict[str, Choice]
    ratio: float
    trials: int


def judged(trials: Sequence[Measurement]) -> list[Judged]:
    """Each trial with its ratio."""
    measured = [(place, trial) for place, trial in enumerate(trials) if trial.role == "default" and _is_measured(trial)]
    defaults = {place: measurement.value for place, measurement in measured if measurement.value}
    return [
        Judged(trial, trial.value / default_at(defaults, place) if defaults and trial.value is not None else None)
        for place, trial in enumerate(trials)
    ]


def cost(ratio: float, *, smaller_is_better: bool) -> float:
    """The logarithm of a ratio, such that smaller is better and zero is as good as the default."""
    return math.log(ratio) if smaller_is_better else -math.log(ratio)


def best_of(found: Sequence[Judged], *, smaller_is_better: bool) -> Best | None:
    """The best configuration of those that were searched, each by all of its trials; None when none could be measured."""
    ratios: dict[tuple[tuple[str, str], ...], list[float]] = {}
    choices: dict[tuple[tuple[str, str], ...], dict[str, Choice]] = {}
    for trial in found:
        if trial.trial.role == "search" and _is_measured(trial.trial) and trial.ratio is not None:
            key = tuple(sorted(trial.trial.configuration.items()))
            ratios.setdefault(key, []).append(trial.ratio)
            choices[key] = trial.trial.choices
    means = {key: math.exp(sum(map(math.log, of_key)) / len(of_key)) for key, of_key in ratios.items()}
    if not means:
        return None
    best = min(means, key=lambda key: cost(means[key], smaller_is_better=smaller_is_better))
    return Best(dict(best), choices[best], means[best], len(ratios[best]))


def _is_measured(trial: Measurement) -> bool:
    return trial.outcome == "measured"
