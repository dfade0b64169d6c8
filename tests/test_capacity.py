"""The search for the highest rate that meets an objective, on queues whose capacity is arithmetic."""

import math
import random
from collections.abc import Callable

import pytest

from sensorbench.analysis.capacity import MAX_TRIALS, Capacity, Search, Trial, capacity, next_rate

WORKERS, SERVICE_S = 4, 0.005
IN_THEORY_PER_S = WORKERS / SERVICE_S


def searched(meets: Callable[[float], bool], search: Search) -> tuple[Capacity, list[Trial]]:
    trials: list[Trial] = []
    while (rate := next_rate(trials, search)) is not None:
        trials.append(Trial(rate, meets(rate)))
    return capacity(trials, search), trials


def p99_of_queue(rate_per_s: float, held_s: float) -> float:
    """The 99th percentile of the response time, in s, of arrivals at a constant rate at workers that take a constant time."""
    free_s = [0.0] * WORKERS
    responses = []
    for number in range(round(rate_per_s * held_s)):
        due_s = number / rate_per_s
        worker = min(range(WORKERS), key=free_s.__getitem__)
        free_s[worker] = max(due_s, free_s[worker]) + SERVICE_S
        responses.append(free_s[worker] - due_s)
    responses.sort()
    return responses[math.ceil(0.99 * len(responses)) - 1]


@pytest.mark.parametrize("first_per_s", [10.0, 790.0, 801.0, 50_000.0])
def test_the_capacity_of_a_queue_is_found_from_wherever_the_search_begins(first_per_s: float) -> None:
    search = Search(first_per_s, precision=0.02)
    found, trials = searched(lambda rate: p99_of_queue(rate, 10.0) <= 0.02, search)
    assert found.is_confirmed
    assert found.met_per_s is not None
    assert found.missed_per_s is not None
    assert abs(found.met_per_s / IN_THEORY_PER_S - 1.0) < 0.02
    assert found.met_per_s < found.missed_per_s <= found.met_per_s * 1.02
    assert all(sum(trial.rate_per_s == end for trial in trials) == 3 for end in (found.met_per_s, found.missed_per_s))


def test_ends_of_the_interval_met_and_missed_every_time_however_chance_plays() -> None:
    """A threshold that is not sharp: the chance of meeting falls from one to zero between 900 and 1,100."""
    for seed in range(200):
        chance = random.Random(seed)
        search = Search(100.0, precision=0.02)
        found, trials = searched(lambda rate, chance=chance: chance.random() < (1100.0 - rate) / 200.0, search)  # type: ignore[misc]
        assert len(trials) < MAX_TRIALS
        low, high = found.met_per_s, found.missed_per_s
        assert low is not None
        assert high is not None
        assert 850.0 < low < high < 1150.0
        assert [trial.met for trial in trials if trial.rate_per_s == low] == [True] * 3
        assert [trial.met for trial in trials if trial.rate_per_s == high] == [False] * 3


def test_chance_rarely_puts_both_ends_on_one_side() -> None:
    outside = 0
    for seed in range(400):
        chance = random.Random(seed)
        found, _ = searched(lambda rate, chance=chance: chance.random() < (1100.0 - rate) / 200.0, Search(100.0, confirm=5))  # type: ignore[misc]
        assert found.met_per_s is not None
        assert found.missed_per_s is not None
        outside += not found.met_per_s < 1000.0 < found.missed_per_s
    # Two ends, each wrong once in 32 times where the chance is a half, and several rates are looked at.
    assert outside / 400 < 0.1


def test_what_never_meets_ends_at_the_lowest_rate() -> None:
    found, trials = searched(lambda _: False, Search(64.0, min_per_s=10.0))
    assert (found.met_per_s, found.missed_per_s) == (None, 10.0)
    assert found.is_confirmed
    assert [trial.rate_per_s for trial in trials] == [64.0, 64.0, 32.0, 32.0, 16.0, 16.0, 10.0, 10.0, 10.0]


def test_what_always_meets_ends_at_the_highest_rate() -> None:
    found, trials = searched(lambda _: True, Search(10.0, max_per_s=35.0))
    assert found == Capacity(35.0, None, is_confirmed=True)
    assert [trial.rate_per_s for trial in trials] == [10.0, 20.0, 35.0, 35.0, 35.0]


def test_a_hiccup_leads_nowhere() -> None:
    """Whatever trial misses by accident, the capacity is found."""
    for hiccup in range(25):
        search = Search(10.0, precision=0.02)
        trials: list[Trial] = []
        while (rate := next_rate(trials, search)) is not None:
            trials.append(Trial(rate, met=rate < 1000.0 and len(trials) != hiccup))
        found = capacity(trials, search)
        assert found.is_confirmed
        assert 930.0 < (found.met_per_s or 0.0) < 1000.0 <= (found.missed_per_s or 0.0) < 1030.0, hiccup


def test_one_trial_each_decides_if_so_wished() -> None:
    found, trials = searched(lambda rate: rate <= 100.0, Search(64.0, precision=0.5, confirm=1))
    assert found == Capacity(64.0 * 2**0.5, 128.0, is_confirmed=True)
    assert len(trials) == 3


def test_a_search_that_was_cut_short_is_not_confirmed() -> None:
    found = capacity([Trial(100.0, met=True), Trial(200.0, met=False)], Search(100.0))
    assert found == Capacity(100.0, None, is_confirmed=False)


def test_a_search_without_end_ends() -> None:
    """A server that gets slower whenever it is looked at."""
    trials: list[Trial] = []
    search = Search(1000.0)
    while (rate := next_rate(trials, search)) is not None:
        trials.append(Trial(rate, met=rate < 1e6 * 0.9 ** len(trials)))
    assert len(trials) <= MAX_TRIALS
