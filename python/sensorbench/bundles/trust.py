"""How far results may be trusted, by rule: own run, re-run, audited; and stale, whichever of these they are."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from sensorbench.results.block_sums import BLOCK_SUMS_FILE
from sensorbench.results.bundle import BundleIndex
from sensorbench.results.summary.claims import MeasuredFigure
from sensorbench.results.summary.comparison import ComparisonSummary, Ranking
from sensorbench.results.summary.envelope import Summary
from sensorbench.results.writer import HISTOGRAM_FILE

Label = Literal["own run", "re-run", "audited"]

# Databases and sensorbench change: what was measured this long ago may be otherwise today.
STALE_AFTER = timedelta(days=365)
# What distinguishes machines; two of equal parts count as one.
_MACHINE = ("processor", "processors", "memory_bytes")
_RECORDS = {HISTOGRAM_FILE, BLOCK_SUMS_FILE}
# What of a workload changes no operation.
_CHANGES_NO_OPERATION = {"repetitions", "log", "answers", "seed"}


@dataclass(frozen=True)
class Evidence:
    """The summaries of a bundle by part, and whether it was verified and found sound."""

    index: BundleIndex
    summaries: Mapping[str, Summary[Any]]
    is_verified: bool


@dataclass(frozen=True)
class Trust:
    """How far a bundle may be trusted, why, and whether it is stale."""

    label: Label
    why: str
    is_stale: bool


def trust_of(own: Evidence, others: Sequence[Evidence], today: datetime) -> Trust:
    """The trust label of a bundle.

    Args:
        own: the bundle.
        others: all bundles that are known, with or without it.
        today: when the label is given.

    """
    is_stale = (own.index.finished or own.index.created) < today - STALE_AFTER
    candidates = [other for other in others if other.index.id != own.index.id]
    reasons = {other.index.title: why_no_rerun(own, other) for other in candidates}
    confirming = [title for title, why in reasons.items() if why is None]
    if confirming and own.is_verified:
        return Trust("audited", f"verified, and measured again on another machine ({confirming[0]})", is_stale)
    if confirming:
        return Trust("re-run", f"measured again on another machine, with the same directions ({confirming[0]})", is_stale)
    return Trust(
        "own run",
        "it was not measured again on another machine" if not reasons else next(iter(reasons.values())) or "",
        is_stale,
    )


def why_no_rerun(own: Evidence, other: Evidence) -> str | None:
    """Why a bundle does not confirm another one; None if it does: another machine, the same directions, overlapping ratios."""
    pairs = [
        (left, right)
        for part, left in own.summaries.items()
        if isinstance(left, ComparisonSummary) and isinstance(right := other.summaries.get(part), ComparisonSummary)
    ]
    compared = [(left, right) for left, right in pairs if _work(left) == _work(right)]
    if not compared:
        return "the same workload was not measured again"
    if _records(own.index) & _records(other.index):
        return "its repetition has the same records as it: it is a copy"
    if all(_machine(left) == _machine(right) for left, right in compared):
        return "it was measured again on a machine of the same parts alone"
    verdicts = [verdict for left, right in compared for verdict in _disagreements(left, right)]
    if not verdicts:
        return "its repetition has no variants in common with it"
    return next((verdict for verdict in verdicts if verdict), None)


def _records(index: BundleIndex) -> set[str]:
    """The SHA-256 of what was recorded of latencies, which no two measurements have in common."""
    return {file.sha256 for file in index.files if file.path.rpartition("/")[2] in _RECORDS}


def _machine(summary: Summary[Any]) -> tuple[object, ...]:
    return tuple(summary.environment.get(key) for key in _MACHINE)


def _work(summary: ComparisonSummary) -> tuple[object, ...]:
    """What must be equal in results that repeat one another."""
    dataset, workload = summary.result.dataset, summary.result.workload
    kept = {key: value for key, value in workload.items() if key not in _CHANGES_NO_OPERATION}
    return dataset.get("fingerprint"), dataset.get("operations"), kept


def _disagreements(own: ComparisonSummary, other: ComparisonSummary) -> Iterator[str | None]:
    """For each ratio that both have, how they contradict each other; None if they do not."""
    rankings = {ranking.operation: ranking for ranking in other.result.rankings}
    for ranking in own.result.rankings:
        if ranking.operation in rankings:
            yield from _of_operation(ranking, rankings[ranking.operation])


def _of_operation(own: Ranking, other: Ranking) -> Iterator[str | None]:
    places = {place.variant: place for place in other.places}
    for place in own.places:
        best = own.best_for(place).variant
        if place.against_best is None or place.variant not in places or best not in places:
            continue
        repeated = places[place.variant]
        where = f"{own.operation} of {place.variant}"
        if place.against_best.word == "slower" and repeated.value_s <= places[best].value_s:
            yield f"its repetition has another direction at {where}"
        elif repeated.against_best is not None and other.best_for(repeated).variant == best:
            is_apart = not _overlap(place.against_best.ratio, repeated.against_best.ratio)
            yield f"the ratio of its repetition does not overlap at {where}" if is_apart else None
        else:
            yield None


def _overlap(left: MeasuredFigure, right: MeasuredFigure) -> bool:
    """Whether two intervals overlap; an end that is not known is open."""
    lows = [figure.low for figure in (left, right) if figure.low is not None]
    highs = [figure.high for figure in (left, right) if figure.high is not None]
    return not lows or not highs or max(lows) <= min(highs)
