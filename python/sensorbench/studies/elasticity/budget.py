"""What a budget of time is turned into for clusters: by arithmetic, since clusters are too dear to be started for a pilot; and when it is over."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sensorbench.benchmarks.elasticity import ElasticityStudyOptions
from sensorbench.dataset import open_dataset
from sensorbench.errors import UsageError
from sensorbench.runner import parse_target
from sensorbench.studies.elasticity.parts import StudyPart, parts_of
from sensorbench.studies.elasticity.study_file import StudyFile

# What is planned for: the rest is for what arithmetic cannot know.
PLANNED_SHARE = 0.85
# Most claims need nodes that hold more than their memory has room for. HBase's do from 0.31 on, Cassandra's also at the smallest scale: what does not
# fit then is rather left for later.
SCALES = (1.0, 0.5, 0.35, 0.1)
# What nodes of the lab took on a machine with two cores: to start, each; to join under load, each; for a request, with as many in flight as there are
# nodes; and how many bytes of articles, all copies counted, a cluster takes a second while it is loaded.
START_S, JOIN_S, RESPONSE_S, LOAD_BYTES_PER_S = 15.0, 40.0, 0.006, 10e6
ARTICLE_BYTES = 24_000
# Measurements that a cluster needs to be stable again, besides those that must have been stable.
UNSTABLE = 10


@dataclass(frozen=True)
class Effort:
    """How much is measured: requests of a set that a thread issues, sets of a measurement, measurements before and after a change, and how long
    measurements do not count at first (s).
    """

    requests: int
    executions: int
    measurements: int
    warmup_s: float

    def options(self, options: ElasticityStudyOptions, scale: float) -> ElasticityStudyOptions:
        """The options with this effort, where they say nothing else."""
        return options.model_copy(
            update={
                "scale": scale,
                "operations": options.operations or self.requests,
                "executions": options.executions or self.executions,
                "measurements": options.measurements or self.measurements,
                "warmup": self.warmup_s if options.warmup is None else options.warmup,
            }
        )


# From that of the paper to the least by which a score can be had. A set keeps the thousand requests that claims about deviations need.
EFFORTS = (Effort(1667, 10, 20, 30.0), Effort(1667, 3, 20, 30.0), Effort(1000, 2, 20, 20.0), Effort(334, 2, 12, 10.0))


@dataclass(frozen=True)
class ChosenBudget:
    """The options that a budget was turned into, its parts, and how long each takes by arithmetic (s)."""

    options: ElasticityStudyOptions
    parts: list[StudyPart]
    expected_s: dict[str, float]

    @property
    def total_s(self) -> float:
        """How long all parts take."""
        return sum(self.expected_s.values())


def choose(file: StudyFile, options: ElasticityStudyOptions, budget_s: float) -> ChosenBudget:
    """The largest scale, then the greatest effort, with which all parts fit; the least of both where they do not, and the rest is left for --resume.

    Raises:
        UsageError: if not even one part fits.

    """
    articles = _articles(file, options)
    choice = None
    for scale in SCALES if options.scale is None else (options.scale,):
        for effort in EFFORTS:
            choice = _choice(file, effort.options(options, scale), articles)
            if choice.total_s <= PLANNED_SHARE * budget_s:
                return choice
    if choice is None:
        raise AssertionError("there are scales and efforts")
    longest_s = max(choice.expected_s.values())
    if longest_s > budget_s:
        raise UsageError(
            f"--budget {budget_s / 60:,.0f}m: the smallest run of this study, one part of it at scale {choice.options.scale:g}, takes about "
            f"{longest_s / 60:,.0f} minutes; give more time, or name fewer nodes by --nodes"
        )
    return choice


def expected(file: StudyFile, options: ElasticityStudyOptions, parts: Sequence[StudyPart]) -> dict[str, float]:
    """How long each part takes by arithmetic (s)."""
    articles = _articles(file, options)
    return {part.name: _part_s(part, articles) for part in parts}


def _choice(file: StudyFile, options: ElasticityStudyOptions, articles: int) -> ChosenBudget:
    parts = parts_of(file, options)
    return ChosenBudget(options, parts, {part.name: _part_s(part, articles) for part in parts})


def _articles(file: StudyFile, options: ElasticityStudyOptions) -> int:
    """How many articles the whole dataset has, by a tenth of it: whatever is generated is generated for the scale that is used."""
    share = 0.1
    return round(open_dataset(options.dataset or file.dataset, scale=share).describe().readings / share)


def _part_s(part: StudyPart, articles: int) -> float:
    """How long a part takes: starting nodes, loading, and for each change the measurements, and what joins or is away."""
    options, (target,) = part.options, part.options.targets
    spec = parse_target(target)
    nodes = at_start = options.nodes or 3
    per_copy_s = articles * options.scale * ARTICLE_BYTES * int(spec.url_options.get("replication", "1")) / LOAD_BYTES_PER_S
    time_s, copies = START_S * nodes + per_copy_s * options.copies, options.copies
    measurement_s = (
        options.requests * options.executions * (RESPONSE_S if options.rate is None else options.threads_per_node / options.rate)
    )
    for change in part.changes:
        needed = options.copies * max(1, -(-nodes // at_start))
        time_s += per_copy_s * max(0, needed - copies) + (options.warmup or 0.0)
        copies = max(copies, needed)
        time_s += (options.before + options.after + UNSTABLE) * measurement_s + JOIN_S * abs(change.grows_by) + change.min_s
        if change.grows_by:
            # A share of all data goes to the nodes that join.
            time_s += per_copy_s * copies * abs(change.grows_by) / (nodes + max(0, change.grows_by))
        nodes += change.grows_by
    return time_s


@dataclass
class Deadline:
    """When a budget is over. A part is begun while it is expected to end before that, by how long those before it took beside what was expected."""

    budget_s: float
    expected_s: Mapping[str, float]
    _begun_s: float = field(default_factory=time.monotonic)
    _took_s: dict[str, float] = field(default_factory=dict)

    def note(self, name: str, took_s: float) -> None:
        """Puts down how long a part took."""
        self._took_s[name] = took_s

    def has_room(self, name: str) -> bool:
        """Whether a part may be begun: the first of all may."""
        if not self._took_s:
            return True
        factor = sum(self._took_s.values()) / sum(self.expected_s[done] for done in self._took_s)
        return time.monotonic() - self._begun_s + self.expected_s[name] * factor <= self.budget_s
