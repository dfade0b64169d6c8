"""Dips of known size."""

import numpy as np
import pytest

from sensorbench.analysis.dips import dip, windows


def at_rates(*rates: int) -> np.ndarray:
    """Moments of operations at a rate for each second, evenly within it."""
    return np.concatenate([second + (np.arange(rate) + 0.5) / max(rate, 1) for second, rate in enumerate(rates)])


def test_what_is_missing_is_the_area_and_recovery_is_from_five_good_seconds_on() -> None:
    ends_s = at_rates(*[100] * 10, 0, 0, 50, *[100] * 17)
    found = dip(windows(ends_s, np.ones(len(ends_s), dtype=bool), 10.0, 30.0))
    assert (found.level_per_s, found.lowest_per_s, found.area, found.recovered_s) == (100.0, 0.0, 250.0, 3.0)
    assert found.available_s == 0.0


def test_a_good_second_on_the_way_is_no_recovery() -> None:
    ends_s = at_rates(*[100] * 10, 0, 0, 100, 0, 0, 100, 0, *[100] * 13)
    found = dip(windows(ends_s, np.ones(len(ends_s), dtype=bool), 10.0, 30.0))
    assert found.recovered_s == 7.0


def test_failures_are_no_recovery_however_many_succeed() -> None:
    ends_s = at_rates(*[100] * 30)
    is_ok = ~((ends_s > 10.0) & (ends_s < 14.0) & (np.arange(len(ends_s)) % 50 == 0))
    found = dip(windows(ends_s, is_ok, 10.0, 30.0))
    assert found.recovered_s == 4.0
    # The last one that failed.
    assert found.available_s == pytest.approx(3.505)
    assert found.area == (~is_ok).sum()


def test_what_never_comes_back_has_not_recovered() -> None:
    ends_s = at_rates(*[100] * 10, *[40] * 20)
    found = dip(windows(ends_s, np.ones(len(ends_s), dtype=bool), 10.0, 30.0))
    assert (found.recovered_s, found.area) == (None, 1200.0)


def test_a_moment_of_service_says_nothing() -> None:
    with pytest.raises(ValueError, match="at least a second"):
        dip(windows(np.array([0.1]), np.array([True]), 0.5, 3.0))
