"""What a configuration is judged by: a percentile at a rate, the capacity at an objective, the time to load, or the size of
the data.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np

from sensorbench.analysis.capacity import PERCENTILES, Search
from sensorbench.analysis.intervals import Interval
from sensorbench.benchmarks.stress import CapacitySearch, Step, merged, parse_objective
from sensorbench.benchmarks.tune.configured import LoadedData
from sensorbench.errors import UsageError
from sensorbench.results import RunResult
from sensorbench.results.stress import StressResult
from sensorbench.results.summary.claims import MeasuredFigure
from sensorbench.results.summary.stress import StressSummary


def measured_figure(interval: Interval) -> MeasuredFigure:
    """The figure of an interval."""
    return MeasuredFigure(**asdict(interval))


EXPECTED = "expected a percentile at a rate (p99@2000), a capacity at an objective (capacity:p99=20ms), load, or size"


class Goal(ABC):
    """A figure that is to become better. `kind` says what it is: s, bytes, or operations per second (`count`)."""

    text: str
    kind: Literal["duration_s", "count", "bytes"]
    smaller_is_better: bool = True

    @property
    def steps(self) -> Sequence[Step] | CapacitySearch:
        """What is done once the data are there."""
        return ()

    @abstractmethod
    def value(self, result: StressResult, summary: StressSummary, loaded: LoadedData) -> float | None:
        """The figure of a stress run with this summary, above zero; None if there is none."""


@dataclass(frozen=True)
class PercentileGoal(Goal):
    """A percentile of the response time (s) at a rate. Operations that failed, timed out or never started count as
    `timeout_s`.
    """

    text: str
    percentile: str
    step: Step
    timeout_s: float
    kind = "duration_s"

    @property
    def steps(self) -> Sequence[Step]:
        """The rate, held."""
        return [self.step]

    def value(self, result: StressResult, summary: StressSummary, loaded: LoadedData) -> float | None:
        """The percentile of all arrivals."""
        return percentile_of_offered(result.runs[0], PERCENTILES[self.percentile], self.timeout_s) if result.runs else None


@dataclass(frozen=True)
class CapacityGoal(Goal):
    """The highest rate that meets an objective, in operations per second."""

    text: str
    search: CapacitySearch
    kind = "count"
    smaller_is_better = False

    @property
    def steps(self) -> CapacitySearch:
        """The search."""
        return self.search

    def value(self, result: StressResult, summary: StressSummary, loaded: LoadedData) -> float | None:
        """What the search found; None when no rate met."""
        found = summary.result.capacity
        return found.met_per_s if found else None


@dataclass(frozen=True)
class LoadGoal(Goal):
    """The time to put the data there and to settle them, in s."""

    text: str = "load"
    kind = "duration_s"

    def value(self, result: StressResult, summary: StressSummary, loaded: LoadedData) -> float | None:
        """The time."""
        return loaded.load_s


@dataclass(frozen=True)
class SizeGoal(Goal):
    """What the data take, in bytes, as the database reports it."""

    text: str = "size"
    kind = "bytes"

    def value(self, result: StressResult, summary: StressSummary, loaded: LoadedData) -> float | None:
        """The size; None if the database does not report it."""
        return loaded.size_bytes or None


def parse_goal(text: str, *, held_s: float, ramp_s: float, timeout_s: float, search: Search) -> Goal:
    """`p99@2000`, `capacity:p99=20ms`, `load` or `size`; a rate is held for this long. Raises UsageError."""
    if text in ("load", "size"):
        return LoadGoal() if text == "load" else SizeGoal()
    word, colon, objective = text.partition(":")
    if word == "capacity" and colon:
        wanted = parse_objective(objective, timeout_s, option="--goal capacity:")
        return CapacityGoal(text, CapacitySearch(wanted, search, held_s, ramp_s))
    percentile, at, rate = text.partition("@")
    if percentile not in PERCENTILES or not at:
        raise UsageError(f"--goal {text}: {EXPECTED}")
    try:
        rate_per_s = float(rate)
    except ValueError:
        rate_per_s = 0.0
    if not 0.0 < rate_per_s < float("inf"):
        raise UsageError(f"--goal {text}: expected a rate above zero after @, in operations per second")
    return PercentileGoal(text, percentile, Step("step_1", rate_per_s, held_s, ramp_s), timeout_s)


def percentile_of_offered(run: RunResult, share: float, timeout_s: float) -> float | None:
    """The response time (s) within which this share of all arrivals of a run's last phase succeeded; those that did not count
    as `timeout_s`. None when there were none.
    """
    totals = run.manifest.totals
    if totals is None:
        return None
    phase = totals.phases[-1]
    offered = phase.started + phase.dropped
    if offered == 0:
        return None
    values, weights = merged(run.histograms(), phase.name, list(phase.operations), "response")
    in_time = values < timeout_s
    values, reached = values[in_time], np.cumsum(weights[in_time])
    place = int(np.searchsorted(reached, share * offered * (1 - 1e-12)))
    return float(values[place]) if place < len(values) else timeout_s
