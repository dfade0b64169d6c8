"""Series of figures out of a history, and where they changed: which version was the first that is affected, by how much."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median

import numpy as np

from sensorbench.analysis.level_shifts import level_shifts, variation_within
from sensorbench.analysis.sample import Floats
from sensorbench.history.simulated import detectable_step
from sensorbench.history.store import HistoryStore
from sensorbench.results.history_entries import (
    VERSIONED,
    Direction,
    DoctorFigures,
    HistoryChange,
    HistoryPoint,
    HistorySeries,
    Machines,
    StoredFigure,
    VersionChange,
)

# A figure of the doctor that is this many times what it was is named at a change.
FAR = 2.0
_OF_SERIES = ("experiment", "name", "variant", "operation", "metric", "unit", "higher_is_better")


@dataclass(frozen=True)
class Selection:
    """Which series are wanted; None for all.

    Attributes:
        experiment: name of an experiment, or the beginning of its digest.
        variant: words that the variant's name has.
        operation: name of an operation.
        metric: name of a metric; that which results are ranked by if None.
        machine: the beginning of a machine's fingerprint.

    """

    experiment: str | None = None
    variant: str | None = None
    operation: str | None = None
    metric: str | None = None
    machine: str | None = None

    def has(self, figure: StoredFigure) -> bool:
        """Whether a figure of the history is wanted."""
        return (
            (self.experiment is None or figure.name == self.experiment or figure.experiment.startswith(self.experiment))
            and (self.variant is None or self.variant in figure.variant)
            and (self.operation is None or figure.operation == self.operation)
            and (figure.metric == self.metric if self.metric is not None else figure.is_main)
            and (self.machine is None or figure.machine.startswith(self.machine))
        )


def series_of(
    store: HistoryStore, selection: Selection = Selection(), *, machines: Machines = "split", seed: int = 0
) -> list[HistorySeries]:
    """The series of a history with their changes.

    Args:
        store: the history.
        selection: which of them.
        machines: `split` gives a series for each type of machine. `normalised` gives one over all machines, of latencies times, and rates over,
            what the client could do with the driver on that day; figures without such a ceiling are left out. A result of a day on which
            repetitions of the same variant differed more than on most counts less.
        seed: of the permutations.

    Returns:
        In the order of experiments, variants, operations and metrics.

    """
    figures = [figure for figure in store.figures() if selection.has(figure)]
    if machines == "normalised":
        figures = list(_normalised(figures))
    # What an experiment is called may change; what it measures says which it is.
    names = {figure.experiment: figure.name for figure in sorted(figures, key=lambda figure: figure.measured)}
    figures = [figure.model_copy(update={"name": names[figure.experiment]}) for figure in figures]

    def key_of(figure: StoredFigure) -> tuple[str, ...]:
        return (*(str(getattr(figure, name)) for name in _OF_SERIES), figure.machine if machines == "split" else "")

    ordered = sorted(figures, key=lambda figure: (*key_of(figure), figure.measured, figure.result))
    return [_series(list(group), machines, seed) for _, group in groupby(ordered, key=key_of)]


def _normalised(figures: Sequence[StoredFigure]) -> Iterator[StoredFigure]:
    """Figures as multiples of what the client could do: a latency as a multiple of a no-op, a rate as a share of the ceiling. The no-op is the
    driver's, or in series where no driver's was measured that of a database that does nothing.
    """

    def series(figure: StoredFigure) -> tuple[str, ...]:
        return (figure.experiment, figure.variant, figure.operation, figure.metric)

    of_driver = {series(figure) for figure in figures if figure.no_op_per_s}
    for figure in figures:
        per_s = figure.no_op_per_s if series(figure) in of_driver else figure.null_ops_per_s
        if not per_s or figure.unit not in {"s", "per s"}:
            continue
        factor = per_s if figure.unit == "s" else 1.0 / per_s
        low, high = (None if end is None else end * factor for end in (figure.low, figure.high))
        yield figure.model_copy(update={"value": figure.value * factor, "low": low, "high": high, "unit": "share"})


def _series(figures: Sequence[StoredFigure], machines: Machines, seed: int) -> HistorySeries:
    last = figures[-1]
    points = [_point(figure) for figure in figures]
    values = np.array([point.value for point in points])
    weights = _weights([point.doctor.aa_variation for point in points]) if machines == "normalised" else None
    shifts = level_shifts(values, weights=weights, seed=seed)
    variation = variation_within(values, [shift.place for shift in shifts])
    changes = []
    for shift in shifts:
        is_more = shift.ratio > 1.0
        is_worse = is_more != last.higher_is_better
        words: tuple[Direction, Direction] = (
            ("more", "less") if last.unit == "bytes" or last.higher_is_better else ("slower", "faster")
        )
        changes.append(
            HistoryChange(
                place=shift.place,
                measured=points[shift.place].measured,
                direction=words[0] if is_more else words[1],
                is_worse=is_worse,
                ratio=shift.ratio,
                low=shift.low,
                high=shift.high,
                before=shift.before,
                after=shift.after,
                versions=[
                    *_version_changes(points[shift.place - 1], points[shift.place]),
                    *_doctor_changes(points[shift.place - 1].doctor, points[shift.place].doctor),
                ],
            )
        )
    level = len(points) - (shifts[-1].place if shifts else 0)
    return HistorySeries(
        **{name: getattr(last, name) for name in _OF_SERIES},
        machine=last.machine if machines == "split" else "",
        machine_words=last.machine_words if machines == "split" else "several machines, normalised by the no-op ceiling",
        points=points,
        changes=changes,
        variation=variation,
        detectable=None if variation is None else detectable_step(variation, level),
    )


def _weights(variations: Sequence[float | None]) -> Floats:
    """How much each result counts: a day noisier than most by the square of how much noisier; one of which that is not known like most."""
    known = [variation for variation in variations if variation]
    typical = median(known) if known else 1.0
    return np.array([min(1.0, typical / variation) ** 2 if variation else 1.0 for variation in variations])


def _point(figure: StoredFigure) -> HistoryPoint:
    return HistoryPoint(
        result=figure.result,
        folder=figure.folder,
        measured=figure.measured,
        value=figure.value,
        low=figure.low,
        high=figure.high,
        runs=figure.runs,
        doctor=figure.doctor,
        versions={name: str(getattr(figure, name)) for name in VERSIONED},
    )


def _version_changes(before: HistoryPoint, after: HistoryPoint) -> list[VersionChange]:
    """What is another version at a point than at the one before it; of server settings, those that differ."""
    found = []
    for name in VERSIONED:
        was, now = before.versions[name], after.versions[name]
        if was == now:
            continue
        if name == "server_settings":
            of_before, of_after = json.loads(was or "{}"), json.loads(now or "{}")
            keys = sorted(key for key in of_before.keys() | of_after.keys() if of_before.get(key) != of_after.get(key))
            was, now = (", ".join(f"{key}={settings.get(key, 'not said')}" for key in keys) for settings in (of_before, of_after))
        found.append(VersionChange(what=name, before=was, after=now))
    return found


def _doctor_changes(before: DoctorFigures, after: DoctorFigures) -> Iterator[VersionChange]:
    """The doctor's figures that are far from what they were: the machine may be what changed."""
    for name in DoctorFigures.model_fields:
        was, now = getattr(before, name), getattr(after, name)
        if was and now and max(was / now, now / was) >= FAR:
            yield VersionChange(what=name, before=f"{was:.3g}", after=f"{now:.3g}")
