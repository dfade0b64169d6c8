"""What the claims of the study speak of: times that were measured here, and what the paper has, in both readings."""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy

import numpy as np
from numpy.typing import NDArray

from sensorbench.claims import Figure, FigureEvidence, NotMeasuredError, RunValues
from sensorbench.results.planned import WantedWord
from sensorbench.results.summary.mapreduce import HoldsByReading, MapReduceSummary, PrintedGain
from sensorbench.studies.published import PrintedRow
from sensorbench.wording import counted

# Servers of the paper, and its articles.
MIN_NODES, MAX_NODES = 3, 8
PAPER_ARTICLES = 19_580
# What the paper's table calls it.
_GAIN = "total-increase-in-performance"
# What claims call words, by what the study calls those that it chose.
RARE, MEDIUM, FREQUENT = "rare", "medium", "frequent"
_CHOSEN = {"rare": RARE, "medium": MEDIUM, "very frequent": FREQUENT}
# Of one system there is no spread.
MIN_SYSTEMS = 2

Values = NDArray[np.float64]


class Evidence(FigureEvidence):
    """The times of each system on Spark by workers and word, one of each execution that is not a warm-up. Systems are known by name and by role.

    `roles` are those whose scales count; all where it is None.
    """

    def __init__(self, summary: MapReduceSummary, databases: Mapping[str, Sequence[str]], titles: Mapping[str, str]) -> None:
        self._summary, self.titles = summary, titles
        self._names = kinds_of(summary.result.words)
        self.times: dict[tuple[str, int, str], Values] = {}
        self._nodes: dict[tuple[str, int], int | None] = {}
        for job in summary.result.cells:
            if job.workers is None:
                continue
            self._nodes[job.system, job.workers] = job.nodes
            for word in job.words:
                if word.times:
                    totals = [time.total_s for time in word.times if not time.first]
                    self.times[job.system, job.workers, word.word] = np.array(totals or [time.total_s for time in word.times])
        of = {name: system.database for name, system in summary.result.systems.items()}
        self.systems = {role: next((name for name in of if of[name] in names), None) for role, names in databases.items()}
        self._servers = summary.environment.get("servers", {})
        self._roles: frozenset[str] | None = None

    def about(self, roles: Iterable[str]) -> "Evidence":
        """The same, whose scales are those of some roles; those that are none of the study's stand for all."""
        found = copy(self)
        wanted = frozenset(roles)
        found._roles = wanted if wanted <= self.systems.keys() else None
        return found

    @property
    def names(self) -> list[str]:
        """The systems that were measured."""
        return list(dict.fromkeys(system for system, _, _ in self.times))

    @property
    def workers(self) -> list[int]:
        """The numbers of workers that were measured."""
        return sorted({count for _, count, _ in self.times})

    def values(self, figure: Figure) -> RunValues | None:
        """`time(system, workers)`, `spread(systems, workers)` or `growth(workers, most)`; executions of a cell are independent of those of others. A word may
        follow: rare, medium or frequent; without it, it is the one that is looked for first.
        """
        of, place, *kind = figure.arguments
        quantity = {"time": self._time, "spread": self._spread, "growth": self._growth}[figure.quantity]
        return quantity(of, self._count(place), self._word(*kind))

    def _word(self, kind: str | None = None) -> str:
        """A word by what a claim calls it."""
        if kind is None:
            return self._summary.result.words[0].word
        if kind not in self._names:
            raise NotMeasuredError(f"needs a {kind} word (no --word, or three of them)")
        return self._names[kind]

    def _count(self, place: str) -> int:
        """A number of workers by what a claim calls it."""
        if place in {"fewest", "most"}:
            if len(self.workers) < 2:
                raise NotMeasuredError("needs two sizes (--nodes)")
            return self.workers[0 if place == "fewest" else -1]
        if int(place) not in self.workers:
            raise NotMeasuredError(f"needs --nodes with {place} among them")
        return int(place)

    def _time(self, system: str, workers: int, word: str) -> RunValues | None:
        name = self.systems.get(system, system)
        if name not in self.names and system in self.titles:
            raise NotMeasuredError(f"needs {self.titles[system]}")
        times = self.times.get((name or "", workers, word))
        return None if times is None else RunValues(dict(enumerate(times)), f"{name} {workers} {word}")

    def _spread(self, _: str, workers: int, word: str) -> RunValues:
        """The standard deviation over the paper's systems of the logarithms of their times, execution by execution."""
        playing = set(self.systems.values())
        of_systems = [
            times for (system, count, of), times in self.times.items() if (count, of) == (workers, word) and system in playing
        ]
        if len(of_systems) < MIN_SYSTEMS:
            raise NotMeasuredError(f"needs {MIN_SYSTEMS} of {', '.join(self.titles.values())} with {counted(workers, 'node')}")
        executions = min(len(times) for times in of_systems)
        logs = np.log([times[:executions] for times in of_systems])
        return RunValues(dict(enumerate(logs.std(axis=0, ddof=1))), f"spread {workers} {word}")

    def _growth(self, _: str, workers: int, word: str) -> RunValues:
        """How many times as many workers there are as the fewest: known exactly."""
        del word
        return RunValues.exactly(workers / self.workers[0])

    def scale(self, name: str) -> float | None:
        """What findings of this study depend on; None of what is not known."""
        if not self.workers:
            return None
        cpus = self._summary.environment.get("processors_allowed")
        return {
            "nodes_per_worker": self._nodes_per_worker(),
            "node_growth": self.workers[-1] / self.workers[0],
            "cpus_per_node": cpus / self.workers[-1] if cpus else None,
            "scale": self._summary.result.dataset.articles / PAPER_ARTICLES,
        }.get(name)

    def _nodes_per_worker(self) -> float | None:
        """The least that a database had in any size."""
        playing = {name for role, name in self.systems.items() if self._roles is None or role in self._roles}
        known = {place: nodes for place, nodes in self._nodes.items() if place[0] in playing}
        if not known:
            return None
        if None not in known.values():
            return min(nodes / workers for (_, workers), nodes in known.items() if nodes is not None)
        # Older results have but the nodes of the servers as they were started.
        nodes = [server["nodes"] for server in self._servers.values() if server.get("nodes")]
        return min(nodes) / self.workers[-1] if nodes else None


def kinds_of(words: Sequence[WantedWord]) -> dict[str, str]:
    """The words by what claims call them. Of words that a user named, the most frequent is the frequent one, and so on; of two, none is in the middle."""
    chosen = {_CHOSEN[word.kind]: word.word for word in words if word.kind in _CHOSEN}
    if chosen:
        return chosen
    by_count = [word.word for word in sorted(words, key=lambda word: word.occurrences)]
    places = {
        FREQUENT: -1,
        **({RARE: 0} if len(by_count) > 1 else {}),
        **({MEDIUM: len(by_count) // 2} if len(by_count) > 2 else {}),
    }
    return {kind: by_count[place] for kind, place in places.items()} if by_count else {}


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
        "MR-12": all(value <= MAX_NODES / MIN_NODES for value in gain.values()),
    }
