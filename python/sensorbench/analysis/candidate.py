"""A layout that was measured, and figures of what was measured of it.

Each run gives a figure once; figures are geometric means over runs. Operations of one comparison share its runs, so that
their figures are multiplied run by run; what was measured in different comparisons is independent of one another.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sensorbench.analysis.intervals import Interval, product_over_runs

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Run:
    """One run behind a figure: its folder, its number among the repeats, when it began, and the operations per second that it
    gave.
    """

    id: str
    number: int
    date: str
    per_s: float


@dataclass(frozen=True)
class Measured:
    """One kind of operation in one layout. `readings` are those that a write carries, `rows` those that a read returns on
    average. `is_mixed`: others wrote or read at the same time.
    """

    operation: str
    comparison: str
    runs: tuple[Run, ...]
    readings: int
    rows: float | None
    is_mixed: bool
    latency_s: dict[str, Interval]

    @property
    def rates(self) -> Floats:
        """Readings written a second, or answers per second, run by run."""
        return np.array([run.per_s * self.readings for run in self.runs])


@dataclass(frozen=True)
class Candidate:
    """A layout that was measured: a schema with its parameters chosen, at a target. `name` distinguishes it from the others.

    `nodes` and `copies` (of each reading) are those that it was measured with, `memory_bytes` what its servers had resident,
    if known.
    """

    name: str
    target: str
    database: str
    version: str
    schema: str
    label: str
    parameters: dict[str, str | int | float | bool]
    embedded: bool
    in_memory: bool
    nodes: int
    copies: int
    writes: tuple[Measured, ...]
    reads: tuple[Measured, ...]
    bytes_a_reading: float | None
    memory_bytes: float | None

    @property
    def layout(self) -> tuple[str, str, str]:
        """Database, schema and parameters: the same for a layout at servers with other settings, and in other results."""
        return self.database, self.schema, str(sorted(self.parameters.items()))

    def measured(self, questions: Sequence[str]) -> tuple[Measured, ...]:
        """What was measured of these questions."""
        return tuple(measurement for measurement in self.reads if measurement.operation in questions)

    @property
    def written_per_s(self) -> Interval | None:
        """Readings written a second; None when no write was measured."""
        return _mean_rate(self.writes)

    def read_per_s(self, questions: Sequence[str]) -> Interval | None:
        """Answers a second, of several questions their geometric mean; None when not all of them were measured."""
        measured = self.measured(questions)
        return _mean_rate(measured) if len(measured) == len(questions) else None


@dataclass(frozen=True)
class Factor:
    """What one comparison contributes to a score, by the numbers of its runs."""

    numbers: tuple[int, ...]
    values: Floats


def factors_of(weighted: Sequence[tuple[Measured, float]]) -> dict[str, Factor]:
    """Figures raised to their weights, multiplied run by run within a comparison, whose operations share their runs."""
    factors: dict[str, Factor] = {}
    for measurement, weight in weighted:
        values, known = measurement.rates**weight, factors.get(measurement.comparison)
        numbers = tuple(run.number for run in measurement.runs)
        factors[measurement.comparison] = Factor(numbers, values if known is None else known.values * values)
    return factors


def quotient(factor: Factor | None, other: Factor | None) -> list[Floats]:
    """One factor over another: run by run where they took turns, else as two factors that were measured independently."""
    if factor is not None and other is not None and factor.numbers == other.numbers:
        return [factor.values / other.values]
    return [*([factor.values] if factor is not None else []), *([1.0 / other.values] if other is not None else [])]


def _mean_rate(measured: Sequence[Measured]) -> Interval | None:
    """The geometric mean of what was measured; None when nothing was."""
    factors = factors_of([(measurement, 1.0 / len(measured)) for measurement in measured])
    return product_over_runs([factor.values for factor in factors.values()]) if factors else None
