"""The answer first: who wins which operation, by how much, within which interval."""

from collections.abc import Sequence
from typing import NamedTuple

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
        return f"The databases gave different answers: {excluded} of {len(summary.result.rankings)} operations cannot be ranked."
    if not ranked:
        return (
            f"Nothing is ranked: {summary.result.rankings[0].excluded}." if summary.result.rankings else "Nothing was measured."
        )
    if len(summary.variants) == 1:
        return f"{formatting.variant(summary.variants[0].id)} was measured alone: there is nothing to compare it with."
    compared = [ranking for ranking in ranked if len(ranking.places) > 1 or not ranking.outdated]
    apart = [ranking for ranking in compared if len(ranking.classes) > 1]
    if apart == compared != [] and all(len(places) == 1 for ranking in apart for places in ranking.classes):
        return "Variants differ in consistency level or durability, so none is ranked the fastest."
    if not compared:
        return "One variant is of a current version; the others are outdated, and are not ranked against it."
    return f"{_by_winner(summary, compared)} ({formatting.metric(compared[0].metric)} response time, 95% confidence intervals)"


class Lead(NamedTuple):
    """An operation at which one variant alone is the fastest, and between which factors the next one takes as long."""

    variant: str
    operation: str
    next_variant: str
    low: float
    high: float
    # The consistency level within which it is the fastest, where there are several.
    level: str = ""

    @property
    def where(self) -> str:
        """The operation, and the level if it matters."""
        return f"{self.operation} ({self.level})" if self.level else self.operation


def leads(summary: ComparisonSummary) -> list[Lead]:
    """The operations at which all other variants are significantly slower than the fastest; of each class, where there are several."""
    return [lead for ranking in summary.result.rankings if not ranking.excluded for lead in _leads_at(summary, ranking)]


def _leads_at(summary: ComparisonSummary, ranking: Ranking) -> list[Lead]:
    found, title = [], summary.result.operations[ranking.operation].title
    for places in ranking.classes:
        next_place = places[1] if len(places) > 1 else None
        ratio = next_place.against_best.ratio if next_place and next_place.against_best else None
        if not next_place or not ratio or sum(map(is_level, places)) > 1:
            continue
        if ratio.low is not None and ratio.high is not None:
            found.append(Lead(places[0].variant, title, next_place.variant, ratio.low, ratio.high, places[0].ranked_within))
    return found


def _by_winner(summary: ComparisonSummary, compared: Sequence[Ranking]) -> str:
    """By how much each winner leads, and at how many operations nobody does."""
    by_variant: dict[str, list[Lead]] = {}
    for lead in leads(summary):
        by_variant.setdefault(lead.variant, []).append(lead)
    sentences = [_lead(variant, of_variant) for variant, of_variant in sorted(by_variant.items(), key=lambda item: -len(item[1]))]
    undecided = [ranking for ranking in compared if not _leads_at(summary, ranking)]
    # In a class of its own, a variant is level with no other.
    level = [ranking for ranking in undecided if any(len(places) > 1 for places in ranking.classes)]
    alone = [ranking for ranking in undecided if len(ranking.places) == 1]
    if len(level) == len(compared):
        where = f" at any of {len(compared)} operations" if len(compared) > 1 else ""
        sentences.append(f"no significant difference between the fastest variants{where}")
    elif level:
        sentences.append(f"no significant difference between the fastest at {len(level)} of {len(compared)} operations")
    if apart := len(undecided) - len(level) - len(alone):
        sentences.append(f"variants differ in consistency level or durability at {apart} of {len(compared)} operations")
    if alone:
        sentences.append(f"one variant alone answered {len(alone)} of {len(compared)} operations")
    text = "; ".join(sentences)
    return text if by_variant else text[:1].upper() + text[1:]


def _lead(variant: str, of_variant: Sequence[Lead]) -> str:
    begins = f"{formatting.variant(variant)} is"
    if len(of_variant) > MAX_NAMED:
        factors = formatting.factors(min(lead.low for lead in of_variant), max(lead.high for lead in of_variant))
        return f"{begins} {factors} faster than the next variant at {len(of_variant)} operations"
    first, *others = [f"{formatting.factors(lead.low, lead.high)}{{}} for {lead.where}" for lead in of_variant]
    return f"{begins} {first.format(' faster than the next variant')}" + "".join(f", {other.format('')}" for other in others)


def is_level(place: RankedVariant) -> bool:
    """Whether a variant is the fastest, or not known to be slower than it."""
    return place.against_best is None or place.against_best.word != "slower"


def confidence(ratio: MeasuredFigure) -> str:
    """The confidence interval of a ratio."""
    return formatting.interval(ratio.low, ratio.high, ratio.confidence)


def winners(ranking: Ranking) -> str:
    """The fastest variant, and those that are level with it; of each class, where there are several."""
    return "; ".join(_winners_of(places) for places in ranking.classes)


def _winners_of(places: Sequence[RankedVariant]) -> str:
    level = [formatting.variant(place.variant) for place in places if is_level(place)]
    names = " or ".join(level) if len(level) <= MAX_NAMED else f"{level[0]} or {len(level) - 1} others"
    return f"{names} ({places[0].ranked_within})" if places[0].ranked_within else names
