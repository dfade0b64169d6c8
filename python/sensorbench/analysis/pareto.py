"""Which of several points are best where two figures count, of which larger is better: the Pareto front.

A point dominates another when it is at least as good in both figures and better in one (Pareto's order, as in Ehrgott,
"Multicriteria Optimization", 2nd edition, 2005, chapter 2). The front are the points that none dominates.

Figures are uncertain, so that a point beside the front may belong to it. It is surely dominated when one other point is surely at
least as good in both figures and surely better in one: when the whole intervals are. That the other is surely better in one figure
and not surely worse in the second would not do: the point may yet be the better one in the second, and points of the front itself
would be called surely dominated. An unknown interval makes nothing sure; an exact figure is an interval without width.
"""

from collections.abc import Sequence
from dataclasses import dataclass

Pair = tuple[float, float]


@dataclass(frozen=True)
class Box:
    """The intervals of a point's two figures."""

    x_low: float
    x_high: float
    y_low: float
    y_high: float


def front(points: Sequence[Pair]) -> list[bool]:
    """Of each point, whether it is on the front. Equal points are both on it, or neither is."""
    return [not any(_dominates(other, point) for other in points) for point in points]


def significantly_dominated(boxes: Sequence[Box | None]) -> list[bool]:
    """Of each point, whether one other surely dominates it; None is a point of which an interval is unknown."""
    known = [box for box in boxes if box is not None]
    return [box is not None and any(_dominates(_worst(other), _best(box)) for other in known) for box in boxes]


def _dominates(pair: Pair, other: Pair) -> bool:
    return pair[0] >= other[0] and pair[1] >= other[1] and pair != other


def _worst(box: Box) -> Pair:
    return box.x_low, box.y_low


def _best(box: Box) -> Pair:
    return box.x_high, box.y_high
