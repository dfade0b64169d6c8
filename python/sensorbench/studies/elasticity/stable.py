"""How steady a cluster is to which nothing is done (figure 4.2 of the paper): deviations of windows of sets, one after the other."""

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from sensorbench.results.summary.elasticity import ElasticitySummary, StableCluster

Values = NDArray[np.float64]

# Sets of a window in which the deviation is looked at, and how often the sets are put in another order.
WINDOW_SETS = 5
ORDERS = 200
# With fewer windows nothing is said of how far they differ.
MIN_WINDOWS = 4


def stable_clusters(works: Iterable[tuple[str, ElasticitySummary]]) -> list[StableCluster]:
    """The clusters of works to which nothing was done, each with its windows."""
    found = []
    for folder, work in works:
        for transition in work.result.transitions:
            durations_s = np.array(transition.sets.duration_s)
            if transition.change.kind == "stay" and not transition.failed and len(durations_s) >= WINDOW_SETS:
                times_s = np.array(transition.sets.time_s)[::WINDOW_SETS][: len(durations_s) // WINDOW_SETS]
                windows = _windows(durations_s)
                found.append(
                    StableCluster(
                        folder=folder,
                        target=work.variants[0].target,
                        nodes=transition.nodes,
                        window_sets=WINDOW_SETS,
                        time_s=(times_s - times_s[0]).tolist(),
                        deviation=(windows.std(axis=1, ddof=1) / windows.mean(axis=1)).tolist(),
                        spread=_spread_if_known(durations_s),
                        spread_by_chance=_spread_by_chance(durations_s),
                    )
                )
    return found


def figures_of_stable(durations_s: Values) -> dict[str, float | None]:
    """How far apart the deviations of windows without a change are, and how far beyond what the same sets give in any order."""
    spread, by_chance = _spread_if_known(durations_s), _spread_by_chance(durations_s)
    if spread is None or by_chance is None:
        return {}
    return {"deviation_spread": spread, "deviation_spread_over_chance": spread / by_chance}


def _spread_if_known(durations_s: Values) -> float | None:
    spread = _spread(durations_s) if len(durations_s) >= MIN_WINDOWS * WINDOW_SETS else math.nan
    return spread if math.isfinite(spread) else None


def _spread_by_chance(durations_s: Values, seed: int = 0) -> float | None:
    if len(durations_s) < MIN_WINDOWS * WINDOW_SETS:
        return None
    generator = np.random.default_rng(seed)
    by_chance = float(np.median([_spread(generator.permutation(durations_s)) for _ in range(ORDERS)]))
    return by_chance if math.isfinite(by_chance) else None


def _spread(durations_s: Values) -> float:
    deviations = _windows(durations_s).std(axis=1, ddof=1)
    return float(deviations.max() / deviations.min()) if deviations.min() > 0.0 else float("nan")


def _windows(durations_s: Values) -> Values:
    count = len(durations_s) // WINDOW_SETS
    return durations_s[: count * WINDOW_SETS].reshape(count, WINDOW_SETS)
