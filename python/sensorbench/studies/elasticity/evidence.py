"""The figures that the study's claims are about: of each database its transitions to more nodes, each measured in one work or several."""

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sensorbench.analysis.intervals import Interval, mean_over_runs, product_over_runs
from sensorbench.results.summary.elasticity import ElasticitySummary, NodeLoad, PublishedFigure, Transition

# Figures: what they are called by the source, and the factor to our unit.
_PRINTED = {
    "data-transfer-time": ("transfer_s", 60.0),
    "additional-stabilization-time": ("additional_s", 60.0),
    "total-stabilization-time": ("total_s", 60.0),
    "elasticity-score": ("elasticity", 1.0),
    "scalability-score": ("scalability", 1.0),
    "average-of-average-times": ("av_s", 1.0),
    "standard-deviation": ("sd_s", 1.0),
    "peak-over-average-level": ("peak_over_level", 1.0),
}
_HOTTEST, _SERVED = "requests-served-by-hottest-server", "requests-served-total"
# Nodes at which the source's transitions began.
_BEGAN = (6, 12, 24)
_NODES = re.compile(r"(\d+)(?: to \d+)? nodes")

Values = NDArray[np.float64]


@dataclass
class Evidence:
    """For each role (a database of the study) and transition (0 is the first), the values of each figure, one of each work."""

    values: dict[tuple[str, int, str], list[float]] = field(default_factory=dict)

    def add(self, role: str, transition: int, figures: Mapping[str, float | None]) -> None:
        """Adds what a work measured of a transition; figures that it has not are left out."""
        for name, value in figures.items():
            if value is not None:
                self.values.setdefault((role, transition, name), []).append(value)

    def of(self, role: str, transition: int, figure: str) -> Values:
        """The values of a figure."""
        return np.array(self.values.get((role, transition, figure), []))

    def transitions(self, role: str, figure: str) -> list[int]:
        """The transitions of which there is a figure."""
        return sorted({transition for of_role, transition, name in self.values if (of_role, name) == (role, figure)})

    def has(self, role: str) -> bool:
        """Whether there is anything of a role."""
        return any(of_role == role for of_role, _, _ in self.values)

    def mean(self, role: str, transition: int, figure: str) -> Interval | None:
        """The mean of a figure."""
        values = self.of(role, transition, figure)
        return mean_over_runs(values) if len(values) else None

    def difference(self, role: str, transition: int, figures: tuple[str, str]) -> Interval | None:
        """The mean difference of two figures of the same transitions."""
        first, other = (self.of(role, transition, figure) for figure in figures)
        return mean_over_runs(first - other) if len(first) and len(first) == len(other) else None

    def ratio(self, pair: tuple[str, int], other: tuple[str, int], figure: str) -> Interval | None:
        """The ratio of a figure of one role and transition to that of another, which were measured apart."""
        of_one, of_other = self.of(*pair, figure), self.of(*other, figure)
        if not len(of_one) or not len(of_other) or not ((of_one > 0).all() and (of_other > 0).all()):
            return None
        return product_over_runs([of_one, 1.0 / of_other])


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
    return evidence


def figures_of(transition: Transition, scalability: float | None) -> dict[str, float | None]:
    """The figures of a transition; None where there is none. Times and scores are those by the band."""
    stable, before = transition.stability.by_band if transition.stability else None, transition.before
    durations_s, times_s = np.array(transition.sets.duration_s), np.array(transition.sets.time_s)
    is_before, during = times_s < (transition.scored_from_s or np.inf), np.zeros(len(times_s), dtype=bool)
    if transition.begun_at_s is not None and transition.transfer_s is not None:
        during = ~is_before & (times_s < transition.begun_at_s + transition.transfer_s)
    figures: dict[str, float | None] = {
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
        figures["lowest_over_level"] = float(durations_s[during].min()) / before.mean_s
        figures["peak_over_level"] = float(durations_s[during].max()) / before.mean_s
        figures["peak_over_peak"] = float(durations_s[during].max() / durations_s[is_before].max())
    return figures


def _hottest_share(servers: Mapping[str, NodeLoad]) -> float | None:
    """The share of the requests before the change that the busiest node took."""
    served = [server.requests.before or 0.0 for server in servers.values()]
    total = sum(served, 0.0)
    return max(served) / total if len(served) > 1 and total > 0.0 else None


def published(file: Path, names: Mapping[str, str]) -> list[PublishedFigure]:
    """What the paper has of databases whose names there, `names`, have roles. Times in s."""
    with file.open(encoding="utf-8", newline="") as text:
        rows = list(csv.DictReader(text))
    found = [printed for row in rows if row["system"] in names for printed in _printed(row, names[row["system"]])]
    hottest, served = ([row for row in rows if row["metric"] == metric] for metric in (_HOTTEST, _SERVED))
    shares = [
        _published(entry, names[entry["system"]], "hottest_share", float(entry["value"]) / float(all_["value"]))
        for entry, all_ in zip(hottest, served, strict=True)
    ]
    return [*found, *shares]


def _printed(row: dict[str, str], role: str) -> list[PublishedFigure]:
    if row["metric"] not in _PRINTED:
        return []
    figure, factor = _PRINTED[row["metric"]]
    return [_published(row, role, figure, float(row["value"].lstrip(">")) * factor)]


def _published(row: dict[str, str], role: str, figure: str, value: float) -> PublishedFigure:
    nodes = _NODES.search(row["configuration"])
    if nodes is None:
        raise AssertionError(f"{row['configuration']}: no number of nodes")
    note = "" if row["note"] == "-" else row["note"]
    return PublishedFigure(role=role, transition=_BEGAN.index(int(nodes[1])), figure=figure, value=value, note=note)
