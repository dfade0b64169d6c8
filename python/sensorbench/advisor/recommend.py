"""A recommendation: layouts ranked for a need, what each would take for a load, and whether a relational database would do."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from sensorbench.advisor.basis import Basis, basis_of
from sensorbench.advisor.reference import shipped
from sensorbench.advisor.relational import Relational, capacity_of, relational
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
    data.
    """

    needs: Needs
    range_s: float | None = None
    sensor_per_s: float | None = None
    load: Load | None = None
    assumed: Assumptions = field(default_factory=Assumptions)
    prices: Prices | None = None
    targets: tuple[str, ...] = ()


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
    """Entries from the best to the worst, by which results. `folder` is None for those that are shipped."""

    options: RecommendOptions
    folder: Path | None
    gathered: Gathered
    ranking: Ranking
    entries: tuple[Entry, ...]
    relational: Relational

    @property
    def basis(self) -> Basis:
        """What it stands on: scale, nodes and machine of the measurements."""
        return basis_of(self.folder, self.gathered)


def recommend(options: RecommendOptions, folder: Path | None) -> Recommendation:
    """What measurements recommend.

    Args:
        options: needs, load and prices.
        folder: of results; the shipped reference if None.

    Returns:
        All layouts that fit, from the best to the worst, with what the load takes of each.

    Raises:
        UsageError: for a folder without results that a ranking can be made of, and where no layout fits.

    """
    gathered = _gathered(folder, options.targets)
    needs = _with_range(options, gathered)
    _check_questions(needs, gathered)
    ranking = rank(needs, gathered.candidates)
    if not ranking.places:
        reasons = "; ".join(f"{len(names)} because {reason}" for reason, names in by_reason(ranking.left_out).items())
        raise UsageError(f"{_described_folder(folder)}: none of {len(gathered.candidates)} layouts fits, {reasons}")
    return Recommendation(
        options=replace(options, needs=needs),
        folder=folder,
        gathered=gathered,
        ranking=ranking,
        entries=_entries(ranking, options),
        relational=relational(ranking, gathered.candidates, options.load, options.assumed),
    )


def use_cases(folder: Path | None, targets: tuple[str, ...] = ()) -> tuple[Gathered, list[Outcome]]:
    """The six use cases of the sensor-schema study, by the results in a folder, or by those that are shipped. Raises
    UsageError.
    """
    gathered = _gathered(folder, targets)
    return gathered, [outcome(use_case, gathered.candidates) for use_case in USE_CASES]


def _gathered(folder: Path | None, targets: Sequence[str]) -> Gathered:
    gathered = shipped() if folder is None else gather(folder)
    known = dict.fromkeys(candidate.target for candidate in gathered.candidates)
    unknown = [target for target in targets if target not in known]
    if unknown:
        raise UsageError(f"--target {unknown[0]}: {_described_folder(folder)} has {', '.join(known)}")
    kept = tuple(candidate for candidate in gathered.candidates if not targets or candidate.target in targets)
    return replace(gathered, candidates=kept)


def _described_folder(folder: Path | None) -> str:
    return "the shipped reference" if folder is None else str(folder)


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
