"""Whether rows became as wide at the server as the schema means them: what it reports after loading decides."""

from collections.abc import Mapping

from sensorbench.results import ComparisonResult
from sensorbench.results.summary.envelope import Caveat

# The largest row that a server reports, over the one that is meant. Cassandra counts sizes in buckets that grow by 20 % and reports the upper end;
# the rest is for what the schema's figure of a reading does not know.
WIDEST_OVER_MEANT = (0.85, 1.35)


def row_width_problem(meant_bytes: float | None, largest: Mapping[str, int]) -> str | None:
    """What is wrong with the widest row of a variant; None where nothing is, or is known.

    Args:
        meant_bytes: of a whole row, by the schema.
        largest: bytes of the largest row (partition) of each table, as the server reports them.

    """
    found = max(largest.values(), default=0)
    if meant_bytes is None or not found:
        return None
    ratio = found / meant_bytes
    low, high = WIDEST_OVER_MEANT
    if low <= ratio <= high:
        return None
    return (
        f"Its rows should be {meant_bytes / 1e6:,.4g} MB wide, but the widest that the server reports has {found / 1e6:,.4g} MB: {ratio:.2f} times as "
        f"much, where {low:g} to {high:g} is expected."
    )


def row_width_caveats(result: ComparisonResult) -> list[Caveat]:
    """What readers must know of variants whose rows are not as wide as they are called."""
    found = []
    for variant in result.manifest.variants:
        load = result.loads.get(variant.id)
        problem = row_width_problem(variant.row_bytes, load.size.largest_partitions) if load else None
        if problem:
            action = (
                "Do not take its figures for those of that width; the schema's bytes_a_reading says what a reading should take."
            )
            found.append(Caveat(kind="row width", text=problem, action=action, variant=variant.id))
    return found
