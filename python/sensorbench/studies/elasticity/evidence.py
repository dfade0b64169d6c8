"""The figures that the study's claims are about: of each database its transitions to more nodes, each measured in one work or several."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sensorbench.analysis.intervals import Interval, mean_over_runs
from sensorbench.claims import Figure, FigureEvidence, RunValues, WindowedSeries
from sensorbench.results.summary.elasticity import ElasticitySummary, NodeLoad, Transition

# The place of figures that a run without a change has.
STABLE = "stable"
NO_TRANSITION = -1
_ENDS = {"first": 0, "last": -1}
# Sets of a window in which the deviation is looked at, and how often the sets are put in another order.
DEVIATION_WINDOW = 5
ORDERS = 200

Values = NDArray[np.float64]


@dataclass
class Evidence(FigureEvidence):
    """For each role (a database of the study) and transition (0 is the first), the values of each figure, one of each work; series of set
    times; and the scales on which findings depend.
    """

    by_place: dict[tuple[str, int, str], list[float]] = field(default_factory=dict)
    set_times: dict[tuple[str, int], list[WindowedSeries]] = field(default_factory=dict)
    scales: dict[str, list[float]] = field(default_factory=dict)

    def add(self, role: str, transition: int, figures: Mapping[str, float | None]) -> None:
        """Adds what a work measured of a transition; figures that it has not are left out."""
        for name, value in figures.items():
            if value is not None:
                self.by_place.setdefault((role, transition, name), []).append(value)

    def of(self, role: str, transition: int, figure: str) -> Values:
        """The values of a figure."""
        return np.array(self.by_place.get((role, transition, figure), []))

    def transitions(self, role: str, figure: str) -> list[int]:
        """The transitions of which there is a figure."""
        return sorted({transition for of_role, transition, name in self.by_place if (of_role, name) == (role, figure)})

    def mean(self, role: str, transition: int, figure: str) -> Interval | None:
        """The mean of a figure."""
        values = self.of(role, transition, figure)
        return mean_over_runs(values) if len(values) else None

    def values(self, figure: Figure) -> RunValues | None:
        """A figure of a role and transition (from 1 on, or first and last), by work. Works of one role are compared with themselves."""
        role, place = figure.arguments
        transition = self._transition(role, place, figure.quantity)
        values = np.array([]) if transition is None else self.of(role, transition, figure.quantity)
        if figure.quantity == "nodes":
            return RunValues.exactly(float(values[0])) if len(values) else None
        return RunValues(dict(enumerate(values)), role) if len(values) else None

    def _transition(self, role: str, place: str, figure: str) -> int | None:
        if place == STABLE:
            return NO_TRANSITION
        if place not in _ENDS:
            return int(place) - 1
        known = [number for number in self.transitions(role, figure) if number != NO_TRANSITION]
        return known[_ENDS[place]] if len(known) > 1 else None

    def series(self, figure: Figure) -> list[WindowedSeries] | None:
        """The set times before and during a transition, of each work."""
        role, place = figure.arguments
        return self.set_times.get((role, int(place) - 1))

    def scale(self, name: str) -> float | None:
        """The smallest of the works."""
        return min(self.scales[name], default=None) if name in self.scales else None


def evidence_of(summaries: Iterable[ElasticitySummary], roles: Mapping[str, Sequence[str]]) -> Evidence:
    """What works measured, whose databases are those of the roles."""
    evidence = Evidence()
    for summary in summaries:
        (variant,) = summary.variants
        role = next((role for role, databases in roles.items() if variant.database in databases), None)
        if role is None:
            continue
        growing = [grown for grown in summary.result.transitions if grown.change.kind == "join" and not grown.failed]
        scalability = {grown.from_nodes: grown.scalability for grown in summary.result.scalability}
        for number, transition in enumerate(growing):
            evidence.add(role, number, figures_of(transition, scalability.get(transition.nodes)))
            series = _set_times(transition)
            if series is not None:
                evidence.set_times.setdefault((role, number), []).append(series)
        for stable in (other for other in summary.result.transitions if other.change.kind == "stay" and not other.failed):
            evidence.add(role, NO_TRANSITION, _deviations(np.array(stable.sets.duration_s)))
        for name, value in _scales(summary).items():
            evidence.scales.setdefault(name, []).append(value)
    return evidence


def _scales(summary: ElasticitySummary) -> dict[str, float]:
    """What findings depend on, as far as results say it. All nodes of the lab share one machine, so that data over memory of a node are all data
    over all memory; of a user's cluster the memory is not known.
    """
    transitions, load, (variant,) = summary.result.transitions, summary.result.load, summary.variants
    scales = {
        "requests_per_set": float(min((transition.requests_per_set for transition in transitions), default=0)),
        "nodes": float(min((transition.nodes for transition in transitions), default=0)),
    }
    stored, memory = load["size"]["total_bytes"] if load else None, summary.environment.get("memory_bytes")
    if stored and memory and variant.url.startswith("lab:"):
        scales["bytes_per_node_over_memory"] = stored / memory
    return scales


def _set_times(transition: Transition) -> WindowedSeries | None:
    """The set times before a transition and during its transfer, over their level before."""
    if transition.before is None or transition.begun_at_s is None or transition.transfer_s is None:
        return None
    is_before, during = _around(transition)
    durations_s = np.array(transition.sets.duration_s) / transition.before.mean_s
    return WindowedSeries(durations_s[is_before], durations_s[during]) if during.any() else None


def _around(transition: Transition) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which sets began before a transition, and which during its transfer."""
    times_s = np.array(transition.sets.time_s)
    is_before, during = times_s < (transition.scored_from_s or np.inf), np.zeros(len(times_s), dtype=bool)
    if transition.begun_at_s is not None and transition.transfer_s is not None:
        during = ~is_before & (times_s < transition.begun_at_s + transition.transfer_s)
    return is_before, during


