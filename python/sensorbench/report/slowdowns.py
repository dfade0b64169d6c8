"""How many times as long each variant takes as the fastest one, operation by operation: a table that is coloured by it."""

import math
from collections.abc import Sequence

from sensorbench.report import answer, formatting
from sensorbench.results.page import Columns, Line, Piece, Section, Table, Text
from sensorbench.results.summary.comparison import ComparisonSummary, RankedVariant, Ranking

# From these ratios on a cell has the next colour; each also shows its number, so that nobody depends on colours.
_STEPS = (1.05, 1.5, 3.0, 10.0, 100.0)


def slowdowns(summary: ComparisonSummary) -> Section | None:
    """The ratio of each variant to the fastest at each operation, and over all of them; nothing if nothing was compared."""
    ranked = [ranking for ranking in summary.result.rankings if len(ranking.places) > 1]
    if not ranked:
        return None
    variants = [variant.id for variant in summary.variants if any(_place(ranking, variant.id) for ranking in ranked)]
    columns: Columns = [("Operation", "label"), *((formatting.variant(variant), "ratio") for variant in variants)]
    rows: list[list[Line]] = [
        [summary.result.operations[ranking.operation].title, *(_cell(ranking, variant) for variant in variants)]
        for ranking in ranked
    ]
    if len(ranked) > 1:
        rows.append(
            ["All, geometric mean", *(_shown(mean) if (mean := _mean(ranked, variant)) else None for variant in variants)]
        )
    how: Line = [
        Piece("How to read this:", "strong"),
        f" Each number is how many times as long a variant takes as the fastest one at that operation ({formatting.metric(ranked[0].metric)} "
        "response time); 1 is the fastest. n.\N{NO-BREAK SPACE}s. marks those with no significant difference from it. The "
        "darker, the slower:",
    ]
    ends = [f"below {_STEPS[0]:g} ×", *(f"from {step:g} ×" for step in _STEPS)]
    legend = [part for number, end in enumerate(ends) for part in (" ", Piece(end, f"heat heat-{number} inline"))]
    return Section("slowdowns", "Relative slowdown", [Text([how, *legend], "how"), Table(columns, rows)])


def _place(ranking: Ranking, variant: str) -> RankedVariant | None:
    return next((place for place in ranking.places if place.variant == variant), None)


def _cell(ranking: Ranking, variant: str) -> Line:
    place = _place(ranking, variant)
    if place is None:
        return None
    ratio = place.value_s / ranking.best_for(place).value_s
    if place.against_best is None:
        return _shown(ratio, "the fastest")
    verdict = place.against_best.word
    mark = " n.\N{NO-BREAK SPACE}s." if answer.is_level(place) else ""
    return _shown(ratio, f"{verdict}; {answer.confidence(place.against_best.ratio)}", mark)


def _shown(ratio: float, hint: str = "", mark: str = "") -> Piece:
    return Piece([ratio, mark], f"heat heat-{sum(ratio >= step for step in _STEPS)}", hint=hint)


def _mean(ranked: Sequence[Ranking], variant: str) -> float | None:
    """The geometric mean of a variant's ratios; None if it was not ranked everywhere."""
    places = [(ranking, place) for ranking in ranked if (place := _place(ranking, variant)) is not None]
    logarithms = [math.log(place.value_s / ranking.best_for(place).value_s) for ranking, place in places]
    return math.exp(math.fsum(logarithms) / len(logarithms)) if len(places) == len(ranked) else None
