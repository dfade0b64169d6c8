"""What a fault costs clients: how far, and for how long, what they get done falls below what it was before."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sensorbench.analysis.sample import Floats

WINDOW_S = 1.0
# As good as before: at least this share of the level before, and no operation that failed or timed out.
AS_GOOD_SHARE = 0.9
# Recovered is from this many such windows in a row on.
RECOVERED_WINDOWS = 5


@dataclass(frozen=True)
class Dip:
    """Completed operations by windows of `WINDOW_S`.

    `level_per_s`: the median before; `lowest_per_s`: the least afterwards; `area`: operations fewer than at that level, over the windows
    below it; `recovered_s`: from the fault to the first five windows in a row that are as good as before and followed by no five worse
    ones; None if there are none. `available_s`: from the fault until nothing failed any more: what is measured of a database that refuses
    access to data in motion (the source's restricted elasticity).
    """

    level_per_s: float
    lowest_per_s: float
    area: float
    recovered_s: float | None
    available_s: float


@dataclass(frozen=True)
class Windows:
    """Operations that ended, by whole windows of `WINDOW_S`: `before` a fault those that succeeded, backwards from it; from it on those that
    succeeded (`ok`) and those that did not (`failed`). `last_failed_s` is the time from the fault to the last failure; None if there was none.
    """

    before: Floats
    ok: Floats
    failed: Floats
    last_failed_s: float | None


def windows(ends_s: Floats, is_ok: NDArray[np.bool_], fault_at_s: float, end_s: float) -> Windows:
    """Counts operations by windows around a fault. `ends_s`: when operations ended (s on the run's clock), in any order; `is_ok`: whether they
    succeeded.
    """
    failed_s = ends_s[~is_ok & (ends_s > fault_at_s)]
    return Windows(
        before=_counts(ends_s[is_ok], fault_at_s % WINDOW_S, fault_at_s),
        ok=_counts(ends_s[is_ok], fault_at_s, end_s),
        failed=_counts(ends_s[~is_ok], fault_at_s, end_s),
        last_failed_s=float(failed_s.max() - fault_at_s) if len(failed_s) else None,
    )


def dip(counted: Windows) -> Dip:
    """The dip after a fault. Raises ValueError if there is no whole window before the fault, or after it."""
    if not len(counted.before) or not len(counted.ok):
        raise ValueError("expected at least a second before the fault and after it")
    level = float(np.median(counted.before))
    as_good = (counted.ok >= AS_GOOD_SHARE * level) & (counted.failed == 0)
    return Dip(
        level_per_s=level / WINDOW_S,
        lowest_per_s=float(counted.ok.min()) / WINDOW_S,
        area=float(np.maximum(level - counted.ok, 0.0).sum()),
        recovered_s=_recovered_s(as_good),
        available_s=counted.last_failed_s or 0.0,
    )


def _recovered_s(as_good: NDArray[np.bool_]) -> float | None:
    """The beginning of the first five good windows after the last five in which bad ones are the more."""
    if len(as_good) < RECOVERED_WINDOWS:
        return None
    good_of_five = np.lib.stride_tricks.sliding_window_view(as_good, RECOVERED_WINDOWS).sum(axis=1)
    worse = np.flatnonzero(good_of_five <= RECOVERED_WINDOWS // 2)
    first = int(worse[-1]) + 1 if len(worse) else 0
    whole = np.flatnonzero(good_of_five[first:] == RECOVERED_WINDOWS)
    return float((first + whole[0]) * WINDOW_S) if len(whole) else None


def _counts(times_s: Floats, from_s: float, to_s: float) -> Floats:
    """How many of the moments are in each whole window."""
    count = int((to_s - from_s) / WINDOW_S + 1e-9)
    edges = from_s + WINDOW_S * np.arange(count + 1)
    return np.histogram(times_s, bins=edges)[0].astype(np.float64) if count else np.empty(0)