def _deviations(durations_s: Values, seed: int = 0) -> dict[str, float | None]:
    """How far apart the deviations of windows without a change are, and how far beyond what the same sets give in any order."""
    if len(durations_s) < 4 * DEVIATION_WINDOW:
        return {}
    generator = np.random.default_rng(seed)
    found = _deviation_spread(durations_s)
    by_chance = np.median([_deviation_spread(generator.permutation(durations_s)) for _ in range(ORDERS)])
    return {"deviation_spread": found, "deviation_spread_over_chance": found / float(by_chance)}


def _deviation_spread(durations_s: Values) -> float:
    count = len(durations_s) // DEVIATION_WINDOW
    deviations = durations_s[: count * DEVIATION_WINDOW].reshape(count, DEVIATION_WINDOW).std(axis=1, ddof=1)
    return float(deviations.max() / deviations.min()) if deviations.min() > 0.0 else float("nan")


def figures_of(transition: Transition, scalability: float | None) -> dict[str, float | None]:
    """The figures of a transition; None where there is none. Times and scores are those by the band."""
    stable, before = transition.stability.by_band if transition.stability else None, transition.before
    durations_s, (_, during) = np.array(transition.sets.duration_s), _around(transition)
    figures: dict[str, float | None] = {
        "nodes": float(transition.nodes),
        "transfer_s": transition.transfer_s,
        "additional_s": stable.additional_s if stable else None,
        "total_s": stable.total_s if stable else None,
        "elasticity": stable.score.elasticity if stable and stable.score else None,
        "scalability": scalability,
        "av_s": before.mean_s if before else None,
        "sd_s": before.sd_s if before else None,
        "sd_over_av": before.sd_s / before.mean_s if before else None,
        "hottest_share": _hottest_share(transition.servers),
    }
    if before and during.any():
        figures["peak_over_level"] = float(durations_s[during].max()) / before.mean_s
    return figures


def _hottest_share(servers: Mapping[str, NodeLoad]) -> float | None:
    """The share of the requests before the change that the busiest node took."""
    served = [server.requests.before or 0.0 for server in servers.values()]
    total = sum(served, 0.0)
    return max(served) / total if len(served) > 1 and total > 0.0 else None
