"""Which layout fits a need best, by what was measured of each.

The rule, in plain words:

- Where the newest readings are needed at once, only layouts whose writes carry one reading qualify: a batch waits until it is
  full.
- What is high counts fully, what is low does not count: it only has to suffice, which sizing says for a load. So there count
  readings written per second where many are written, answers per second where many are read, and bytes per reading where neither is
  high.
- The score is the geometric mean of a layout's shares of the best figure in each that counts; 1 is the best at all of them.
  Equal scores are ordered by bytes per reading.
- How sure a place is says the interval of the ratio to the next one. Each run gives every figure once; runs of one comparison
  with equal numbers were neighbours in time, so that they are paired there, and what was measured in different ones is not.

The geometric mean is that of ratios, for which others are not meaningful (Fleming and Wallace, "How not to lie with
statistics: the correct way to summarize benchmark results", Communications of the ACM 29, 1986).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Literal

from sensorbench.analysis.candidate import Candidate, Factor, Measured, factors_of, quotient
from sensorbench.analysis.intervals import CONFIDENCE, MIN_RUNS, Interval, product_over_runs
from sensorbench.analysis.verdicts import EQUIVALENCE_MARGIN, judge

Level = Literal["high", "low"]
Kind = Literal["written", "read", "size"]


@dataclass(frozen=True)
class Needs:
    """What somebody needs. `range_readings` are those of a usual range; `questions` the operations that are read, where they
    are named.
    """

    writes: Level
    reads: Level
    fresh: bool
    range_readings: float | None = None
    questions: tuple[str, ...] = ()

    @property
    def counts(self) -> tuple[Kind, ...]:
        """What counts."""
        levels: dict[Kind, Level] = {"written": self.writes, "read": self.reads}
        return tuple(kind for kind, level in levels.items() if level == "high") or ("size",)


@dataclass(frozen=True)
class Place:
    """A layout at its place. `shares` are those of the best figure in each kind that counts.

    `over_next` is how many times the next one's score it has, None for the last; `is_beside_next`: their runs took turns.
    `is_level`: it is not distinguished from the first.
    """

    candidate: Candidate
    score: float
    shares: dict[Kind, float]
    over_next: Interval | None
    is_beside_next: bool
    is_level: bool
    confidence: str


@dataclass(frozen=True)
class Ranking:
    """Layouts from the best to the worst for a need, by the questions that stand for reading; and why others are left out."""

    needs: Needs
    questions: tuple[str, ...]
    places: tuple[Place, ...]
    left_out: tuple[tuple[str, str], ...]

    @property
    def layouts(self) -> int:
        """How many layouts have a place; one at several servers of a database counts once."""
        return len({place.candidate.layout for place in self.places})

    def place_of(self, candidate: Candidate) -> int | None:
        """Its place, from 1 on; None when it was left out."""
        return next((number for number, place in enumerate(self.places, 1) if place.candidate is candidate), None)

    def ratio(self, candidate: Candidate, other: Candidate) -> Interval:
        """How many times the other one's score a layout has; both must be among the places."""
        if self.needs.counts == ("size",):
            return _exact((other.bytes_a_reading or math.nan) / (candidate.bytes_a_reading or math.nan))
        of_one, of_other = self.factors(candidate), self.factors(other)
        factors = []
        for comparison in dict.fromkeys([*of_one, *of_other]):
            factors += quotient(of_one.get(comparison), of_other.get(comparison))
        return product_over_runs(factors)

    def are_beside(self, candidate: Candidate, other: Candidate) -> bool:
        """Whether all that counts of both was measured in the same comparisons, in runs that took turns."""
        of_one, of_other = self.factors(candidate), self.factors(other)
        return {key: factor.numbers for key, factor in of_one.items()} == {
            key: factor.numbers for key, factor in of_other.items()
        }

    def factors(self, candidate: Candidate) -> dict[str, Factor]:
        """What each comparison contributes to a layout's score."""
        counted = [of_kind for of_kind in _counted(candidate, self.needs, self.questions).values() if of_kind]
        return factors_of([(measurement, 1.0 / len(counted) / len(of_kind)) for of_kind in counted for measurement in of_kind])


def rank(needs: Needs, candidates: Sequence[Candidate]) -> Ranking:
    """Those that fit, from the best to the worst."""
    questions = questions_for(needs, candidates)
    reasons = [(candidate, _disqualified(candidate, needs, questions)) for candidate in candidates]
    fitting = [candidate for candidate, reason in reasons if reason is None]
    left_out = tuple((candidate.name, reason) for candidate, reason in reasons if reason is not None)
    unordered = Ranking(needs, questions, (), left_out)
    scored = [(candidate, of_one) for candidate, of_one in zip(fitting, _shares(fitting, needs, questions), strict=True)]
    ordered = sorted(scored, key=lambda row: (-_score(row[1]), row[0].bytes_a_reading or math.inf))
    return replace(unordered, places=tuple(_place(number, ordered, unordered) for number in range(len(ordered))))


