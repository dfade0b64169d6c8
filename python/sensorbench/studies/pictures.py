"""Pictures of a study's own sections: what they show. The report draws them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sensorbench.analysis.pareto import front

AxisKind = Literal["count", "duration_s"]


@dataclass(frozen=True)
class Point:
    """A variant by two figures, of which larger is better, with the interval of each (None when unknown; without width when the
    figure is exact). Each group has a front of its own.
    """

    label: str
    group: str
    x: float
    x_low: float | None
    x_high: float | None
    y: float
    y_low: float | None
    y_high: float | None
    is_on_front: bool = False


@dataclass(frozen=True)
class Front:
    """A Pareto front for each group of points, on logarithmic axes."""

    x_title: str
    y_title: str
    points: list[Point]


@dataclass(frozen=True)
class Effect:
    """What a change of one factor does to an operation: it multiplies a figure by `ratio`, between `low` and `high` (None when
    unknown), found from this many runs.
    """

    factor: str
    change: str
    operation: str
    ratio: float
    low: float | None
    high: float | None
    runs: int


@dataclass(frozen=True)
class Requests:
    """A question whose single requests are drawn for each of some variants, run by run. The report takes them from the results."""

    operation: str
    title: str
    variants: list[str]


@dataclass(frozen=True)
class CurvePoint:
    """A point of a line, with its interval upwards (None when unknown). Lines of one `line` have one colour, those of one `figure` one stroke;
    points are joined by `order`, which `label` says in words.
    """

    line: str
    figure: str
    order: float
    label: str
    x: float
    y: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Curves:
    """Lines on logarithmic axes; each axis has counts or durations in s."""

    title: str
    x_title: str
    x_kind: AxisKind
    y_title: str
    y_kind: AxisKind
    points: list[CurvePoint]


def with_fronts(points: Sequence[Point]) -> list[Point]:
    """The points, each with whether it is on the front of its group."""
    groups = {point.group: [other for other in points if other.group == point.group] for point in points}
    on_front = {
        point: is_on_front
        for group in groups.values()
        for point, is_on_front in zip(group, front([(other.x, other.y) for other in group]), strict=True)
    }
    return [replace(point, is_on_front=on_front[point]) for point in points]
