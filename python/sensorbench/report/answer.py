"""The answer first: who wins which question, by how much, how sure."""

from sensorbench.report import formatting
from sensorbench.results.summary.claims import MeasuredFigure
from sensorbench.results.summary.comparison import ComparisonSummary, RankedVariant, Ranking

# More variants that are level with the fastest are counted, not named; they are all listed below it.
MAX_NAMED = 3


def headline(summary: ComparisonSummary) -> str:
    """The outcome in one sentence."""
    ranked = [ranking for ranking in summary.result.rankings if not ranking.excluded]
    if summary.answers_equal is False:
        excluded = len(summary.result.rankings) - len(ranked)
        if not excluded:
            return "After the runs, what was written was not found as it should be."
        return f"The databases gave different answers: {excluded} of {len(summary.result.rankings)} questions cannot be ranked."
    if not ranked:
        return (
            f"Nothing is ranked: {summary.result.rankings[0].excluded}." if summary.result.rankings else "Nothing was measured."
        )
    if len(summary.variants) == 1:
        return f"{formatting.variant(summary.variants[0].id)} was measured alone: there is nothing to compare it with."
    compared = [ranking for ranking in ranked if len(ranking.places) > 1 or not ranking.outdated]
    if not compared:
        return "One variant is of a current version; the others are outdated, and are not ranked against it."
    wins: dict[str, int] = {}
    for ranking in compared:
        best = [place.variant for place in ranking.places if is_level(place)]
        if len(best) == 1:
            wins[best[0]] = wins.get(best[0], 0) + 1
    if not wins:
        return f"No variant is clearly the fastest at any of {len(compared)} questions."
    sentences = [
        f"{formatting.variant(variant)} is clearly the fastest at {won} of {len(compared)} questions"
        for variant, won in sorted(wins.items(), key=lambda win: -win[1])
    ]
    return "; ".join(sentences) + "."


def is_level(place: RankedVariant) -> bool:
    """Whether a variant is the fastest, or not known to be slower than it."""
    return place.against_best is None or place.against_best.word != "slower"


def confidence(ratio: MeasuredFigure) -> str:
    """The confidence interval of a ratio."""
    return formatting.interval(ratio.low, ratio.high, ratio.confidence)


def winners(ranking: Ranking) -> str:
    """The fastest variant, and those that are level with it."""
    level = [formatting.variant(place.variant) for place in ranking.places if is_level(place)]
    return " or ".join(level) if len(level) <= MAX_NAMED else f"{level[0]} or {len(level) - 1} others"
