"""The six use cases of the source, with its advice and what was measured here, and for each the layouts that nothing else
beats.
"""

from collections.abc import Sequence
from typing import Any

from sensorbench.analysis.advice import Kind
from sensorbench.analysis.candidate import Candidate
from sensorbench.analysis.intervals import Interval
from sensorbench.analysis.use_cases import USE_CASES, Outcome, UseCase, outcome
from sensorbench.benchmarks.comparison import candidates_of
from sensorbench.claims import Evidence
from sensorbench.results.summary.comparison import ComparisonSummary
from sensorbench.studies.pictures import Front, Point, with_fronts
from sensorbench.studies.study import Column, Section

# Readings that fit into this many bytes: larger is better, as on the other axes.
KILOBYTE = 1_000.0

_TITLES: dict[Kind, str] = {
    "written": "readings written per second",
    "read": "ranges read per second",
    "size": "readings in a kB",
}


def use_case_sections(parts: dict[str, Evidence], summaries: dict[str, ComparisonSummary]) -> list[Section]:
    """The sections about the use cases, where writing and reading were measured."""
    measured = {name: part.result for name, part in parts.items() if name in ("write", "read")}
    if len(measured) < 2:
        return []
    candidates = candidates_of(measured, {name: summaries[name] for name in measured}).candidates
    return [_table(candidates), *(_front(use_case, candidates) for use_case in USE_CASES)]


def _table(candidates: Sequence[Candidate]) -> Section:
    return Section(
        "Which layout for which use",
        "The six use cases of the paper: what it advises, and the best layout here, of each system by itself. The score is "
        "readings written per second where writes are high, ranges read per second where reads are high, and the geometric mean "
        "of both where both are. Where the newest readings are needed at once, only layouts whose writes carry one reading "
        "qualify. The last columns are the ratio of the best score to that of the paper's layout, with its 95% "
        "interval, and the rank of the paper's among those that qualify, where it was measured.",
        [
            Column("use case"),
            Column("the paper advises"),
            Column("system"),
            Column("best here", "variant"),
            Column("over the next"),
            Column("over the paper's", "ratio"),
            Column("interval"),
            Column("place of the paper's"),
        ],
        [
            row
            for use_case in USE_CASES
            for target in dict.fromkeys(candidate.target for candidate in candidates)
            if (row := _row(target, outcome(use_case, [candidate for candidate in candidates if candidate.target == target])))
            is not None
        ],
    )


def _row(target: str, found: Outcome) -> list[Any] | None:
    """What was measured of a use case on one system; None if no layout qualifies."""
    if found.best is None:
        return None
    over = found.over_advised
    return [
        found.use_case.text,
        found.use_case.advice,
        target,
        found.best.candidate.name,
        found.best.confidence,
        over.value if over is not None else None,
        _interval(over),
        f"{found.advised_place} of {len(found.ranking.places)}" if found.advised_place is not None else "not measured",
    ]


def _interval(of: Interval | None) -> str | None:
    return f"{of.low:.3g} to {of.high:.3g}" if of is not None and of.low is not None and of.high is not None else None


def _front(use_case: UseCase, candidates: Sequence[Candidate]) -> Section:
    """The layouts that qualify, by the figure that counts and the one that counts next: the size, where one counts alone."""
    ranking = outcome(use_case, candidates).ranking
    x, y = _axes(use_case)
    points = [point for place in ranking.places if (point := _point(place.candidate, x, y, ranking.questions)) is not None]
    return Section(
        f"{use_case.id}: {use_case.text}",
        f"The source advises {use_case.advice}. Those on the line are the layouts to choose from.",
        [],
        [],
        front=Front(_TITLES[x], _TITLES[y], with_fronts(points)),
    )


def _axes(use_case: UseCase) -> tuple[Kind, Kind]:
    counts = use_case.needs.counts
    return (counts[0], counts[1]) if len(counts) == 2 else (counts[0], "size")


def _point(candidate: Candidate, x: Kind, y: Kind, questions: Sequence[str]) -> Point | None:
    across, upright = _figure(candidate, x, questions), _figure(candidate, y, questions)
    if across is None or upright is None:
        return None
    label = candidate.name.removeprefix(f"{candidate.target}-").replace("-", " ")
    return Point(label, candidate.target, across.value, across.low, across.high, upright.value, upright.low, upright.high)


def _figure(candidate: Candidate, kind: Kind, questions: Sequence[str]) -> Interval | None:
    if kind == "written":
        return candidate.written_per_s
    if kind == "read":
        return candidate.read_per_s(questions)
    if not candidate.bytes_a_reading:
        return None
    readings = KILOBYTE / candidate.bytes_a_reading
    # Counted once, so that it is what it is.
    return Interval(readings, readings, readings, confidence=1.0, runs=1, between_runs=False)
