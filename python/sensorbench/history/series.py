"""Series of figures out of a history, and where they changed: which version was the first that is affected, by how much."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from sensorbench.analysis.level_shifts import level_shifts, variation_within
from sensorbench.history.simulated import detectable_step
from sensorbench.history.store import HistoryStore
from sensorbench.results.history_entries import (
    VERSIONED,
    HistoryChange,
    HistoryPoint,
    HistorySeries,
    Machines,
    VersionChange,
)

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

    def has(self, row: dict[str, Any]) -> bool:
        """Whether a figure of the history is wanted."""
        return (
            (self.experiment is None or row["name"] == self.experiment or row["experiment"].startswith(self.experiment))
            and (self.variant is None or self.variant in row["variant"])
            and (self.operation is None or row["operation"] == self.operation)
            and (row["metric"] == self.metric if self.metric is not None else row["is_main"])
            and (self.machine is None or row["machine"].startswith(self.machine))
        )


def series_of(
    store: HistoryStore, selection: Selection = Selection(), *, machines: Machines = "split", seed: int = 0
) -> list[HistorySeries]:
    """The series of a history with their changes.

    Args:
        store: the history.
        selection: which of them.
        machines: `split` gives a series for each type of machine. `normalised` gives one over all machines, of latencies times, and rates over,
            what the client could do with the driver on that day; figures without such a ceiling are left out.
        seed: of the permutations.

    Returns:
        In the order of experiments, variants, operations and metrics.

    """
    rows = [row for row in store.rows() if selection.has(row)]
    if machines == "normalised":
        rows = list(_normalised(rows))
    keys = _OF_SERIES if machines == "normalised" else (*_OF_SERIES, "machine")
    # What an experiment is called may change; what it measures says which it is.
    names = {row["experiment"]: row["name"] for row in sorted(rows, key=lambda row: row["measured"])}
    rows = [{**row, "name": names[row["experiment"]]} for row in rows]

    def key_of(row: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(row[key] for key in keys)

    ordered = sorted(rows, key=lambda row: (*key_of(row), row["measured"], row["result"]))
    return [_series(list(group), machines, seed) for _, group in groupby(ordered, key=key_of)]


def _normalised(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Figures as multiples of what the client could do: a latency as a multiple of a no-op, a rate as a share of the ceiling."""
    for row in rows:
        ceiling = row["no_op_per_s"]
        if not ceiling or row["unit"] not in {"s", "per s"}:
            continue
        factor = ceiling if row["unit"] == "s" else 1.0 / ceiling
        scaled = {name: row[name] and row[name] * factor for name in ("value", "low", "high")}
        yield {**row, **scaled, "unit": "share"}


def _series(rows: Sequence[dict[str, Any]], machines: Machines, seed: int) -> HistorySeries:
    first, last = rows[0], rows[-1]
    points = [_point(row) for row in rows]
    values = np.array([point.value for point in points])
    shifts = level_shifts(values, seed=seed)
    variation = variation_within(values, [shift.place for shift in shifts])
    changes = []
    for shift in shifts:
        is_more = shift.ratio > 1.0
        is_worse = is_more != first["higher_is_better"]
        words = ("more", "less") if first["unit"] == "bytes" or first["higher_is_better"] else ("slower", "faster")
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
                versions=_version_changes(points[shift.place - 1], points[shift.place]),
            )
        )
    level = len(points) - (shifts[-1].place if shifts else 0)
    return HistorySeries(
        **{name: last[name] for name in _OF_SERIES},
        machine=last["machine"] if machines == "split" else "",
        machine_words=last["machine_words"] if machines == "split" else "several machines, normalised by the no-op ceiling",
        points=points,
        changes=changes,
        variation=variation,
        detectable=None if variation is None else detectable_step(variation, level),
    )


def _point(row: dict[str, Any]) -> HistoryPoint:
    return HistoryPoint(
        result=row["result"],
        folder=row["folder"],
        measured=row["measured"],
        value=row["value"],
        low=row["low"],
        high=row["high"],
        runs=row["runs"],
        versions={name: str(row[name] or "") for name in VERSIONED},
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
