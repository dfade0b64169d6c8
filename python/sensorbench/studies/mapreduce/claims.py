"""What the claims of the study speak of: times that were measured here, and what the paper has, in both readings."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sensorbench.claims import Figure, FigureEvidence, NotMeasuredError, RunValues
from sensorbench.results.summary.mapreduce import HoldsByReading, MapReduceSummary, PrintedGain
from sensorbench.studies.published import PrintedRow

# Servers of the paper.
MIN_WORKERS, MAX_WORKERS = 3, 8
# What the paper's table calls it.
_GAIN = "total-increase-in-performance"
# Of fewer systems a spread says nothing.
MIN_SYSTEMS = 3

Values = NDArray[np.float64]


class Evidence(FigureEvidence):
    """The times of each system on Spark by workers, one of each execution that is no warm-up. Systems are known by name and by role."""

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
        self._servers = summary.environment.get("servers", {})

    @property
    def names(self) -> list[str]:
        """The systems that were measured."""
        return list(dict.fromkeys(system for system, _ in self.times))

    @property
    def workers(self) -> list[int]:
        """The numbers of workers that were measured."""
        return sorted({count for _, count in self.times})

    def values(self, figure: Figure) -> RunValues | None:
        """`time(system, workers)`, `spread(systems, workers)` or `growth(workers, most)`; executions of a cell are independent of those of others."""
        of, place = figure.arguments
        return {"time": self._time, "spread": self._spread, "growth": self._growth}[figure.quantity](of, self._count(place))

    def _count(self, place: str) -> int:
        """A number of workers by what a claim calls it."""
        if place in {"fewest", "most"}:
            if len(self.workers) < 2:
                raise NotMeasuredError("needs two numbers of workers (--workers)")
            return self.workers[0 if place == "fewest" else -1]
        if int(place) not in self.workers:
            raise NotMeasuredError(f"needs --workers {MIN_WORKERS},{MAX_WORKERS}")
        return int(place)

    def _time(self, system: str, workers: int) -> RunValues | None:
        name = self.systems.get(system, system)
        if name not in self.names and system in self.titles:
            raise NotMeasuredError(f"needs {self.titles[system]}")
        times = self.times.get((name or "", workers))
        return None if times is None else RunValues(dict(enumerate(times)), f"{name} {workers}")

    def _spread(self, _: str, workers: int) -> RunValues:
        """The standard deviation over systems of the logarithms of their times, execution by execution."""
        of_systems = [times for (_, count), times in self.times.items() if count == workers]
        if len(of_systems) < MIN_SYSTEMS:
            raise NotMeasuredError(f"needs {MIN_SYSTEMS} systems with {workers} workers")
        executions = min(len(times) for times in of_systems)
        logs = np.log([times[:executions] for times in of_systems])
        return RunValues(dict(enumerate(logs.std(axis=0, ddof=1))), f"spread {workers}")

    def _growth(self, _: str, workers: int) -> RunValues:
        """How many times as many workers there are as the fewest: known exactly."""
        return RunValues.exactly(workers / self.workers[0])

    def scale(self, name: str) -> float | None:
        """Nodes of the smallest database for each of the most workers."""
        if name != "nodes_per_worker" or not self.workers:
            return None
        nodes = [server["nodes"] for server in self._servers.values() if server.get("nodes")]
        return min(nodes) / self.workers[-1] if nodes else None


def printed_gains(rows: Sequence[PrintedRow]) -> dict[str, PrintedGain]:
    """What the paper has, as T(3)/T(8) in both readings: a percentage as an increase, and as a ratio."""
    percent = {row.system: float(row.value) for row in rows if row.metric == _GAIN}
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
