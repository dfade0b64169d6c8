"""The figures of a level by round, and how those of two levels compare."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sensorbench.analysis.intervals import Interval, spread_over_runs
from sensorbench.results.factors import FILLED, CellMeasurement, FactorsResult, StepFigures, Where


def measurements_of(result: FactorsResult, load: str, level: tuple[str, str]) -> Sequence[CellMeasurement]:
    """The measurements of a level of a part under a load that came out."""
    cells = [name for name, cell in result.manifest.plan.cells.items() if cell.load == load and level in cell.levels]
    return [measured for name in cells for measured in result.measurements[name] if measured.outcome == "measured"]


def by_round(measured: Sequence[CellMeasurement], where: Where, figure: str) -> dict[int, float]:
    """A figure by round, of those rounds that have it; `a.b` is figure b of what is called a."""
    found = {measurement.round: _figure(measurement, where, figure) for measurement in measured}
    return {number: value for number, value in found.items() if value is not None}


def ratio(sequence: Sequence[CellMeasurement], other: Sequence[CellMeasurement], where: Where, figure: str) -> Interval | None:
    """The ratio of a figure of one level to that of another, round by round, because cells of a round have the same operations and
    follow one another; None if no round has both above 0.
    """
    of_one, of_other = by_round(sequence, where, figure), by_round(other, where, figure)
    rounds = sorted(of_one.keys() & of_other.keys())
    ratios = [of_one[number] / of_other[number] for number in rounds if of_one[number] > 0 < of_other[number]]
    return spread_over_runs(np.array(ratios)) if ratios else None


def _figure(measured: CellMeasurement, where: Where, path: str) -> float | None:
    found: Any = measured.filled if where == FILLED else _step(measured, where)
    for word in path.split("."):
        if found is None:
            return None
        found = found.get(word) if isinstance(found, Mapping) else getattr(found, word)
    return None if found is None else float(found)


def _step(measured: CellMeasurement, number: int) -> StepFigures | None:
    return measured.steps[number] if -len(measured.steps) <= number < len(measured.steps) else None
