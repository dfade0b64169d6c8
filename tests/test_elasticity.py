"""Elasticity of series with known scores: curves whose areas can be written down."""

from pathlib import Path

import numpy as np
import pytest

from sensorbench.analysis.elasticity import Floats, Sets, elasticity, scalability, stability
from tests.conftest import Cli

# A set begins every 10 s; the cluster is changed at 300 s and stable at 900 s.
BOOTSTRAP_S, STABLE_S, LENGTH_S = 300.0, 900.0, 600.0
TIMES_S = np.arange(0.0, 1501.0, 10.0)
BEFORE_S, AFTER_S = 40.0, 25.0
THREAD_REQUESTS = 50.0
UNIT = (BEFORE_S + AFTER_S) ** 2 / THREAD_REQUESTS


def series(over_ramp: Floats, deviations_s: Floats | float = 0.0) -> Sets:
    """Sets at two levels, with the ramp from one to the other, and something over it, in between."""
    ramp = np.interp(TIMES_S, [BOOTSTRAP_S, STABLE_S], [BEFORE_S, AFTER_S])
    return Sets(TIMES_S, ramp + over_ramp, np.broadcast_to(np.asarray(deviations_s, dtype=np.float64), TIMES_S.shape))


def share() -> Floats:
    """How far it is from bootstrap to stability, 0 to 1."""
    return np.clip((TIMES_S - BOOTSTRAP_S) / LENGTH_S, 0.0, 1.0)


def test_a_perfectly_elastic_cluster_scores_zero() -> None:
    found = elasticity(series(np.zeros_like(TIMES_S)), BOOTSTRAP_S, STABLE_S, THREAD_REQUESTS)
    assert found.elasticity == pytest.approx(0.0, abs=1e-9)
    assert (found.av1_s, found.av2_s) == (BEFORE_S, AFTER_S)
    assert (found.rt1_s, found.rt2_s) == (BEFORE_S / THREAD_REQUESTS, AFTER_S / THREAD_REQUESTS)
    # The triangle between the ramp and the level before is all that the other reading counts.
    assert found.definitions["above_level"] == pytest.approx(-LENGTH_S * (BEFORE_S - AFTER_S) / 2.0 / UNIT)


@pytest.mark.parametrize(
    ("curve", "area"),
    [
        # x(1-x) has 1/6 below it between 0 and 1; x(1-x)(1+x) has 1/4; x(1-x)(1-2x) as much above as below.
        (lambda x: 60.0 * x * (1.0 - x), 60.0 / 6.0),
        (lambda x: 60.0 * x * (1.0 - x) * (1.0 + x), 60.0 / 4.0),
        (lambda x: 60.0 * x * (1.0 - x) * (1.0 - 2.0 * x), 0.0),
    ],
)
def test_curves_up_to_cubic_have_their_exact_score(curve: "np.ufunc", area: float) -> None:
    deviations_s = 3.0 + 2.0 * share() * (1.0 - share())
    found = elasticity(series(curve(share()), deviations_s), BOOTSTRAP_S, STABLE_S, THREAD_REQUESTS)
    area_a, area_b = area * LENGTH_S, (3.0 + 2.0 / 6.0) * LENGTH_S
    assert found.area_a == pytest.approx(area_a, rel=1e-9, abs=1e-6)
    assert found.area_b == pytest.approx(area_b, rel=1e-9)
    assert found.elasticity == pytest.approx((area_a + area_b) / UNIT, rel=1e-9)
    assert found.definitions["excess_deviation"] == pytest.approx((area_a + area_b - 3.0 * LENGTH_S) / UNIT, rel=1e-9)
    assert found.definitions["minutes"] == pytest.approx(found.elasticity / 60.0, rel=1e-9)
    assert found.definitions["trapezoid"] == pytest.approx(found.elasticity, rel=1e-2)


