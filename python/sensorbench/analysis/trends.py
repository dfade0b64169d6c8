"""Tests for an ordered alternative: that values grow from level to level."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

# This many arrangements are tried where all of them are too many.
ARRANGEMENTS = 5_000
# What Page's test found, by its statistic and the numbers of runs and levels.
_PAGE: dict[tuple[float, int, int], float] = {}


def page_p(values: NDArray[np.float64]) -> float:
    """The probability of a trend as clear as this one by chance, where levels were measured side by side.

    Page, "Ordered hypotheses for multiple treatments: a significance test for linear ranks", JASA 58, 1963.

    Args:
        values: a row for each run, a column for each level.

    Returns:
        The one-sided p-value: exact for few runs and levels.

    """
    from scipy.stats import page_trend_test, rankdata

    ranks = rankdata(values, axis=1)
    # The statistic and the numbers of runs and levels say all.
    key = (float((ranks * np.arange(1, ranks.shape[1] + 1)).sum()), *ranks.shape)
    if key not in _PAGE:
        _PAGE[key] = float(page_trend_test(ranks, ranked=True).pvalue)
    return _PAGE[key]


def jonckheere_p(levels: Sequence[NDArray[np.float64]], seed: int = 0) -> float:
    """The probability of a trend as clear as this one by chance, where levels were measured apart.

    Jonckheere, "A distribution-free k-sample test against ordered alternatives", Biometrika 41, 1954, by permutation.

    Args:
        levels: the values of each level, in the order in which they should grow.
        seed: of the arrangements.

    Returns:
        The one-sided p-value, which is at least 1 / (arrangements + 1).

    """
    values = np.concatenate(levels)
    numbers = np.repeat(np.arange(len(levels)), [len(level) for level in levels])
    is_above = numbers[:, None] < numbers[None, :]
    larger = (values[:, None] < values[None, :]) + 0.5 * (values[:, None] == values[None, :])
    observed = float((larger * is_above).sum())
    generator = np.random.default_rng(seed)
    as_large = 0
    for _ in range(ARRANGEMENTS):
        order = generator.permutation(len(values))
        as_large += float((larger[np.ix_(order, order)] * is_above).sum()) >= observed - 1e-9
    return (1 + as_large) / (1 + ARRANGEMENTS)
