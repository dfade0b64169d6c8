"""Draws Pareto fronts: variants by two figures, of which larger is better, and the front of each group."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import altair as alt

from sensorbench.analysis.pareto import Box, significantly_dominated
from sensorbench.report import charts
from sensorbench.results.page import ChartSpec
from sensorbench.results.summary.comparison import ShownFront, ShownPoint

ON_FRONT, OPEN, DOMINATED = "on the front", "not known to be dominated", "significantly dominated"
HEIGHT = 460
_HOW = (
    "Further right and further up is better. The line joins the variants of one group that no other beats: none is at least as good in "
    "both figures and better in one. A variant is significantly dominated when one other of its group is better in both by intervals that "
    "do not overlap; of all others that is not known. Lines through points are 95% intervals."
)
# Labels are put where they do not cover one another in a picture as wide as the page at its widest, beside the axis.
WIDTH = 1120
_LETTER = 6.2
_LINE = 13
# Beyond the outermost points, as a factor.
_MARGIN = 1.25


_Axis = Literal["x", "y"]


class _Placed(ShownPoint):
    """A point, and what is known of it in its group."""

    state: str


class _Label(_Placed):
    """A point with its label beside it: how far from it, in pixels, and which of its ends is there."""

    dx: int
    dy: int
    align: str


def on_axes(points: Sequence[ShownPoint]) -> list[ShownPoint]:
    """The points that have a place on logarithmic axes: what does not get anything done has none."""
    return [point for point in points if point["x"] > 0.0 and point["y"] > 0.0]


def front(picture: ShownFront) -> ChartSpec:
    """The chart of a front, whose points all have a place on its axes."""
    points = _with_states(picture["points"])
    groups = [point["group"] for point in points]
    colours = charts.colours_of(groups)
    x = alt.X("x:Q", title=f"{picture['x_title']}, logarithmic", scale=_scale(points, "x"), axis=charts.COUNT_AXIS)
    y = alt.Y("y:Q", title=f"{picture['y_title']}, logarithmic", scale=_scale(points, "y"), axis=charts.COUNT_AXIS)
    colour = charts.named_colour("group", groups)
    base = alt.Chart(alt.InlineData(values=points)).encode(x=x, y=y, color=colour)
    of_front = base.transform_filter("datum.is_on_front")
    steps = of_front.mark_line(interpolate="step-before", strokeWidth=1.6, opacity=0.7).encode(order=alt.Order("x:Q"))
    across = (
        base.transform_filter("isValid(datum.x_low)")
        .mark_rule(opacity=0.4, clip=True)
        .encode(x=alt.X("x_low:Q"), x2=alt.X2("x_high:Q"))
    )
    upright = (
        base.transform_filter("isValid(datum.y_low)")
        .mark_rule(opacity=0.4, clip=True)
        .encode(y=alt.Y("y_low:Q"), y2=alt.Y2("y_high:Q"))
    )
    labels = alt.Chart(alt.InlineData(values=_labels(points))).mark_text(
        fontSize=11, baseline="middle", dx=_own("dx"), dy=_own("dy"), align=_own("align")
    )
    named = labels.encode(x=x, y=y, color=colour, text=alt.Text("label:N"))
    return charts.sized(across + upright + steps + _marks(base, colours) + named, _HOW, height=HEIGHT)


def _own(field: str) -> alt.ExprRef:
    """What the row itself says."""
    return alt.ExprRef(f"datum.{field}")


def _with_states(points: Sequence[ShownPoint]) -> list[_Placed]:
    """The points, each with what is known of it in its group."""
    groups = {point["group"]: [entry for entry in points if entry["group"] == point["group"]] for point in points}
    found: list[_Placed] = []
    for group in groups.values():
        for point, is_dominated in zip(group, significantly_dominated([_box(point) for point in group]), strict=True):
            state = ON_FRONT if point["is_on_front"] else DOMINATED if is_dominated else OPEN
            found.append({**point, "state": state})
    return found


def _scale(points: Sequence[_Placed], axis: _Axis) -> alt.Scale:
    return alt.Scale(type="log", nice=False, domain=_ends(points, axis))


def _box(point: ShownPoint) -> Box | None:
    ends = [point["x_low"], point["x_high"], point["y_low"], point["y_high"]]
    known = [end for end in ends if end is not None]
    return Box(*known) if len(known) == len(ends) else None


def _ends(points: Sequence[_Placed], axis: _Axis) -> list[float]:
    """Where an axis begins and ends. Wide intervals would press the points together: they are cut at the edge."""
    values = [point[axis] for point in points]
    return [min(values) / _MARGIN, max(values) * _MARGIN]


def _marks(base: alt.Chart, colours: alt.Scale) -> alt.Chart:
    shapes = alt.Scale(domain=[ON_FRONT, OPEN, DOMINATED], range=["circle", "diamond", "cross"])
    filling = alt.Scale(domain=[ON_FRONT, OPEN, DOMINATED], range=[1.0, 0.3, 0.0])
    marks: alt.Chart = base.mark_point(size=80, strokeWidth=1.6, opacity=1).encode(
        fill=alt.Fill("group:N", title=None, scale=colours, legend=None),
        shape=alt.Shape("state:N", title=None, scale=shapes, legend=charts.STATES_LEGEND),
        fillOpacity=alt.FillOpacity("state:N", title=None, scale=filling, legend=None),
        tooltip=[
            alt.Tooltip("label:N"),
            alt.Tooltip("group:N"),
            alt.Tooltip("state:N"),
            *(alt.Tooltip(f"{figure}:Q", format=".4~s") for figure in _FIGURES),
        ],
    )
    return marks


_FIGURES = ("x", "x_low", "x_high", "y", "y_low", "y_high")


@dataclass(frozen=True)
class _Area:
    """A part of the picture, in pixels from its left and its upper edge."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: "_Area") -> bool:
        """Whether they have anything in common."""
        is_beside = self.right < other.left or other.right < self.left
        return not is_beside and not (self.bottom < other.top or other.bottom < self.top)

    def is_inside(self, other: "_Area") -> bool:
        """Whether it is wholly within another."""
        is_across = other.left <= self.left and self.right <= other.right
        return is_across and other.top <= self.top and self.bottom <= other.bottom