def questions_for(needs: Needs, candidates: Sequence[Candidate]) -> tuple[str, ...]:
    """The operations that stand for reading: those that are named; else those of the comparison that asked most layouts,
    without writing at the same time if there is one; of these, the one whose answers are nearest in length to the range, if
    one is given.
    """
    if needs.questions:
        return needs.questions
    measured = [(candidate.name, measurement) for candidate in candidates for measurement in candidate.reads]
    layouts: dict[tuple[bool, str], set[str]] = {}
    for name, measurement in measured:
        layouts.setdefault((not measurement.is_mixed, measurement.comparison), set()).add(name)
    chosen = max(layouts, key=lambda key: (key[0], len(layouts[key])), default=None)
    in_chosen = [measurement for _, measurement in measured if (not measurement.is_mixed, measurement.comparison) == chosen]
    rows = {name: _rows(in_chosen, name) for name in dict.fromkeys(measurement.operation for measurement in in_chosen)}
    wanted = needs.range_readings
    if wanted is None or not any(rows.values()):
        return tuple(rows)
    return (min((name for name in rows if rows[name]), key=lambda name: abs(math.log(rows[name] / wanted))),)


def _rows(measured: Sequence[Measured], operation: str) -> float:
    """The usual number of rows that an operation returns."""
    return median(
        [measurement.rows for measurement in measured if measurement.operation == operation and measurement.rows] or [0.0]
    )


def _disqualified(candidate: Candidate, needs: Needs, questions: Sequence[str]) -> str | None:
    """Why a layout does not fit, or cannot be said to; None when it does."""
    if not candidate.writes and needs.writes == "high":
        return "no write of it was measured"
    if not candidate.writes and needs.fresh:
        return "whether its newest readings can be read at once is not known: no write of it was measured"
    largest = max((measurement.readings for measurement in candidate.writes), default=1)
    if needs.fresh and largest > 1:
        return f"one write carries {largest} readings: the newest wait until there are as many"
    missing = [name for name in questions if not candidate.measured([name])]
    if needs.reads == "high" and (missing or not questions):
        return f"{' and '.join(missing) or 'reading'} was not measured"
    if needs.counts == ("size",) and not candidate.bytes_a_reading:
        return "its size is not known"
    return None


def _counted(candidate: Candidate, needs: Needs, questions: Sequence[str]) -> dict[Kind, tuple[Measured, ...]]:
    """What was measured of a layout in each kind that counts; nothing for its size, which has no runs."""
    kinds: dict[Kind, tuple[Measured, ...]] = {"written": candidate.writes, "read": candidate.measured(questions), "size": ()}
    return {kind: kinds[kind] for kind in needs.counts}


def _shares(candidates: Sequence[Candidate], needs: Needs, questions: Sequence[str]) -> list[dict[Kind, float]]:
    """Of each layout, its share of the best figure in each kind that counts."""
    figures = [{kind: _figure(candidate, kind, questions) for kind in needs.counts} for candidate in candidates]
    best = {kind: max((of_one[kind] for of_one in figures), default=math.nan) for kind in needs.counts}
    return [{kind: figure / best[kind] for kind, figure in of_one.items()} for of_one in figures]


def _figure(candidate: Candidate, kind: Kind, questions: Sequence[str]) -> float:
    """What is the more the better: a rate, or readings a byte."""
    if kind == "size":
        return 1.0 / (candidate.bytes_a_reading or math.inf)
    rate = candidate.written_per_s if kind == "written" else candidate.read_per_s(questions)
    return rate.value if rate is not None else math.nan


def _score(shares: dict[Kind, float]) -> float:
    return math.prod(shares.values()) ** (1.0 / len(shares))


def _place(number: int, ordered: Sequence[tuple[Candidate, dict[Kind, float]]], ranking: Ranking) -> Place:
    candidate, shares = ordered[number]
    first, following = ordered[0][0], ordered[number + 1][0] if number + 1 < len(ordered) else None
    over_next = ranking.ratio(candidate, following) if following is not None else None
    return Place(
        candidate=candidate,
        score=_score(shares),
        shares=shares,
        over_next=over_next,
        is_beside_next=following is None or ranking.are_beside(candidate, following),
        is_level=number == 0 or _may_be_one(ranking.ratio(first, candidate)),
        confidence=_confidence(over_next, len(ordered), ranking.needs),
    )


def _may_be_one(ratio: Interval) -> bool:
    """Whether there is an interval that does not say that the first of two is better."""
    return ratio.runs >= MIN_RUNS and judge(ratio).word != "slower"


def _confidence(over_next: Interval | None, count: int, needs: Needs) -> str:
    """What the ratio to the next one allows to say."""
    if over_next is None:
        return "the only one" if count == 1 else "the last"
    if needs.counts == ("size",):
        return "by size, measured once"
    if over_next.runs < MIN_RUNS:
        return f"{'one run' if over_next.runs == 1 else f'{over_next.runs} runs'}: no interval"
    level = f"level with the next, within {EQUIVALENCE_MARGIN:.0%}"
    words = {"slower": "significantly better than the next", "equivalent": level}
    return words.get(judge(over_next).word, "not distinguished from the next")


def _exact(value: float) -> Interval:
    """A figure that was counted once."""
    return Interval(value, None, None, CONFIDENCE, 1, between_runs=False)
