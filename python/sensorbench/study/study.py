"""What a study is, and what a claim needs to be judged."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sensorbench import toml_file
from sensorbench.analysis.intervals import CONFIDENCE, LEAST_RUNS, Interval, contrast_interval, spread_over_runs
from sensorbench.analysis.sample import Floats, Sample
from sensorbench.analysis.verdicts import EQUIVALENCE_MARGIN, judge
from sensorbench.experiment import Workload
from sensorbench.experiment.summary import sample_of
from sensorbench.results import ComparisonResult, RunResult
from sensorbench.results.latencies import logged_latencies
from sensorbench.results.server_use import server_use

Word = Literal["holds", "does not hold", "no difference seen", "inconclusive", "not tested here", "not tested at this scale"]

# "About as much" means within this factor of what was published: machines, versions and scales differ.
ABOUT = 3.0
# "Near 1" means within this share of it.
NEAR = 0.25


class Roles(toml_file.FileModel):
    """Which setting plays which part in the claims, as database/schema; the first that was measured does."""

    published: dict[str, list[str]]
    stand_in: dict[str, list[str]] = {}


class Models(toml_file.FileModel):
    """The roles of one kind of system: with a model made for the questions, and with a generic one."""

    shaped: str
    generic: str


class StudyFile(toml_file.FileModel):
    """`study.toml`."""

    title: str
    question: str
    source: str
    dataset: str
    operations: str
    metric: str
    targets: list[str]
    schemas: dict[str, list[str]]
    roles: Roles
    models: dict[str, Models] = {}
    workload: Workload


@dataclass(frozen=True)
class Judgement:
    """What the measurements say of a claim."""

    word: Word
    measured: dict[str, Any] | None
    reason: str


class Claim(toml_file.FileModel):
    """A published finding in checkable form."""

    id: str
    text: str
    form: str
    published: str
    # Parts that must have been measured, by the names of the study's roles.
    requires: list[str] = []
    # What else it needs and is not here, in words; such a claim is not tested.
    lacks: str | None = None
    least_scale: float = 0.0


class ClaimsFile(toml_file.FileModel):
    """`claims.toml`."""

    claim: list[Claim]


Judge = Callable[["Evidence"], Judgement]


@dataclass(frozen=True)
class Study:
    """A study: its grid, its claims, and how each claim is judged."""

    name: str
    file: StudyFile
    claims: tuple[Claim, ...]
    judges: dict[str, Judge]

    @classmethod
    def load(cls, folder: Path, judges: dict[str, Judge]) -> "Study":
        """The study in a folder of the package. Every claim that lacks nothing must have a judge."""
        claims = toml_file.load(folder / "claims.toml", ClaimsFile).claim
        unjudged = [claim.id for claim in claims if not claim.lacks and claim.id not in judges]
        if unjudged or not set(judges) <= {claim.id for claim in claims}:
            raise AssertionError(f"{folder}: claims and judges do not fit: {unjudged}")
        return cls(folder.name, toml_file.load(folder / "study.toml", StudyFile), tuple(claims), judges)


class Evidence:
    """What was measured, by the roles that claims speak of."""

    def __init__(self, result: ComparisonResult, roles: dict[str, str], metric: str) -> None:
        self.result = result
        self.roles = roles
        self.metric = metric
        self._sample = cache(self._load_sample)

    def runs(self, role: str) -> list[RunResult]:
        """The complete runs of a role."""
        return [run for run in self.result.runs[self.roles[role]] if run.state == "complete"]

    def sample(self, role: str, operation: str) -> Sample | None:
        """The latencies of an operation."""
        return self._sample(role, operation)

    def _load_sample(self, role: str, operation: str) -> Sample | None:
        return sample_of(self.runs(role), operation)

    def load(self, role: str) -> dict[str, Any] | None:
        """How loading went."""
        return self.result.loads.get(self.roles[role])

    def server_means(self, role: str, what: str) -> list[float]:
        """Of each run, the mean of what the servers used: `processors` or `megabytes`."""
        uses = [server_use(self.result, run, self.roles[role]) for run in self.runs(role)]
        return [float(np.mean([row[what] for row in use])) for use in uses if use]

    def contrast(self, terms: Sequence[tuple[str, str, float]]) -> Interval | None:
        """The product of figure(role, operation) ** weight; None when something was not measured."""
        samples = [(self.sample(role, operation), weight) for role, operation, weight in terms]
        if any(sample is None for sample, _ in samples):
            return None
        return contrast_interval([(sample, weight) for sample, weight in samples if sample is not None], self.metric)

    def latencies(self, run: RunResult, operations: Sequence[str]) -> list[Floats]:
        """Latencies of each kind of operation in one run, in order of time."""
        return [logged_latencies(run, operation)[1] for operation in operations]


def greater_than_one(interval: Interval | None) -> Judgement:
    """Judges "this ratio is above 1"."""
    if interval is None:
        return _not_measured()
    verdict = judge(interval)
    words: dict[str, Word] = {
        "slower": "holds",
        "faster": "does not hold",
        "equivalent": "no difference seen",
        "no difference seen": "no difference seen",
        "inconclusive": "inconclusive",
    }
    return Judgement(words[verdict.word], _shown(interval), verdict.reason)


def at_least_one(interval: Interval | None) -> Judgement:
    """Judges "this ratio is 1 or above"."""
    judgement = greater_than_one(interval)
    is_equivalent = interval is not None and judge(interval).word == "equivalent"
    return Judgement("holds", judgement.measured, judgement.reason) if is_equivalent else judgement


def near_one(interval: Interval | None) -> Judgement:
    """Judges "this ratio is near 1"."""
    return _within(interval, 1.0 / (1.0 + NEAR), 1.0 + NEAR, f"near 1 means within {NEAR:.0%}")


def about(interval: Interval | None, published: float) -> Judgement:
    """Judges "this ratio is about as large as published"."""
    return _within(interval, published / ABOUT, published * ABOUT, f"about means within a factor of {ABOUT:g} of {published:g}")


def _within(interval: Interval | None, low: float, high: float, rule: str) -> Judgement:
    if interval is None:
        return _not_measured()
    if interval.low is None or interval.high is None or interval.runs < LEAST_RUNS:
        return Judgement("inconclusive", _shown(interval), f"{interval.runs} runs and no interval between runs; {rule}")
    if low <= interval.low and interval.high <= high:
        return Judgement("holds", _shown(interval), rule)
    if interval.high < low or interval.low > high:
        return Judgement("does not hold", _shown(interval), rule)
    return Judgement("inconclusive", _shown(interval), f"the interval reaches over the limit; {rule}")


def single_ratio(ratio: float | None, what: str) -> Judgement:
    """Judges "this ratio is above 1" of something that was measured once and has no interval."""
    if ratio is None or not math.isfinite(ratio):
        return _not_measured()
    measured = {"value": ratio, "low": None, "high": None}
    if abs(ratio - 1.0) <= EQUIVALENCE_MARGIN:
        return Judgement("no difference seen", measured, f"{what}; measured once, no interval")
    return Judgement("holds" if ratio > 1.0 else "does not hold", measured, f"{what}; measured once, no interval")


def ratio_over_runs(ratios: Sequence[float]) -> Interval | None:
    """The interval of a ratio that each run gives once."""
    known = [ratio for ratio in ratios if ratio > 0.0 and math.isfinite(ratio)]
    return spread_over_runs(np.array(known), CONFIDENCE) if known else None


def _not_measured() -> Judgement:
    return Judgement("not tested here", None, "something that it needs was not measured")


def _shown(interval: Interval) -> dict[str, Any]:
    return {
        key: value if not isinstance(value, float) or math.isfinite(value) else None for key, value in asdict(interval).items()
    }
