"""From two small measurements to a large one: costs that grow in a straight line, and costs that grow by a power."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """A fixed cost, and one for each unit: of rows, bytes or seconds of loading."""

    fixed: float
    slope: float

    @classmethod
    def through(cls, first: tuple[float, float], second: tuple[float, float]) -> "Line":
        """The line through two points (x, y). Neither its fixed cost nor its slope is below zero: where noise says so, the second point
        alone counts, and nothing is fixed.
        """
        (x_1, y_1), (x_2, y_2) = first, second
        if x_2 <= x_1 or y_2 <= y_1:
            return cls(0.0, y_2 / x_2 if x_2 > 0 else 0.0)
        slope = (y_2 - y_1) / (x_2 - x_1)
        fixed = y_1 - slope * x_1
        return cls(fixed, slope) if fixed >= 0.0 else cls(0.0, y_2 / x_2)

    def at(self, x: float) -> float:
        """The cost of this many units."""
        return self.fixed + self.slope * x

    def inverse(self, y: float) -> float:
        """The units of a cost; infinite where they cost nothing."""
        return (y - self.fixed) / self.slope if self.slope > 0.0 else math.inf


@dataclass(frozen=True)
class Growth:
    """A cost at this many units that grows by a power of them: 0 for a look-up that costs the same, 1 for a scan."""

    value: float
    units: float
    exponent: float

    @classmethod
    def through(cls, first: tuple[float, float], second: tuple[float, float]) -> "Growth":
        """The power law through two points (x, y), its exponent kept between 0 and 1."""
        (x_1, y_1), (x_2, y_2) = first, second
        if x_2 <= x_1 or min(x_1, y_1, y_2) <= 0.0:
            return cls(y_2, x_2, 0.0)
        exponent = math.log(y_2 / y_1) / math.log(x_2 / x_1)
        return cls(y_2, x_2, min(1.0, max(0.0, exponent)))

    def at(self, units: float) -> float:
        """The cost at this many units."""
        return self.value * (units / self.units) ** self.exponent if self.units > 0.0 else self.value


def common_limit(needs: list[float], available: float) -> float:
    """The limit at which `needs`, each cut at it, take what is available; infinite where all of them fit.

    Small needs are met whole; what they leave is shared by the others alike.
    """
    left = available
    for number, need in enumerate(sorted(needs)):
        share = left / (len(needs) - number)
        if need > share:
            return max(0.0, share)
        left -= need
    return math.inf
