"""The Pareto front, and which points are surely beside it."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sensorbench.analysis.pareto import Box, front, significantly_dominated

FIGURES = st.integers(1, 6).map(float)
POINTS = st.lists(st.tuples(FIGURES, FIGURES), min_size=1, max_size=12)
# A point's figures and how far off each may be, to either side.
WIDTHS = st.sampled_from([0.0, 0.4, 1.0, 2.5])
UNCERTAIN = st.lists(st.tuples(FIGURES, WIDTHS, FIGURES, WIDTHS), min_size=1, max_size=12)


def box(x: float, x_off: float, y: float, y_off: float) -> Box:
    return Box(x - x_off, x + x_off, y - y_off, y + y_off)


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([], []),
        ([(1.0, 1.0)], [True]),
        ([(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)], [True, True, True]),
        ([(1.0, 3.0), (1.0, 2.0), (3.0, 1.0)], [True, False, True]),
        ([(2.0, 2.0), (2.0, 2.0), (1.0, 2.0)], [True, True, False]),
    ],
)
def test_a_point_is_on_the_front_unless_another_is_better(points: list[tuple[float, float]], expected: list[bool]) -> None:
    assert front(points) == expected


@given(POINTS)
def test_the_front_beats_all_else_and_nothing_beats_it(points: list[tuple[float, float]]) -> None:
    best = list(itertools.compress(points, front(points)))
    assert best
    for point, is_on_front in zip(points, front(points), strict=True):
        better = [pair for pair in best if pair[0] >= point[0] and pair[1] >= point[1] and pair != point]
        assert bool(better) != is_on_front


@given(POINTS, st.randoms())
def test_neither_order_nor_unit_matters(points: list[tuple[float, float]], random: object) -> None:
    best = set(itertools.compress(points, front(points)))
    assert best
    shuffled = sorted(points, key=lambda _: random.random())  # type: ignore[attr-defined]
    assert set(itertools.compress(shuffled, front(shuffled))) == best
    assert front([(math.log(x), 1000.0 * y) for x, y in points]) == front(points)


@given(UNCERTAIN)
def test_what_is_on_the_front_is_never_surely_dominated(points: list[tuple[float, float, float, float]]) -> None:
    on_front = front([(x, y) for x, _, y, _ in points])
    dominated = significantly_dominated([box(*point) for point in points])
    assert not any(flag and other for flag, other in zip(on_front, dominated, strict=True))


@given(POINTS)
def test_of_exact_figures_all_is_sure(points: list[tuple[float, float]]) -> None:
    assert significantly_dominated([Box(x, x, y, y) for x, y in points]) == [not flag for flag in front(points)]


@given(UNCERTAIN, st.floats(0.0, 3.0))
def test_wider_intervals_make_nothing_more_sure(points: list[tuple[float, float, float, float]], more: float) -> None:
    narrow = significantly_dominated([box(*point) for point in points])
    wide = significantly_dominated([box(x, x_off + more, y, y_off + more) for x, x_off, y, y_off in points])
    assert all(flag or not other for flag, other in zip(narrow, wide, strict=True))


@pytest.mark.parametrize(
    ("other", "is_sure"),
    [
        (Box(3.0, 4.0, 3.0, 4.0), True),
        # Intervals that touch: at least as good in one figure, better in the second.
        (Box(2.0, 4.0, 3.0, 4.0), True),
        # Surely better in one, and not known to be worse in the second, in which the point may be the better one.
        (Box(3.0, 4.0, 1.5, 4.0), False),
        (Box(3.0, 4.0, 0.5, 0.9), False),
        (None, False),
    ],
)
def test_sure_is_what_intervals_that_do_not_overlap_say_in_both_figures(other: Box | None, is_sure: bool) -> None:
    assert significantly_dominated([Box(1.0, 2.0, 1.0, 2.0), other]) == [is_sure, False]


def test_nothing_is_sure_of_a_point_without_an_interval() -> None:
    assert significantly_dominated([None, Box(8.0, 9.0, 8.0, 9.0)]) == [False, False]