# Where a label may stand, seen from its point: above a front there is room, so that comes first.
_PLACES = [(dx, dy) for dy in (-10, 10, -23, 23, -36, 36, -49) for dx in (9, -9)]


def _labels(points: Sequence[_Placed]) -> list[_Label]:
    """The labels of the points on a front, each where it covers no other and no such point, and if possible no point at all. One
    for which there is no room is left out: the tooltip of its point shows it.
    """
    centres = [(WIDTH * _share(points, "x", point["x"]), HEIGHT * (1.0 - _share(points, "y", point["y"]))) for point in points]
    marks = [_Area(across - 6, down - 6, across + 6, down + 6) for across, down in centres]
    on_front = [number for number, point in enumerate(points) if point["state"] == ON_FRONT]
    taken = [marks[number] for number in on_front]
    labels: list[_Label] = []
    for number in sorted(on_front, key=lambda number: centres[number][1]):
        place = _free_place(points[number]["label"], centres[number], [taken + marks, taken])
        if place is not None:
            dx, dy, area = place
            labels.append({**points[number], "dx": dx, "dy": dy, "align": "right" if dx < 0 else "left"})
            taken.append(area)
    return labels


def _free_place(text: str, centre: tuple[float, float], obstacles: list[list[_Area]]) -> tuple[int, int, _Area] | None:
    """The first place for a text beside its point that is inside of the picture and free of obstacles: of all of the first list,
    else at least of those of the second.
    """
    places = [(dx, dy, _area(text, centre[0] + dx, centre[1] + dy, is_left=dx < 0)) for dx, dy in _PLACES]
    free = (
        place
        for avoided in obstacles
        for place in places
        if place[2].is_inside(_WHOLE) and not any(place[2].overlaps(other) for other in avoided)
    )
    return next(free, None)


def _share(points: Sequence[_Placed], axis: _Axis, value: float) -> float:
    """How far along an axis a value is."""
    low, high = (math.log(end) for end in _ends(points, axis))
    return (math.log(value) - low) / (high - low)


def _area(text: str, across: float, down: float, *, is_left: bool) -> _Area:
    width = _LETTER * len(text)
    left = across - width if is_left else across
    return _Area(left, down - _LINE / 2, left + width, down + _LINE / 2)


_WHOLE = _Area(0, 0, WIDTH, HEIGHT)
