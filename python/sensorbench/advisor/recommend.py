"""A recommendation: layouts ranked for a need, what each would take for a load, and whether a relational database would do."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from sensorbench.advisor.basis import Basis, basis_of
from sensorbench.advisor.leave_one_out import LeaveOneOut, leave_one_out
from sensorbench.advisor.reach import Distance, check_reach, distances, farthest
from sensorbench.advisor.reference import shipped
from sensorbench.advisor.relational import Relational, capacity_of, relational
from sensorbench.advisor.source import EvidenceBundle, Source, shipped_evidence
from sensorbench.analysis.advice import Needs, Place, Ranking, rank
from sensorbench.analysis.intervals import Interval
from sensorbench.analysis.sizing import Assumptions, Load, Sizing, size
from sensorbench.analysis.use_cases import USE_CASES, Outcome, outcome
from sensorbench.benchmarks.comparison import Gathered, by_reason, gather
from sensorbench.errors import UsageError


@dataclass(frozen=True)
class Prices:
    """What a node costs, and a GB of disk, in any money and for any time."""

    node: float
    disk_gb: float = 0.0


@dataclass(frozen=True)
class RecommendOptions:
    """What somebody asks for. A range may be a length of time; it becomes readings by the rate of a sensor, or else of the
    data. `extrapolates`: a need that lies far outside of what was measured is answered, too.
    """

    needs: Needs
    range_s: float | None = None
    sensor_per_s: float | None = None
    load: Load | None = None
    assumed: Assumptions = field(default_factory=Assumptions)
    prices: Prices | None = None
    targets: tuple[str, ...] = ()
    sensors: int | None = None
    extrapolates: bool = False


@dataclass(frozen=True)
class Entry:
    """A layout with what is predicted of it. `money` is what it costs where there are prices. `cost` is how many times the
    cheapest's it is: by money, else by nodes for a load, else by the nodes that the same load would take.
    """

    place: Place
    written_per_s: Interval | None
    read_per_s: Interval | None
    sizing: Sizing | None
    money: float | None
    cost: float


@dataclass(frozen=True)
class Recommendation:
    """Entries from the best to the worst, by which measurements; how far the need lies outside of these; and, where it was made from evidence, how
    often such recommendations held in bundles that they were not made from.
    """

    options: RecommendOptions
    source: Source
    ranking: Ranking
    entries: tuple[Entry, ...]
    relational: Relational
    distances: tuple[Distance, ...]
    check: LeaveOneOut | None

    @property
    def gathered(self) -> Gathered:
        """The candidates, and the comparisons that they are from."""
        return self.source.gathered

    @property
    def basis(self) -> Basis:
        """What it stands on: scale, nodes and machine of the measurements."""
        return basis_of(self.source)


def recommend(options: RecommendOptions, folder: Path | None, evidence: Sequence[EvidenceBundle] = ()) -> Recommendation:
    """What measurements recommend.

    Args:
        options: needs, load and prices.
        folder: of results; without one, the bundle of evidence that lies nearest to the need counts, and where none measured
            what is needed, the shipped reference. A shipped bundle must have more than one layout that fits.
        evidence: bundles of the user's own, which come before those that are shipped.

    Returns:
        All layouts that fit, from the best to the worst, with what the load takes of each.

    Raises:
        UsageError: for a folder without results that a ranking can be made of; where no layout fits; and for a load far outside of
            what was measured, unless `extrapolates`.

    """
    if folder is not None:
        return _recommended(options, Source("results", str(folder), gather(folder)), None)
    answering, rankings, reasons = _answering(options, [*evidence, *shipped_evidence()])
    check = leave_one_out(rankings, answering, lambda bundles: _nearest(options, bundles, rankings))
    if answering:
        chosen = _nearest(options, answering, rankings)
        return _recommended(options, Source("evidence", chosen.name, chosen.gathered), check)
    if evidence:
        raise UsageError(f"--evidence: no bundle measured what you need: {'; '.join(reasons)}")
    return _recommended(options, Source("reference", "reference", shipped()), check)


def use_cases(
    folder: Path | None, targets: tuple[str, ...] = (), evidence: Sequence[EvidenceBundle] = ()
) -> tuple[Source, list[Outcome]]:
    """The six use cases of the sensor-schema study, by the results in a folder; else by a bundle of evidence that has an answer to all of
    them, else by the shipped reference. Raises UsageError.
    """
    if folder is not None:
        return _use_cases(Source("results", str(folder), gather(folder)), targets)
    found = []
    for bundle in [*evidence, *shipped_evidence()]:
        source, outcomes = _use_cases(Source("evidence", bundle.name, bundle.gathered), ())
        answered = sum(_has_choice(bundle, outcome.ranking) for outcome in outcomes)
        found.append((bundle.is_own, answered, _readings(bundle.gathered), source))
    best = max((each for each in found if each[1] == len(USE_CASES)), key=lambda each: each[:3], default=None)
    return _use_cases(best[3] if best else Source("reference", "reference", shipped()), targets)


def _use_cases(source: Source, targets: tuple[str, ...]) -> tuple[Source, list[Outcome]]:
    kept = _at_targets(source, targets)
    return kept, [outcome(use_case, kept.gathered.candidates) for use_case in USE_CASES]


def _answering(
    options: RecommendOptions, bundles: Sequence[EvidenceBundle]
) -> tuple[list[EvidenceBundle], dict[str, Ranking], list[str]]:
    """The bundles that measured what is needed, each once; the ranking by each; and why others did not."""
    answering: list[EvidenceBundle] = []
    rankings: dict[str, Ranking] = {}
    reasons: list[str] = []
    for bundle in bundles:
        if bundle.sha256 in rankings:
            continue
        try:
            _, ranking = _ranked(options, Source("evidence", bundle.name, bundle.gathered))
        except UsageError as error:
            reasons.append(str(error))
            continue
        at_all_targets = rank(ranking.needs, bundle.gathered.candidates) if options.targets else ranking
        if not _has_choice(bundle, at_all_targets):
            reasons.append(f"the evidence bundle {bundle.name}: one layout fits, and a recommendation compares several")
            continue
        answering.append(bundle)
        rankings[bundle.sha256] = ranking
    return answering, rankings, reasons


def _has_choice(bundle: EvidenceBundle, ranking: Ranking) -> bool:
    """Whether a ranking by a bundle recommends something. A single layout of a shipped one does not: it may compare settings of a server."""
    return ranking.layouts > (0 if bundle.is_own else 1)


def _nearest(options: RecommendOptions, bundles: Sequence[EvidenceBundle], rankings: dict[str, Ranking]) -> EvidenceBundle:
    """The bundle to recommend from: one of the user's own, the nearest to the load, the one with most readings, the one with most layouts."""

    def order(bundle: EvidenceBundle) -> tuple[bool, float, int, int, str]:
        ranking = rankings[bundle.sha256]
        outside = farthest(distances(bundle.gathered, ranking, options.load, options.sensors))
        return not bundle.is_own, outside, -_readings(bundle.gathered), -len(ranking.places), bundle.name

    return min(bundles, key=order)


