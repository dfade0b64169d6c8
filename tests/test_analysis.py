"""The promises of the statistics, tested by simulation."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sensorbench.analysis.change_points import change_points
from sensorbench.analysis.equality import REFERENCE, Answer, Answers, EqualityCheck, compare_answers, difference
from sensorbench.analysis.intervals import Interval, contrast_interval, interval, ratio_interval
from sensorbench.analysis.sample import Sample, automatic_block_length
from sensorbench.analysis.smoothing import exponentially_smoothed
from sensorbench.analysis.verdicts import compare, judge

Runs = list[NDArray[np.float64]]
Series = Callable[[np.random.Generator, int, int], Runs]


def autoregressive(generator: np.random.Generator, length: int, likeness: float) -> NDArray[np.float64]:
    innovations = generator.standard_normal(length) * np.sqrt(1 - likeness**2)
    values = np.empty(length)
    values[0] = generator.standard_normal()
    for place in range(1, length):
        values[place] = likeness * values[place - 1] + innovations[place]
    return values


def independent(generator: np.random.Generator, runs: int, length: int) -> Runs:
    return [np.exp(0.5 * generator.standard_normal(length)) for _ in range(runs)]


def correlated(generator: np.random.Generator, runs: int, length: int) -> Runs:
    return [np.exp(0.5 * autoregressive(generator, length, 0.8)) for _ in range(runs)]


def drifting(generator: np.random.Generator, runs: int, length: int) -> Runs:
    """Each run has a level of its own and climbs."""
    climb = np.linspace(-0.3, 0.3, length)
    return [np.exp(0.5 * generator.standard_normal(length) + climb + 0.1 * generator.standard_normal()) for _ in range(runs)]


SERIES = [independent, correlated, drifting]
TRIALS = 150


@pytest.mark.parametrize("series", SERIES)
@pytest.mark.parametrize(
    "runs", [3, pytest.param(5, marks=pytest.mark.long("a rate shows only over many trials; three runs have them, too"))]
)
def test_intervals_cover_at_their_stated_rate(series: Series, runs: int) -> None:
    generator = np.random.default_rng(1)
    population = np.sort(np.concatenate(series(generator, 300, 1000)))
    for metric, truth in {
        "mean": population.mean(),
        "median": np.median(population),
        "p95": np.quantile(population, 0.95),
    }.items():
        covered = 0
        for trial in range(TRIALS):
            found = interval(Sample.of_runs(series(generator, runs, 200)), metric, seed=trial)
            assert found.low is not None
            assert found.high is not None
            covered += found.low <= truth <= found.high
        # Of 150 trials at 95%, fewer than 134 are covered with a probability of 0.0016.
        assert covered >= 134, f"{series.__name__}, {runs} runs, {metric}: {covered} of {TRIALS}"


def test_one_answer_a_run_is_enough_for_the_interval_of_a_mean() -> None:
    generator = np.random.default_rng(6)
    covered = 0
    for trial in range(TRIALS):
        a, b = (Sample.of_runs([level * np.exp(0.2 * generator.standard_normal(1)) for _ in range(3)]) for level in (2.0, 1.0))
        found = ratio_interval(a, b, "mean", seed=trial)
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 2.0 <= found.high
    assert covered >= 134, f"{covered} of {TRIALS}"
    assert interval(Sample.of_runs([np.ones(1)] * 3), "median").low is None
    assert interval(Sample.of_runs([np.ones(1)] * 2), "mean").low is None


def test_intervals_narrow_with_more_runs() -> None:
    generator = np.random.default_rng(2)

    def width(runs: int) -> float:
        found = [interval(Sample.of_runs(independent(generator, runs, 200)), "median") for _ in range(20)]
        return float(np.median([np.log(width.high / width.low) for width in found if width.low and width.high]))

    three, ten = width(3), width(10)
    assert ten < three / 2
    assert ten < 0.25


@pytest.mark.parametrize("series", SERIES)
def test_equal_settings_are_rarely_called_different(series: Series) -> None:
    generator = np.random.default_rng(3)
    words = Counter(
        compare(*(Sample.of_runs(series(generator, 3, 200)) for _ in range(2)), "median", seed=trial).word
        for trial in range(TRIALS)
    )
    # Of 150 trials at 5%, more than 15 are false alarms with a probability of 0.006.
    assert words["faster"] + words["slower"] <= 15, words


def test_different_settings_are_called_different() -> None:
    generator = np.random.default_rng(4)
    fast, slow = independent(generator, 3, 400), [2 * run for run in independent(generator, 3, 400)]
    assert compare(Sample.of_runs(fast), Sample.of_runs(slow), "median").word == "faster"
    assert compare(Sample.of_runs(slow), Sample.of_runs(fast), "mean_to_p95").word == "slower"
    steady = [np.exp(0.02 * generator.standard_normal(400)) for _ in range(3)]
    assert compare(Sample.of_runs(steady), Sample.of_runs([1.001 * run for run in steady]), "median").word == "equivalent"


def test_drift_that_both_settings_share_cancels_when_they_took_turns() -> None:
    generator = np.random.default_rng(5)
    levels = np.exp(0.5 * generator.standard_normal(5))
    a = Sample.of_runs([level * run for level, run in zip(levels, independent(generator, 5, 400), strict=True)])
    b = Sample.of_runs([1.5 * level * run for level, run in zip(levels, independent(generator, 5, 400), strict=True)])
    paired, unpaired = ratio_interval(b, a, "median"), ratio_interval(b, a, "median", paired=False)
    assert paired.low is not None
    assert paired.low > 1.0
    assert unpaired.low is not None
    assert unpaired.low < 1.0


def test_fewer_than_three_runs_are_inconclusive() -> None:
    generator = np.random.default_rng(6)
    verdict = compare(
        Sample.of_runs(independent(generator, 2, 400)),
        Sample.of_runs([10 * run for run in independent(generator, 2, 400)]),
        "median",
    )
    assert verdict.word == "inconclusive"
    assert "at least 3 are needed" in verdict.reason


def test_a_quantile_with_few_values_beyond_it_has_no_interval() -> None:
    generator = np.random.default_rng(7)
    assert interval(Sample.of_runs(independent(generator, 3, 100)), "p99").low is None
    assert interval(Sample.of_runs(independent(generator, 3, 400)), "p99").low is not None


def ratio(low: float | None, high: float | None, runs: int = 5) -> Interval:
    return Interval(1.0, low, high, 0.95, runs, between_runs=True)


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (0.97, 1.03, "equivalent"),
        (1.01, 1.04, "equivalent"),
        (0.5, 0.9, "faster"),
        (1.2, 3.0, "slower"),
        (0.8, 1.3, "no significant difference"),
        (0.3, 3.0, "inconclusive"),
        (None, None, "inconclusive"),
    ],
)
def test_verdicts_follow_from_intervals(low: float | None, high: float | None, word: str) -> None:
    assert judge(ratio(low, high)).word == word


def test_a_contrast_of_a_sample_with_itself_is_one() -> None:
    sample = Sample.of_runs(independent(np.random.default_rng(8), 3, 200))
    found = contrast_interval([(sample, 1.0), (sample, -1.0)], "mean")
    assert found.value == pytest.approx(1.0)
    assert (found.low, found.high) == (pytest.approx(1.0), pytest.approx(1.0))


def test_histograms_and_single_values_give_the_same_figures() -> None:
    runs = independent(np.random.default_rng(9), 3, 500)
    by_value = Sample.of_runs(runs)
    by_histogram = Sample.of_histograms([[np.unique(block, return_counts=True) for block in np.split(run, 10)] for run in runs])
    for metric in ("mean", "median", "sd", "p75", "p95", "mean_to_p95"):
        assert by_histogram.figure(metric) == pytest.approx(by_value.figure(metric), rel=1e-12)


@given(st.lists(st.floats(min_value=1e-6, max_value=1e3), min_size=1, max_size=200))
def test_figures_are_those_of_the_definition(values: list[float]) -> None:
    sample = Sample.of_runs([np.array(values)])
    ordered = np.sort(values)
    assert sample.figure("mean") == pytest.approx(np.mean(values))
    assert sample.figure("sd") == pytest.approx(np.std(values), rel=1e-6, abs=1e-9 * max(values))
    assert sample.figure("p75") == ordered[max(0, int(np.ceil(0.75 * len(values) - 1e-9)) - 1)]
    assert sample.figure("median") == ordered[int(np.ceil(0.5 * len(values))) - 1]
    assert sample.figure("p95") == ordered[max(0, int(np.ceil(0.95 * len(values) - 1e-9)) - 1)]
    assert sample.figure("mean_to_p95") <= sample.figure("mean") * (1 + 1e-9)


def test_blocks_are_as_long_as_the_series_is_alike() -> None:
    generator = np.random.default_rng(10)
    assert np.median([automatic_block_length(generator.standard_normal(1000)) for _ in range(20)]) <= 2
    lengths = [automatic_block_length(autoregressive(generator, 1000, 0.9)) for _ in range(20)]
    assert 10 <= np.median(lengths) <= 100


def test_change_points_are_found_where_they_are() -> None:
    generator = np.random.default_rng(11)
    series = np.concatenate([generator.normal(10, 1, 60), generator.normal(12, 1, 60), generator.normal(9, 1, 60)])
    places = [change.place for change in change_points(series)]
    assert len(places) == 2
    assert abs(places[0] - 60) <= 4
    assert abs(places[1] - 120) <= 4


def test_change_points_are_rarely_seen_where_there_are_none() -> None:
    generator = np.random.default_rng(12)
    assert sum(bool(change_points(generator.normal(10, 1, 120), seed=trial)) for trial in range(60)) <= 3
    assert sum(bool(change_points(autoregressive(generator, 120, 0.7), seed=trial)) for trial in range(60)) <= 8
    assert change_points(np.array([1.0, 2.0])) == []
    spike = generator.normal(10, 1, 120)
    spike[60] = 1000.0
    assert change_points(spike) == []


def answer(rows: int = 1, row_hash: int = 7, in_order: bool | None = None, computed: tuple[float, ...] = ()) -> Answer:
    return Answer(rows, row_hash, in_order, computed)


@pytest.mark.parametrize(
    ("given_answer", "problem"),
    [
        (answer(), None),
        (answer(rows=2), "2 rows instead of 1"),
        (answer(row_hash=8), "with other values"),
        (answer(in_order=False), "declared order"),
        (answer(computed=(1.0,)), "1 computed values instead of 0"),
    ],
)
def test_answers_are_compared(given_answer: Answer, problem: str | None) -> None:
    given = {"a": Answers.of({0: given_answer, 1: answer()}), "b": Answers.of({0: answer(), 1: answer()})}
    equality = compare_answers("read", given, Answers.of({0: answer()}))
    assert equality.equal is (problem is None)
    if problem:
        assert problem in equality.mismatches[0].problem
        assert equality.mismatches[0].variant == "a"


def test_computed_values_may_differ_by_the_tolerance() -> None:
    reference = Answers.of({0: answer(computed=(0.1 + 0.2, float("nan")))})
    for value, is_equal in ((0.3, True), (0.3001, False)):
        given = {"a": Answers.of({0: answer(computed=(value, float("nan")))})}
        assert compare_answers("read", given, reference).equal is is_equal


def test_answers_that_nothing_was_compared_with_are_not_equal() -> None:
    assert not compare_answers("read", {"a": Answers.of({0: answer()})}, Answers.of({})).equal


def compared_one_by_one(
    answers: dict[str, dict[int, Answer]], reference: dict[int, Answer]
) -> tuple[int, int, list[tuple[int, str, str, str]]]:
    """What comparing by columns must give: how many were compared with another variant's and with the reference, and all that differ."""
    compared = with_reference = 0
    differing = []
    first: dict[int, tuple[str, Answer]] = {}
    for variant, of_variant in answers.items():
        for k, answered in sorted(of_variant.items()):
            known = (REFERENCE, reference[k]) if k in reference else first.get(k)
            if known is not None:
                with_reference += k in reference
                compared += k not in reference
                if problem := difference(answered, known[1]):
                    differing.append((k, variant, known[0], problem))
            first.setdefault(k, (variant, answered))
    return compared, with_reference, differing


