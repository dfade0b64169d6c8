"""How the claims of the study are judged: on times that were measured here, and on what the paper has, in both readings."""

import csv
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sensorbench.analysis.intervals import Interval, product_over_runs, scaled
from sensorbench.claims import NOT_MEASURED, Case, Judgement, all_of, at_most, greater_than_one, near_one, untested_for
from sensorbench.results.summary.mapreduce import HoldsByReading, MapReduceSummary, PrintedGain

CA, HB, MO = "CA", "HB", "MO"
# Servers of the paper.
MIN_WORKERS, MAX_WORKERS = 3, 8
TWICE = 2.0
# What the paper's table calls it.
_GAIN = "total-increase-in-performance"

Values = NDArray[np.float64]
Judge = Callable[["Evidence"], Judgement]


class Evidence:
    """The times of each system on Spark by workers, one of each execution that is no warm-up; and which roles systems have."""

    def __init__(self, summary: MapReduceSummary, roles: Mapping[str, Sequence[str]], titles: Mapping[str, str]) -> None:
        self.titles = titles
        self.times: dict[tuple[str, int], Values] = {}
        for job in summary.result.cells:
            if job.workers is None:
                continue
            totals = [time.total_s for time in job.times if not time.first]
            self.times[job.system, job.workers] = np.array(totals or [time.total_s for time in job.times])
        of = {name: system.database for name, system in summary.result.systems.items()}
        self.systems = {role: next((name for name in of if of[name] in names), None) for role, names in roles.items()}

    @property
    def names(self) -> list[str]:
        """The systems that were measured."""
        return list(dict.fromkeys(system for system, _ in self.times))

    def workers(self, system: str | None = None) -> list[int]:
        """The numbers of workers that were measured, of a system or of all."""
        return sorted({count for name, count in self.times if system in (None, name)})

    def ratio(self, pair: tuple[str | None, int], other: tuple[str | None, int]) -> Interval | None:
        """A time over another, measured apart."""
        first, second = (self.times.get((place[0] or "", place[1])) for place in (pair, other))
        return None if first is None or second is None else product_over_runs([first, 1.0 / second])

    def spread(self, workers: int) -> Interval | None:
        """The slowest system over the fastest."""
        means = {system: float(self.times[system, workers].mean()) for system in self.names if (system, workers) in self.times}
        if len(means) < 2:
            return None
        return self.ratio((max(means, key=means.__getitem__), workers), (min(means, key=means.__getitem__), workers))

    def gain(self, role: str) -> Interval | None:
        """T(3)/T(8) of a role."""
        return self.ratio((self.systems[role], MIN_WORKERS), (self.systems[role], MAX_WORKERS))


def _needs_workers(*workers: int) -> Judgement:
    return untested_for(f"needs --workers {','.join(map(str, workers))}")


def _far_apart(evidence: Evidence) -> Judgement:
    spread = evidence.spread(MIN_WORKERS)
    return _needs_workers(MIN_WORKERS) if spread is None else _above(spread, TWICE)


def _above(interval: Interval, limit: float) -> Judgement:
    return greater_than_one(scaled(interval, 1.0 / limit))


def _come_closer(evidence: Evidence) -> Judgement:
    before, after = evidence.spread(MIN_WORKERS), evidence.spread(MAX_WORKERS)
    if before is None or after is None:
        return _needs_workers(MIN_WORKERS, MAX_WORKERS)
    return _above(before, after.value)


def _extreme(role: str, *, slowest: bool) -> Judge:
    """That a role's system is slower, or faster, than every other with every number of workers."""

    def judge(evidence: Evidence) -> Judgement:
        own = evidence.systems[role]
        if own not in evidence.names:
            return untested_for(f"needs {evidence.titles[role]}")
        cases = []
        for other in (name for name in evidence.names if name != own):
            for count in evidence.workers():
                places = ((own, count), (other, count))
                ratio = evidence.ratio(*(places if slowest else reversed(places)))
                cases.append(Case(f"{other}, {count} workers", greater_than_one(ratio)))
        return all_of(cases)

    return judge


