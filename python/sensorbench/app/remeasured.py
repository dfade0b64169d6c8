"""Figures that measurements of a search or of a study of factors wrote down, computed again from the run of each."""

from collections.abc import Iterator
from pathlib import Path

from sensorbench.benchmarks.factors import filled_figures, step_figures
from sensorbench.benchmarks.stress import summarise_stress
from sensorbench.benchmarks.tune import follows_from_records, value_again
from sensorbench.bundles.figures import Remeasured
from sensorbench.results import kind_of
from sensorbench.results.factors import CELLS_FOLDER, CellMeasurement, read_factors
from sensorbench.results.stored import read_model
from sensorbench.results.stress import read_stress
from sensorbench.results.tune import CONFIRMATION_FOLDER, MEASUREMENT_FILE, TRIALS_FOLDER, Measurement, read_tune
from sensorbench.studies import require_factor_study


def remeasured_in(results: Path) -> Iterator[Remeasured]:
    """The figures of all measurements below results, stored and computed again; none of kinds that have no measurements.

    Raises:
        DamagedResultsError: a file is damaged.
        UsageError: the study is not known here.

    """
    kind = kind_of(results)
    if kind == "tune":
        yield from _of_tune(results)
    elif kind == "factors":
        yield from _of_factors(results)


def _of_tune(results: Path) -> Iterator[Remeasured]:
    plan = read_tune(results).manifest.plan
    if not follows_from_records(plan):
        return
    files = [
        file for part in (TRIALS_FOLDER, CONFIRMATION_FOLDER) for file in sorted((results / part).glob(f"*/{MEASUREMENT_FILE}"))
    ]
    for file in files:
        measurement = read_model(file, Measurement)
        if measurement.outcome != "failed":
            again = measurement.model_copy(update={"value": value_again(plan, file.parent)})
            yield Remeasured(file.relative_to(results).as_posix(), measurement, again, ("value",))


def _of_factors(results: Path) -> Iterator[Remeasured]:
    cache = require_factor_study(read_factors(results).manifest.plan.name).file.cache
    for file in sorted((results / CELLS_FOLDER).glob(f"*/*/{MEASUREMENT_FILE}")):
        measurement = read_model(file, CellMeasurement)
        if measurement.outcome == "measured":
            again = _again(file.parent, measurement, cache)
            yield Remeasured(file.relative_to(results).as_posix(), measurement, again, ("filled", "steps"))


def _again(folder: Path, measurement: CellMeasurement, cache: str) -> CellMeasurement:
    result = read_stress(folder)
    steps = step_figures(result, summarise_stress(result), cache)
    return measurement.model_copy(update={"filled": filled_figures(result), "steps": steps})
