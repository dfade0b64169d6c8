"""Whether a relational database would do: most who ask have one already."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sensorbench.analysis.advice import Place, Ranking
from sensorbench.analysis.candidate import Candidate
from sensorbench.analysis.sizing import Assumptions, Capacity, Load, number, size
from sensorbench.runner import databases


@dataclass(frozen=True)
class Relational:
    """Whether a relational database would do (None: these results do not say), that in words, which one, and by which
    figures.
    """

    would_do: bool | None
    verdict: str
    name: str | None
    why: str


def is_relational(candidate: Candidate) -> bool:
    """Whether a layout lies in a relational database."""
    return databases()[candidate.database].relational


def capacity_of(candidate: Candidate, questions: Sequence[str]) -> Capacity:
    """What a layout was measured to do."""
    written, read = candidate.written_per_s, candidate.read_per_s(questions)
    return Capacity(
        written_per_s=written.value if written else None,
        read_per_s=read.value if read else None,
        bytes_a_reading=candidate.bytes_a_reading,
        memory_bytes=candidate.memory_bytes,
        in_memory=candidate.in_memory,
        nodes=candidate.nodes,
        copies=candidate.copies,
    )


def relational(ranking: Ranking, candidates: Sequence[Candidate], load: Load | None, assumed: Assumptions) -> Relational:
    """With a load, whether one node of a relational database carries it and holds the data; without one, whether the best
    relational layout is as good as any.
    """
    places = [place for place in ranking.places if is_relational(place.candidate)]
    if not places:
        measured = any(is_relational(candidate) for candidate in candidates)
        why = f"none {'that was measured fits' if measured else 'was measured'}"
        return Relational(None, "may do or not", None, why)
    return _by_load(places, ranking, load, assumed) if load is not None else _by_rank(places[0], ranking)


def _by_load(places: Sequence[Place], ranking: Ranking, load: Load, assumed: Assumptions) -> Relational:
    """By one copy of the data on one node."""
    alone = replace(assumed, copies=1)
    for place in places:
        sizing = size(load, capacity_of(place.candidate, ranking.questions), alone)
        if sizing.nodes == 1 and _is_known(place.candidate, ranking, load):
            described = _described(place.candidate, ranking, load, assumed, "one node carries it")
            return Relational(True, "would do", place.candidate.name, described)
    best = max(places, key=lambda place: _written(place.candidate))
    nodes = size(load, capacity_of(best.candidate, ranking.questions), alone)
    outcome = f"one node does not carry it ({nodes.nodes} would, by {nodes.nodes_by})"
    return Relational(False, "would not do", best.candidate.name, _described(best.candidate, ranking, load, assumed, outcome))


def _is_known(candidate: Candidate, ranking: Ranking, load: Load) -> bool:
    """Whether that which the load asks for was measured."""
    return bool(candidate.writes) and (load.reads_per_s is None or candidate.read_per_s(ranking.questions) is not None)


def _described(candidate: Candidate, ranking: Ranking, load: Load, assumed: Assumptions, outcome: str) -> str:
    capacity = capacity_of(candidate, ranking.questions)
    written, read = capacity.written_per_s, capacity.read_per_s
    parts = [
        f"it writes {number(written)} readings/s, {number(load.readings_per_s)} are needed" if written else "",
        f"it answers {number(read)} reads/s, {number(load.reads_per_s)} are needed" if read and load.reads_per_s else "",
        f"{assumed.headroom:.0%} stay free",
        _described_disk(capacity, load, assumed),
    ]
    return f"{outcome}: {'; '.join(filter(None, parts))}"


def _described_disk(capacity: Capacity, load: Load, assumed: Assumptions) -> str:
    if load.retention_s is None:
        return "whether the data fit depends on how long they are kept (--retention)"
    if capacity.bytes_of_copy is None:
        return "what the data take was not measured"
    data = capacity.bytes_of_copy * load.readings_per_s * load.retention_s
    room = assumed.node_disk_bytes * assumed.fill
    return f"the data take {number(data / 1e9)} GB, {number(room / 1e9)} GB of a disk may be filled"


def _written(candidate: Candidate) -> float:
    rate = candidate.written_per_s
    return rate.value if rate else 0.0


def _by_rank(place: Place, ranking: Ranking) -> Relational:
    name, first = place.candidate.name, ranking.places[0]
    if place is first:
        return Relational(True, "would do", name, "it is the best that was measured")
    if place.is_level:
        return Relational(True, "would do", name, f"it is not distinguished from the best ({first.candidate.name})")
    behind = ranking.ratio(first.candidate, place.candidate)
    matters = "the load decides whether that matters (--sensors, --rate)"
    if behind.low is None or behind.high is None:
        described = f"{first.candidate.name} has {behind.value:.3g} times its score, without an interval"
        return Relational(None, "may do or not", name, f"{described}; {matters}")
    described = f"{first.candidate.name} has {behind.value:.3g} times its score ({behind.low:.3g} to {behind.high:.3g})"
    return Relational(False, "is significantly behind the best", name, f"{described}; {matters}")
