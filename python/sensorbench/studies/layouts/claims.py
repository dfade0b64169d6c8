"""How the ten rules of thumb (claims.toml) are judged: on every database that was measured, cell by cell.

Speed is compared by the mean latency: with equally many operations in flight, it is the inverse of throughput (Little's law).
"""

from collections.abc import Sequence
from itertools import product

from sensorbench.claims import Case, Evidence, Judge, Judgement, all_of, greater_than_one, near_or_above_one, single_ratio

RANGE, RECENT, LATEST, GROUP, WRITE = "get_range", "get_recent", "get_latest", "get_group", "append_reading"
COUNTS = ("get_minute_counts", "get_hour_counts", "get_day_counts")


def _slower(evidence: Evidence, name: str, other: str, operation: str) -> Case | None:
    """The cell that says that one role takes longer than the other; None where one was not measured."""
    if not {name, other} <= evidence.roles.keys():
        return None
    judged = greater_than_one(evidence.contrast([(name, operation, 1.0), (other, operation, -1.0)]))
    return Case(f"{operation}, {other} over {name}", judged)


def _not_faster(evidence: Evidence, name: str, other: str, operation: str) -> Case | None:
    """The cell that says that one role takes about as long as the other, or longer."""
    if not {name, other} <= evidence.roles.keys():
        return None
    judged = near_or_above_one(evidence.contrast([(name, operation, 1.0), (other, operation, -1.0)]))
    return Case(f"{operation}, {other} over {name}", judged)


def _larger(evidence: Evidence, name: str, other: str) -> Case | None:
    """The cell that says that one role takes more room than the other."""
    if not {name, other} <= evidence.roles.keys():
        return None
    sizes = evidence.size_bytes(name), evidence.size_bytes(other)
    ratio = sizes[0] / sizes[1] if sizes[0] and sizes[1] else None
    return Case(f"bytes, {name} over {other}", single_ratio(ratio, "bytes after loading"))


def _systems(*evidence: Evidence) -> list[str]:
    """The systems that were measured: roles begin with their names."""
    return list(dict.fromkeys(role.partition(" ")[0] for each_evidence in evidence for role in each_evidence.roles))


def _of(cases: Sequence[Case | None]) -> Judgement:
    return all_of([case for case in cases if case is not None])


def _by_period(evidence: Evidence) -> Judgement:
    """Periods of at least the usual range are about as fast to read and write as one row for all, which grows without bound."""
    return _of(
        [
            *[
                _not_faster(evidence.part("temporal"), "cassandra plain", f"cassandra {period}", RANGE)
                for period in ("7 days", "1 month")
            ],
            _not_faster(evidence.part("temporal"), "cassandra plain", "cassandra 1 day", RECENT),
            _not_faster(evidence.part("write"), "cassandra plain", "cassandra day", WRITE),
        ]
    )


def _wide_rows(evidence: Evidence) -> Judgement:
    """The whole timeline as one row against rows of seven days, which are nearer to 10 MB."""
    return _of([_slower(evidence, "cassandra plain", "cassandra 7 days", RANGE)])


def _repeated(evidence: Evidence) -> Judgement:
    """Looked up first against found at once; and a star against one table with the same way to the data: by sensor, by time."""
    temporal, spatial = evidence.part("temporal"), evidence.part("spatial")
    looked_up = [_slower(temporal, f"{system} pointers", f"{system} views", RANGE) for system in _systems(temporal)]
    by_sensor = [_slower(temporal, f"{system} star", f"{system} plain", RANGE) for system in _systems(temporal)]
    by_time = [_slower(spatial, f"{system} star", f"{system} by time", GROUP) for system in _systems(spatial)]
    return _of([*looked_up, *by_sensor, *by_time])


def _many_in_a_cell(evidence: Evidence) -> Judgement:
    """Less room, faster ranges, and more readings a second where so many are written at once."""
    ranges, write = evidence.part("ranges"), evidence.part("write")
    cases = []
    for system in _systems(ranges, write):
        cases += [
            _larger(ranges, f"{system} plain", f"{system} packed"),
            _slower(ranges, f"{system} plain", f"{system} packed", RANGE),
            _slower(write, f"{system} plain 60", f"{system} compacted 60", WRITE),
        ]
    return _of(cases)


def _short_ids(evidence: Evidence) -> Judgement:
    """Less room, and neither reading nor writing is slower."""
    temporal, write = evidence.part("temporal"), evidence.part("write")
    cases = []
    for system in _systems(temporal, write):
        cases += [
            _larger(temporal, f"{system} name", f"{system} integer"),
            _not_faster(temporal, f"{system} name", f"{system} integer", RANGE),
            _not_faster(write, f"{system} name", f"{system} integer", WRITE),
        ]
    return _of(cases)


def _independent_writes(evidence: Evidence) -> Judgement:
    """A reading that is inserted by itself against one that also raises counters or lengthens an array: those cannot be repeated
    without harm, and writes of the same row wait for one another.
    """
    return _of(
        [
            _slower(evidence, f"{system} {dependent}", f"{system} plain", WRITE)
            for system in _systems(evidence)
            for dependent in ("rollups", "arrays")
        ]
    )


def _more_rows(evidence: Evidence) -> Judgement:
    """What is new in one row of one node, against a row for each sensor, which are spread over three."""
    return _of([_slower(evidence, "hot", "spread", WRITE)])


def _integers(evidence: Evidence) -> Judgement:
    latest, write = evidence.part("latest"), evidence.part("write")
    return _of(
        [
            case
            for system in _systems(latest, write)
            for case in (
                _slower(latest, f"{system} name", f"{system} integer", LATEST),
                _slower(write, f"{system} name", f"{system} integer", WRITE),
            )
        ]
    )


def _rollups(evidence: Evidence) -> Judgement:
    systems = _systems(evidence)
    return _of(
        [
            _slower(evidence, f"{combination} scanned", f"{combination} rollups", operation)
            for combination, operation in product(systems, COUNTS)
        ]
    )


def _newest_first(evidence: Evidence) -> Judgement:
    latest, temporal = evidence.part("latest"), evidence.part("temporal")
    return _of(
        [
            _slower(latest, "cassandra plain", "cassandra newest first", LATEST),
            _slower(temporal, "cassandra plain", "cassandra newest first", RECENT),
            _slower(temporal, "cassandra 1 day", "cassandra day newest first", RECENT),
        ]
    )


JUDGES: dict[str, Judge] = {
    "RULE-1": _by_period,
    "RULE-2": _wide_rows,
    "RULE-3": _repeated,
    "RULE-4": _many_in_a_cell,
    "RULE-5": _short_ids,
    "RULE-6": _independent_writes,
    "RULE-7": _more_rows,
    "RULE-8": _integers,
    "RULE-9": _rollups,
    "RULE-10": _newest_first,
}