_ANSWERS = st.builds(
    Answer,
    st.integers(0, 1),
    st.sampled_from([7, 2**64 - 1]),
    st.sampled_from([None, True, False]),
    st.lists(st.sampled_from([0.3, 0.1 + 0.2, 1.0, float("nan"), float("inf")]), max_size=2).map(tuple),
)
_OF_NUMBERS = st.dictionaries(st.integers(0, 8), _ANSWERS, max_size=6)


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), _OF_NUMBERS), _OF_NUMBERS)
def test_answers_compare_by_columns_as_they_do_one_by_one(
    answers: dict[str, dict[int, Answer]], reference: dict[int, Answer]
) -> None:
    compared, with_reference, differing = compared_one_by_one(answers, reference)
    columns = {variant: Answers.of(of_variant) for variant, of_variant in answers.items()}
    equality = compare_answers("read", columns, Answers.of(reference))
    assert (equality.compared, equality.compared_with_reference) == (compared + with_reference, with_reference)
    assert equality.mismatch_count == len(differing)
    shown = [(found.k, found.variant, found.other, found.problem) for found in equality.mismatches]
    assert shown == differing[:5]

    # Some operations at a time.
    check = EqualityCheck("read", Answers.of(reference))
    for numbers in (range(4), range(4, 9)):
        for variant, of_variant in answers.items():
            check.add(variant, Answers.of({k: one for k, one in of_variant.items() if k in numbers}))
        check.forget()
    in_parts = check.result()
    assert (in_parts.compared, in_parts.mismatch_count) == (equality.compared, equality.mismatch_count)


def test_smoothing_follows_the_series() -> None:
    smoothed = exponentially_smoothed(np.concatenate([np.ones(100), np.full(100, 3.0)]))
    assert smoothed[99] == pytest.approx(1.0)
    assert smoothed[-1] == pytest.approx(3.0, abs=0.01)
    assert len(exponentially_smoothed(np.empty(0))) == 0
