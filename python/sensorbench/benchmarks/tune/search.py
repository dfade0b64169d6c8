"""Which configuration to try next. Pure: what was tried in, choices out, so that a search that was cut short continues as it
would have.

The sampler is optuna's tree-structured Parzen estimator (Bergstra, Bardenet, Bengio and Kégl, "Algorithms for
hyper-parameter optimization", NIPS 2011): it splits what was tried into good and bad, and proposes what is likely among the
good and unlikely among the bad. The first `RANDOM_FIRST` proposals are drawn at random.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial

from sensorbench.benchmarks.tune.space import Choice, Configuration, ServerSetting, Space

RANDOM_FIRST = 8
# So often the sampler is asked for something new; in a small space all may have been tried.
MAX_PROPOSED = 20


@dataclass(frozen=True)
class Tried:
    """Choices that were tried, and what they cost: the smaller, the better; None for those that failed or were given up."""

    choices: Mapping[str, Choice]
    cost: float | None


def propose(space: Space, tried: Sequence[Tried], start: Configuration, seed: int) -> dict[str, Choice]:
    """The choices to try next; ones that were not tried before and make a difference to the configuration from which the
    search starts, if such are found.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    distributions = {key: _distribution(setting) for key, setting in space.settings.items()}
    sampler = optuna.samplers.TPESampler(n_startup_trials=RANDOM_FIRST, seed=seed + len(tried))
    study = optuna.create_study(direction="minimize", sampler=sampler)
    study.add_trials([_trial(trial, distributions) for trial in tried])
    known = [dict(trial.choices) for trial in tried]

    def is_new(choices: dict[str, Choice]) -> bool:
        return choices not in known and {**start, **space.written(choices)} != start

    proposals = (study.ask(distributions).params for _ in range(MAX_PROPOSED))
    first = next(proposals)
    return next((proposal for proposal in (first, *proposals) if is_new(proposal)), first)


def _trial(tried: Tried, distributions: dict[str, BaseDistribution]) -> FrozenTrial:
    """Of those without a cost the sampler knows that they are worse than all others."""
    return create_trial(
        state=TrialState.PRUNED if tried.cost is None else TrialState.COMPLETE,
        value=tried.cost,
        params=dict(tried.choices),
        distributions=distributions,
    )


def _distribution(setting: ServerSetting) -> BaseDistribution:
    low, high = setting.low, setting.high
    if low is None or high is None:
        return CategoricalDistribution(setting.choices)
    if setting.is_whole:
        return IntDistribution(int(low), int(high), log=setting.log, step=int(setting.step or 1))
    return FloatDistribution(low, high, log=setting.log, step=setting.step)