def test_what_is_below_the_ramp_counts_as_nothing_by_one_definition() -> None:
    x = share()
    found = elasticity(series(60.0 * x * (1.0 - x) * (1.0 - 2.0 * x)), BOOTSTRAP_S, STABLE_S, THREAD_REQUESTS)
    # x(1-x)(1-2x) has 1/32 above the axis.
    assert found.definitions["above_ramp"] == pytest.approx(60.0 / 32.0 * LENGTH_S / UNIT, rel=1e-9)
    assert found.elasticity == pytest.approx(0.0, abs=1e-9)


def test_a_kinked_curve_has_nearly_its_score() -> None:
    peak = 80.0 * np.minimum(share(), 1.0 - share())
    found = elasticity(series(peak), BOOTSTRAP_S, STABLE_S, THREAD_REQUESTS)
    assert found.elasticity == pytest.approx(20.0 * LENGTH_S / UNIT, rel=1e-2)


def test_the_curve_before_does_not_bend_that_after_a_bootstrap_between_two_sets() -> None:
    sets = series(np.where(TIMES_S > BOOTSTRAP_S, 30.0, 0.0) * (share() < 1.0))
    at, later = (elasticity(sets, BOOTSTRAP_S + shift_s, STABLE_S, THREAD_REQUESTS) for shift_s in (0.0, 4.0))
    assert later.elasticity == pytest.approx(at.elasticity, rel=2e-2)
    assert later.av1_s == at.av1_s


def test_stable_is_the_first_of_five_sets_that_hardly_differ() -> None:
    rng = np.random.default_rng(7)
    noise = rng.normal(0.0, 0.5, len(TIMES_S))
    wild = np.where((TIMES_S >= BOOTSTRAP_S) & (TIMES_S < STABLE_S), 20.0 * (-1.0) ** np.arange(len(TIMES_S)), 0.0)
    calm = np.where(TIMES_S >= STABLE_S + 100.0, noise / 10.0, noise)
    sets = Sets(TIMES_S, 30.0 + calm + wild, np.zeros_like(TIMES_S))
    found = stability(sets, BOOTSTRAP_S)
    before = sets.durations_s[TIMES_S < BOOTSTRAP_S]
    assert found.median_difference_s == np.median(np.abs(np.diff(before)))
    assert found.at_s is not None
    first = int(np.searchsorted(TIMES_S, found.at_s))
    differences = np.abs(np.diff(sets.durations_s))
    assert (differences[first - 1 : first + 4] < found.median_difference_s).all()
    assert STABLE_S < found.at_s <= STABLE_S + 110.0
    assert found.in_band_at_s == found.at_s


def test_five_sets_that_stand_still_far_from_the_end_are_not_in_the_band() -> None:
    """A slow phase on the way: the source's rule is content with it."""
    alternating = np.where(np.arange(len(TIMES_S)) % 2, 0.5, -0.5)
    slow = np.where((TIMES_S >= 400.0) & (TIMES_S < 700.0), 30.0 - 0.2 * alternating, 0.0)
    still = np.where(TIMES_S >= 400.0, 0.2, 1.0)
    sets = Sets(TIMES_S, 20.0 + alternating * still + slow, np.zeros_like(TIMES_S))
    found = stability(sets, BOOTSTRAP_S)
    assert found.at_s is not None
    assert found.in_band_at_s is not None
    assert 400.0 <= found.at_s < 700.0 <= found.in_band_at_s
    assert found.by_band_at_s == 700.0


def test_sets_that_vary_by_chance_are_in_the_band_at_once() -> None:
    noisy = 30.0 + np.random.default_rng(3).normal(0.0, 1.0, len(TIMES_S))
    found = stability(Sets(TIMES_S, np.where((TIMES_S >= 300.0) & (TIMES_S < 500.0), 60.0, noisy), noisy), BOOTSTRAP_S)
    assert found.by_band_at_s is not None
    assert found.by_band_at_s == 500.0