def _lead_shrinks(evidence: Evidence) -> Judgement:
    own, workers = evidence.systems[CA], evidence.workers()
    if own not in evidence.names or len(workers) < 2:
        return untested_for(f"needs {evidence.titles[CA]} and two numbers of workers")
    cases = []
    for other in (name for name in evidence.names if name != own):
        places = [(other, workers[0]), (own, workers[0]), (own, workers[-1]), (other, workers[-1])]
        times = [evidence.times.get((str(name), count)) for name, count in places]
        known = [time for time in times if time is not None]
        lead = product_over_runs([known[0], 1.0 / known[1], known[2], 1.0 / known[3]]) if len(known) == len(times) else None
        cases.append(Case(other, greater_than_one(lead)))
    return all_of(cases)


def _gains_in_order(evidence: Evidence) -> Judgement:
    missing = [role for role in (HB, MO, CA) if evidence.gain(role) is None]
    if missing:
        needed = " and ".join(evidence.titles[role] for role in missing)
        return untested_for(f"needs {needed} with --workers {MIN_WORKERS},{MAX_WORKERS}, and Riak, which cannot be had here")
    gains = [(role, evidence.gain(role)) for role in (HB, MO, CA)]
    return all_of(
        [
            Case(f"{pair} over {other}", greater_than_one(scaled(more, 1.0 / less.value)))
            for (pair, more), (other, less) in pairwise(gains)
            if more is not None and less is not None
        ]
    )


def _nearly_constant(evidence: Evidence) -> Judgement:
    gain = evidence.gain(CA)
    return _needs_workers(MIN_WORKERS, MAX_WORKERS) if gain is None else near_one(gain)


def _not_above_linear(evidence: Evidence) -> Judgement:
    workers = evidence.workers()
    if len(workers) < 2:
        return untested_for("needs two numbers of workers")
    linear = workers[-1] / workers[0]
    cases = [
        Case(system, at_most(gain, linear, f"at most {linear:g}, which is linear"))
        for system in evidence.names
        if (gain := evidence.ratio((system, workers[0]), (system, workers[-1]))) is not None
    ]
    return all_of(cases) if cases else untested_for(NOT_MEASURED)


JUDGES: dict[str, Judge] = {
    "MR-1": _far_apart,
    "MR-2": _come_closer,
    "MR-3": _extreme(MO, slowest=True),
    "MR-4": _extreme(CA, slowest=False),
    "MR-5": _lead_shrinks,
    "MR-7": _gains_in_order,
    "MR-8": _nearly_constant,
    "MR-12": _not_above_linear,
}


def printed_gains(file: Path) -> dict[str, PrintedGain]:
    """What the paper has, as T(3)/T(8) in both readings: a percentage as an increase, and as a ratio."""
    with file.open(encoding="utf-8", newline="") as text:
        rows = [row for row in csv.DictReader(text) if row["metric"] == _GAIN]
    percent = {row["system"]: float(row["value"]) for row in rows}
    return {
        name: PrintedGain(printed_percent=value, increase=1.0 + value / 100.0, ratio=value / 100.0)
        for name, value in percent.items()
    }


def judged_as_printed(gains: Mapping[str, PrintedGain]) -> dict[str, HoldsByReading]:
    """For the claims that the paper's table is about: whether they hold on its own figures, in each reading."""
    increase = _holds({name: gain.increase for name, gain in gains.items()})
    ratio = _holds({name: gain.ratio for name, gain in gains.items()})
    return {claim: HoldsByReading(increase=increase[claim], ratio=ratio[claim]) for claim in ratio}


def _holds(gain: Mapping[str, float]) -> dict[str, bool]:
    order = sorted(gain, key=gain.__getitem__, reverse=True)
    return {
        "MR-7": (order[0], order[-1]) == ("HBase", "Cassandra"),
        "MR-11": gain["mongoDB"] > gain["Riak"],
        "MR-12": all(value <= MAX_WORKERS / MIN_WORKERS for value in gain.values()),
    }