def _readings(gathered: Gathered) -> int:
    return max((origin.readings for origin in gathered.origins.values()), default=0)


def _recommended(options: RecommendOptions, source: Source, check: LeaveOneOut | None) -> Recommendation:
    source, ranking = _ranked(options, source)
    outside = distances(source.gathered, ranking, options.load, options.sensors)
    if not options.extrapolates:
        check_reach(outside, source.described)
    return Recommendation(
        options=replace(options, needs=ranking.needs),
        source=source,
        ranking=ranking,
        entries=_entries(ranking, options),
        relational=relational(ranking, source.gathered.candidates, options.load, options.assumed),
        distances=tuple(outside),
        check=check,
    )


def _ranked(options: RecommendOptions, source: Source) -> tuple[Source, Ranking]:
    """The ranking by some measurements, and these with the targets that are wanted alone. Raises UsageError if no layout fits."""
    source = _at_targets(source, options.targets)
    needs = _with_range(options, source.gathered)
    _check_questions(needs, source.gathered)
    candidates = source.gathered.candidates
    ranking = rank(needs, candidates)
    if not ranking.places:
        reasons = "; ".join(f"{len(names)} because {reason}" for reason, names in by_reason(ranking.left_out).items())
        raise UsageError(f"{source.described}: none of {len(candidates)} layouts fits, {reasons}")
    return source, ranking


def _at_targets(source: Source, targets: Sequence[str]) -> Source:
    gathered = source.gathered
    known = dict.fromkeys(candidate.target for candidate in gathered.candidates)
    unknown = [target for target in targets if target not in known]
    if unknown:
        raise UsageError(f"--target {unknown[0]}: {source.described} has {', '.join(known)}")
    kept = tuple(candidate for candidate in gathered.candidates if not targets or candidate.target in targets)
    return replace(source, gathered=replace(gathered, candidates=kept))


def _with_range(options: RecommendOptions, gathered: Gathered) -> Needs:
    """The needs with the range in readings."""
    if options.range_s is None:
        return options.needs
    intervals = [origin.interval_s for origin in gathered.origins.values() if origin.interval_s]
    per_s = options.sensor_per_s or (1.0 / intervals[0] if intervals else None)
    if per_s is None:
        raise UsageError(
            "--range: how many readings that is depends on how many a sensor gives; say it by --rate, or give readings"
        )
    return replace(options.needs, range_readings=options.range_s * per_s)


def _check_questions(needs: Needs, gathered: Gathered) -> None:
    """Raises UsageError when what is to be read was not measured at all."""
    known = dict.fromkeys(measurement.operation for candidate in gathered.candidates for measurement in candidate.reads)
    unknown = [name for name in needs.questions if name not in known]
    if unknown:
        raise UsageError(f"--question {unknown[0]}: expected one of {', '.join(known) or 'none, because nothing was read'}")


def _entries(ranking: Ranking, options: RecommendOptions) -> tuple[Entry, ...]:
    sizings = [
        size(options.load, capacity_of(place.candidate, ranking.questions), options.assumed) if options.load else None
        for place in ranking.places
    ]
    money = [_money(sizing, options.prices) for sizing in sizings]
    costs = [_cost(*row, ranking) for row in zip(ranking.places, sizings, money, strict=True)]
    return tuple(
        Entry(
            place,
            place.candidate.written_per_s,
            place.candidate.read_per_s(ranking.questions),
            sizing,
            of_money,
            cost / min(costs),
        )
        for place, sizing, of_money, cost in zip(ranking.places, sizings, money, costs, strict=True)
    )


def _money(sizing: Sizing | None, prices: Prices | None) -> float | None:
    if sizing is None or prices is None:
        return None
    return sizing.nodes * prices.node + (sizing.disk_bytes or 0.0) / 1e9 * prices.disk_gb


def _cost(place: Place, sizing: Sizing | None, money: float | None, ranking: Ranking) -> float:
    """Money, nodes, or, where no load is known, how many times the best one's nodes the same load would take."""
    if money is not None:
        return money
    return float(sizing.nodes) if sizing is not None else ranking.places[0].score / place.score