def test_a_flat_series_is_stable_at_once_and_a_drifting_one_never() -> None:
    flat = Sets(TIMES_S, np.full_like(TIMES_S, 5.0), np.zeros_like(TIMES_S))
    assert stability(flat, BOOTSTRAP_S).at_s == BOOTSTRAP_S
    drifting = Sets(TIMES_S, 5.0 + np.where(TIMES_S > BOOTSTRAP_S, TIMES_S - BOOTSTRAP_S, 0.0), np.zeros_like(TIMES_S))
    assert stability(drifting, BOOTSTRAP_S + 1.0).at_s is None


def test_scalability_is_the_change_of_the_set_time() -> None:
    # The published averages of HBase on 6 and 12 nodes.
    assert scalability(43.30, 44.30) == pytest.approx(0.0231, abs=1e-4)


# The command


def written(folder: Path, sets: Sets) -> Path:
    rows = [
        f"{time},{duration},{sd}" for time, duration, sd in zip(sets.times_s, sets.durations_s, sets.deviations_s, strict=True)
    ]
    file = folder / "sets.csv"
    file.write_text("\n".join(["time_s,duration_s,sd_s", *rows]) + "\n", encoding="utf-8")
    return file


def test_a_recorded_series_is_replayed(cli: Cli, tmp_path: Path) -> None:
    file = written(tmp_path, series(60.0 * share() * (1.0 - share())))
    arguments = ["elasticity", "analyse", file, "--bootstrap-at", BOOTSTRAP_S, "--requests-per-thread", THREAD_REQUESTS]
    given = cli(*arguments, "--stable-at", STABLE_S, "--json").json
    assert given["elasticity"] == pytest.approx(10.0 * LENGTH_S / UNIT, rel=1e-6)
    assert given["warnings"] == []
    # All sets before are alike, so that the rule waits for sets that are, too.
    found = cli(*arguments, "--json").json
    assert found["stable_at_s"] == found["stable_by_rule_at_s"] == STABLE_S + 10.0
    assert found["elasticity"] == pytest.approx(given["elasticity"], rel=0.05)
    assert "lower is better" in cli(*arguments).out


def test_few_sets_are_warned_of(cli: Cli, tmp_path: Path) -> None:
    file = written(tmp_path, series(np.zeros_like(TIMES_S)))
    ended = cli("elasticity", "analyse", file, "--bootstrap-at", 300, "--stable-at", 350, "--requests-per-thread", 1)
    assert ended.exit_code == 0
    assert "5 sets began between bootstrap and stability" in ended.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("time_s,duration_s\n0,1\n", "line 1: there is no column sd_s"),
        ("time_s,duration_s,sd_s\n0,1,0\n1,fast,0\n", "line 3, column duration_s: 'fast' is not a number of seconds from 0 on"),
        ("time_s,duration_s,sd_s\n0,1,0\n1,nan,0\n", "column duration_s: 'nan'"),
        ("time_s,duration_s,sd_s\n0,1\n", "line 2, column sd_s: None"),
        ("time_s,duration_s,sd_s\n0,1,0\n0,1,0\n", "set 2: began at 0 s, the one before at 0 s"),
        ("time_s,duration_s,sd_s\n", "no sets"),
        ("time_s,duration_s,sd_s\n0,1,0\n1,1,0\n3,1,0\n", "no set began after stability"),
        ("time_s,duration_s,sd_s\n1,1,0\n9,1,0\n", "1 sets began before the bootstrap at 2 s"),
    ],
)
def test_what_is_no_series_is_refused(cli: Cli, tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "sets.csv"
    file.write_text(text, encoding="utf-8")
    ended = cli("elasticity", "analyse", file, "--bootstrap-at", 2, "--stable-at", 5, "--requests-per-thread", 10)
    assert ended.exit_code == 2
    assert said in " ".join(ended.err.split())


def test_a_series_that_is_never_stable_says_what_to_do(cli: Cli, tmp_path: Path) -> None:
    file = written(tmp_path, series(np.where(TIMES_S > BOOTSTRAP_S, TIMES_S, 0.0)))
    ended = cli("elasticity", "analyse", file, "--bootstrap-at", BOOTSTRAP_S, "--requests-per-thread", 10)
    assert ended.exit_code == 2
    assert "say with --stable-at" in " ".join(ended.err.split())
