"""What a pilot found of comparisons: how loading and operations grow with the readings."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from sensorbench.analysis.extrapolation import Growth, Line
from sensorbench.runner import Comparison

# Of what is measured on one prefix alone, an operation is taken to grow by this power of the readings: between a look-up and a scan.
ASSUMED_EXPONENT = 0.5


class PrefixCosts(NamedTuple):
    """One prefix of one variant. Of `load_s`, `rows_s` is sending rows: the rest is for tables and servers, whatever the rows."""

    readings: int
    load_s: float
    rows_s: float
    size_bytes: float | None
    rows: int
    prepare_s: float
    prepared_bytes: int
    run: "ShortRun"


class ShortRun(NamedTuple):
    """What an operation of each kind takes (s); how many times the sum of them is what a run takes, which is less where several are in flight; and
    the numbers k of some of each kind, by its number.
    """

    operations: dict[str, float]
    parallel: float
    requests: dict[int, list[int]]


@dataclass(frozen=True)
class VariantPilot:
    """What was found of one variant, by readings: `operations` has the cost of each kind (s), of which `parallel` times the sum is what a run
    takes. `failed` says why there is nothing.
    """

    load_s: Line
    size_bytes: Line | None
    rows: Line
    prepare_s: Line
    prepared_bytes: Line
    operations: dict[str, Growth]
    parallel: float
    failed: str | None = None

    @classmethod
    def through(cls, small: PrefixCosts, large: PrefixCosts | None) -> Self:
        """What both prefixes say, or the first alone where the second was too long for it: then what settling takes is not seen to grow."""
        last = small if large is None else large

        def line(of: Callable[[PrefixCosts], float]) -> Line:
            return Line.through((0.0, 0.0) if large is None else (small.readings, of(small)), (last.readings, of(last)))

        def growth(name: str, cost_s: float) -> Growth:
            if large is None:
                return Growth(cost_s, small.readings, ASSUMED_EXPONENT)
            return Growth.through((small.readings, small.run.operations.get(name, 0.0)), (large.readings, cost_s))

        return cls(
            load_s=line(lambda costs: costs.load_s)
            if large
            else Line(max(0.0, small.load_s - small.rows_s), small.rows_s / small.readings),
            size_bytes=None if last.size_bytes is None else line(lambda costs: costs.size_bytes or 0.0),
            rows=line(lambda costs: costs.rows),
            prepare_s=line(lambda costs: costs.prepare_s),
            prepared_bytes=line(lambda costs: costs.prepared_bytes),
            operations={name: growth(name, cost_s) for name, cost_s in last.run.operations.items()},
            parallel=last.run.parallel,
        )


@dataclass(frozen=True)
class PartPilot:
    """What was found of one comparison. `mix` has its operations, each range of one by itself. `variants` has those that were measured; `measured_as`
    who stands for the others.
    """

    comparison: Comparison
    readings: Line
    generate_s: Line
    reference_s: dict[str, Growth]
    mix: dict[str, float]
    variants: dict[str, VariantPilot]
    measured_as: dict[str, str]


@dataclass(frozen=True)
class Pilot:
    """What was found of all comparisons. `smallest_scale` is one that they can be made at; `start_s` and `server_bytes` are how long servers
    took to start and the memory that they have, by the server that targets name. `skipped` has the comparisons that were not measured because those
    before them leave no time.
    """

    parts: dict[str, PartPilot]
    smallest_scale: float
    start_s: dict[str, float]
    server_bytes: dict[str, int]
    took_s: float
    skipped: list[str] = field(default_factory=list)
