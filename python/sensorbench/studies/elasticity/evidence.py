"""The figures that the study's claims are about: of each database its transitions to more nodes, each measured in one work or several."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from sensorbench.analysis.intervals import Interval, mean_over_runs
from sensorbench.benchmarks.elasticity import ONCE
from sensorbench.claims import Figure, FigureEvidence, RunValues, WindowedSeries
from sensorbench.results.summary.elasticity import ElasticitySummary, NodeLoad, Transition
from sensorbench.studies.elasticity.scales import Scale, scales_of
from sensorbench.studies.elasticity.stable import figures_of_stable
from sensorbench.studies.elasticity.study_file import Role

# The place of figures that a run without a change has.
STABLE = "stable"
NO_TRANSITION = -1
_ENDS = {"first": 0, "last": -1}
# Times and shares. The intervals of few repetitions are symmetric, and may reach below what a figure can be.
_NEVER_NEGATIVE = frozenset({"transfer_s", "additional_s", "total_s", "av_s", "sd_s", "hottest_share"})

Values = NDArray[np.float64]


@dataclass
class Evidence(FigureEvidence):
    """For each role (a database of the study) and transition (0 is the first), the values of each figure, one of each work; series of set
    times; and the scales on which findings depend.
    """

    by_place: dict[tuple[str, int, str], list[float]] = field(default_factory=dict)
    set_times: dict[tuple[str, int], list[WindowedSeries]] = field(default_factory=dict)
    # By role and name, one of each work.
    scales: dict[tuple[str, str], list[Scale]] = field(default_factory=dict)
    # What is asked of scales is asked of these roles alone.
    roles: frozenset[str] | None = None

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
        """The mean of a figure, with an interval of values that it can have."""
        values = self.of(role, transition, figure)
        if not len(values):
            return None
        interval = mean_over_runs(values)
        if interval.low is None or figure not in _NEVER_NEGATIVE:
            return interval
        return replace(interval, low=max(interval.low, 0.0))

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

    def about(self, roles: Iterable[str]) -> "Evidence":
        """The same, whose scales are those of some roles."""
        return replace(self, roles=frozenset(roles))

    def scale(self, name: str) -> float | None:
        """The smallest of the works."""
        smallest = self._smallest(name)
        return smallest.value if smallest else None

    def arithmetic(self, name: str) -> str:
        """What the smallest was computed of."""
        smallest = self._smallest(name)
        return smallest.arithmetic if smallest else ""

    def _smallest(self, name: str) -> Scale | None:
        """None if it is not known of one of the roles that were measured."""
        measured = {role for role, _, _ in self.by_place if self.roles is None or role in self.roles}
        known = [self.scales.get((role, name), []) for role in sorted(measured)]
        return (
            min((scale for of_role in known for scale in of_role), key=lambda scale: scale.value)
            if known and all(known)
            else None
        )


def evidence_of(summaries: Iterable[ElasticitySummary], roles: Mapping[str, Role]) -> Evidence:
    """What works measured, whose databases are those of the roles."""
    evidence = Evidence()
    for summary in summaries:
        role = role_of(summary, roles)
        if role is None:
            continue
        transitions = [transition for transition in summary.result.transitions if not transition.failed]
        growing = [transition for transition in transitions if is_of_the_paper(transition)]
        scalability = {grown.from_nodes: grown.scalability for grown in summary.result.scalability}
        for number, transition in enumerate(growing):
            evidence.add(role, number, figures_of(transition, scalability.get(transition.nodes)))
            series = None if transition.moved_nothing else _set_times(transition)
            if series is not None:
                evidence.set_times.setdefault((role, number), []).append(series)
        stable = [transition for transition in transitions if transition.change.kind == "stay"]
        if grown_to := _after_the_last(stable, growing):
            evidence.add(role, len(growing), _levels(grown_to))
        if largest := max(stable, key=lambda transition: transition.nodes, default=None):
            evidence.add(role, NO_TRANSITION, figures_of_stable(np.array(largest.sets.duration_s)))
        for name, scale in scales_of(summary, growing, largest).items():
            evidence.scales.setdefault((role, name), []).append(scale)
    return evidence


def role_of(summary: ElasticitySummary, roles: Mapping[str, Role]) -> str | None:
    """The role of what was measured: of those of its database, the one that names most of its options."""
    (variant,) = summary.variants
    options = dict(option.partition("=")[::2] for option in variant.url.partition("?")[2].split("&") if option)
    fitting = [
        (len(role.options), name)
        for name, role in roles.items()
        if variant.database in role.databases and role.options.items() <= options.items()
    ]
    return max(fitting)[1] if fitting else None


def is_of_the_paper(transition: Transition) -> bool:
    """Whether nodes joined as the paper's did: all of them at once."""
    change = transition.change
    return change.kind == "join" and (change.count == 1 or change.how == ONCE)


def _after_the_last(stable: Sequence[Transition], growing: Sequence[Transition]) -> Transition | None:
    """The cluster when it has grown for the last time, with the data and the load of its size."""
    return next((other for other in stable if growing and other.number > growing[-1].number), None)


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


def _levels(transition: Transition) -> dict[str, float | None]:
    """What is known of a cluster before anything is done to it; None if it is not known."""
    before = transition.before
    return {
        "nodes": float(transition.nodes),
        "av_s": before.mean_s if before else None,
        "sd_s": before.sd_s if before else None,
        "sd_over_av": before.sd_s / before.mean_s if before else None,
        "hottest_share": _hottest_share(transition.servers),
    }


def figures_of(transition: Transition, scalability: float | None) -> dict[str, float | None]:
    """The figures of a transition; None if there is none. Times and scores are those by the band; a transition by which no data moved has
    neither.
    """
    levels = {**_levels(transition), "scalability": scalability}
    if transition.moved_nothing:
        return levels
    stable, before = transition.stability.by_band if transition.stability else None, transition.before
    durations_s, (_, during) = np.array(transition.sets.duration_s), _around(transition)
    figures: dict[str, float | None] = {
        **levels,
        "transfer_s": transition.transfer_s,
        "additional_s": stable.additional_s if stable else None,
        "total_s": stable.total_s if stable else None,
        "elasticity": stable.score.elasticity if stable and stable.score else None,
    }
    if before and during.any():
        figures["peak_over_level"] = float(durations_s[during].max()) / before.mean_s
    return figures


def _hottest_share(servers: Mapping[str, NodeLoad]) -> float | None:
    """The share of the requests before the change that the busiest node took."""
    served = [server.requests.before or 0.0 for server in servers.values()]
    total = sum(served, 0.0)
    return max(served) / total if len(served) > 1 and total > 0.0 else None
