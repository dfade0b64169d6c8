"""How many rows answers have that select nothing: those of queries that should distinguish trucks of a fleet, if every truck is in each."""

from collections.abc import Sequence

from sensorbench.runner import ValidatedComparison

_FLEET = "fleet"
# A query about a fleet selects trucks where it has one of these.
_LIMITS = frozenset({"limit", "velocity"})


def rows_of_whole_answers(validated: ValidatedComparison, queries: Sequence[str], each: int) -> dict[str, int]:
    """Rows of all answers together, if each is a whole fleet, by query; of queries that select trucks of a fleet.

    Args:
        validated: the data, and the fleets that queries are about.
        queries: kinds of queries.
        each: how many there are of each kind.

    """
    operations = validated.comparison.operations.operation
    selecting = [name for name in queries if _FLEET in operations[name].parameters and _LIMITS & set(operations[name].parameters)]
    if not selecting:
        return {}
    trucks = dict(validated.workbench.sql("SELECT site, count(*) FROM trucks GROUP BY site").fetchall())
    # Fleets come one after the other, and from the beginning again.
    fleets = validated.parameters.tables[_FLEET][_FLEET].to_pylist()
    rows = sum(trucks.get(fleets[number % len(fleets)], 0) for number in range(each))
    return dict.fromkeys(selecting, rows)
