"""Latency figures of a comparison, with confidence intervals."""

from collections.abc import Iterator
from dataclasses import dataclass

from sensorbench.report.answer import is_level
from sensorbench.results.summary.comparison import ComparisonSummary


@dataclass(frozen=True)
class Figure:
    """A figure of the response times of one operation and variant.

    Attributes:
        variant: ID of the variant.
        operation: name of the operation.
        metric: `mean`, `median`, `sd` (the standard deviation), `p75`, `p95`, `p99`, or `mean_to_p95` (the mean of all up to the 95th percentile).
        value_s: the value, in s.
        low_s: lower bound of the confidence interval, in s; None if there is no interval.
        high_s: upper bound of the confidence interval, in s; None if there is no interval.
        confidence: confidence level of the interval: 0.95 for 95%; None if there is no interval.
        repetitions: number of runs it was computed from.
        is_fastest: whether the variant is the fastest for this operation, or not significantly slower than the fastest; None for
            metrics other than the ranking metric, and if nothing is ranked because answers differ.

    Examples:
        >>> import sensorbench as sb
        >>> figure = sb.read("results/iot").figures(metric="median")[0]
        >>> figure.low_s <= figure.value_s <= figure.high_s
        True

    """

    variant: str
    operation: str
    metric: str
    value_s: float
    low_s: float | None
    high_s: float | None
    confidence: float | None
    repetitions: int
    is_fastest: bool | None


def figures_of(summary: ComparisonSummary) -> Iterator[Figure]:
    """The figures of a comparison, by operation, variant and metric."""
    fastest = {
        (ranking.operation, ranking.metric, place.variant): is_level(place)
        for ranking in summary.result.rankings
        if not ranking.excluded
        for place in ranking.places
    }
    place_of = {name: place for place, name in enumerate(summary.result.operations)}
    for figures in sorted(summary.result.figures, key=lambda figures: place_of.get(figures.operation, len(place_of))):
        for metric, measured in figures.latency_s.items():
            if measured.value is None:
                continue
            yield Figure(
                figures.variant,
                figures.operation,
                metric,
                measured.value,
                measured.low,
                measured.high,
                measured.confidence,
                figures.runs,
                fastest.get((figures.operation, metric, figures.variant)),
            )
