"""When a cache is warm: the time from a cold start until its hit rate is steady."""

import numpy as np

from sensorbench.analysis.sample import Floats

# So that there are five in the last quarter: fewer say little about a trend.
MIN_WINDOWS = 20


def time_to_steady(
    times_s: Floats, hits: Floats, requests: Floats, *, window_s: float = 10.0, within: float = 0.01
) -> float | None:
    """The time (s, after the first moment) from which a hit rate is steady, by counters of hits and requests at `times_s`.

    The rule: the time is cut into windows of `window_s`, each with the hit rate of the requests within it; windows without a
    request are left out. The final level is the mean of the last quarter of the windows. The rate is steady from the beginning
    of the first window from which on no window is further from the final level than `within` (a difference of fractions: 0.01
    is one percentage point).

    None if there is no such window; if there are fewer than 20 windows; or if the last quarter itself still has a trend: its
    line, with Theil and Sen's slope, rises or falls by more than `within` over it.
    """
    starts_s, rates = windowed_hit_rates(times_s, hits, requests, window_s)
    if len(rates) < MIN_WINDOWS:
        return None
    last = len(rates) // 4
    if _still_trends(starts_s[-last:], rates[-last:], within):
        return None
    away = np.flatnonzero(np.abs(rates - rates[-last:].mean()) > within)
    first = away[-1] + 1 if len(away) else 0
    return float(starts_s[first] - times_s[0]) if first < len(rates) else None


def windowed_hit_rates(times_s: Floats, hits: Floats, requests: Floats, window_s: float) -> tuple[Floats, Floats]:
    """The beginning (s, on the clock of `times_s`) of each whole window in which there were requests, and its hit rate.
    Counters are taken to grow evenly from one moment to the next.
    """
    count = int((times_s[-1] - times_s[0]) / window_s + 1e-9) if len(times_s) else 0
    edges_s = times_s[:1] + window_s * np.arange(count + 1)
    hit, requested = (np.diff(np.interp(edges_s, times_s, counter)) if count else np.empty(0) for counter in (hits, requests))
    lookups = requested > 0
    return edges_s[: len(lookups)][lookups], hit[lookups] / requested[lookups]


def _still_trends(times_s: Floats, rates: Floats, within: float) -> bool:
    from scipy.stats import theilslopes

    return bool(abs(theilslopes(rates, times_s).slope * (times_s[-1] - times_s[0])) > within)
