"""What each setting seems to do, by the trials that there are: the geometric mean of the ratios of those in which it was at
the best's value (of a number: in the same half of what was tried) over that of the others. Those that were given up count
by their beginning.

That costs no run, and says less than one: other settings differ, too, and the search looks more often where it was good.
The interval is Student's t for two groups of unequal variance (Welch), of three trials each or more.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sensorbench.analysis.intervals import Interval, product_over_runs
from sensorbench.benchmarks.tune.judging import Best, Judged
from sensorbench.benchmarks.tune.space import Choice, Space


@dataclass(frozen=True)
class Effect:
    """Of a setting: which trials are compared, how many on each side, and the ratio; None if one side has no trial."""

    setting: str
    with_it: str
    trials_with: int
    trials_without: int
    ratio: Interval | None


def effects(space: Space, found: Sequence[Judged], best: Best) -> list[Effect]:
    """The effect of each setting of the best."""
    known = [trial for trial in found if trial.trial.role == "search" and trial.ratio is not None]
    return [_effect(space, key, choice, known) for key, choice in best.choices.items()]


def _effect(space: Space, key: str, choice: Choice, known: Sequence[Judged]) -> Effect:
    tried = [trial.trial.choices[key] for trial in known]
    setting = space.settings[key]
    is_with: list[bool]
    if setting.values is None:
        middle = float(np.median([float(value) for value in tried]))
        is_above = float(choice) >= middle
        is_with = [(float(value) >= middle) == is_above for value in tried]
        shown = setting.written(middle if not setting.is_whole else round(middle))
        shown_value = f"{'at least' if is_above else 'below'} {shown}"
    else:
        is_with = [value == choice for value in tried]
        shown_value = setting.written(choice)
    ratios = np.array([trial.ratio for trial in known], dtype=np.float64)
    chosen = np.array(is_with, dtype=bool)
    inside, outside = ratios[chosen], ratios[~chosen]
    ratio = product_over_runs([inside, 1.0 / outside]) if len(inside) and len(outside) else None
    return Effect(key, shown_value, len(inside), len(outside), ratio)
