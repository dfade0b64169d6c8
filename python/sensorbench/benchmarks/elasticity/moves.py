"""What of the data lay on which node before a change and after it, by what the nodes said of themselves during the run."""

from collections.abc import Mapping

import numpy as np

from sensorbench.results.insight import Insight, Series
from sensorbench.results.summary.elasticity import BeforeAndAfter, DataMoves, NodeData

PARTS, BYTES, REQUESTS = "data_parts", "table_bytes", "requests"


def data_moves(nodes: Mapping[str, Insight], begun_at_s: float | None, *, joins: bool) -> DataMoves | None:
    """What moved.

    Args:
        nodes: what each said in a run with one change in it.
        begun_at_s: when that began, on the run's clock; None if it did not.
        joins: whether nodes join by it: those that have nothing afterwards are named.

    Returns:
        None if the nodes do not say what they hold.

    """
    if begun_at_s is None:
        return None
    held = {
        node: NodeData(parts=_around(said, PARTS, begun_at_s), bytes=_around(said, BYTES, begun_at_s))
        for node, said in nodes.items()
    }
    joined = [node for node, said in nodes.items() if joins and _began_s(said) > begun_at_s]
    empty = [node for node in joined if _has_nothing(held[node], nodes[node])]
    parts = {node: said.series[PARTS] for node, said in nodes.items() if PARTS in said.series}
    known = {node: data for node, data in held.items() if _is_known(data)}
    if not known and not empty:
        return None
    return DataMoves(
        nodes=known,
        joined=joined,
        without_data=empty,
        moved_parts=_moved_parts(held) if parts else None,
        moved_bytes=sum(of.bytes.after or 0.0 for node, of in held.items() if node in joined)
        if _have_bytes(held, joined)
        else None,
        moving_s=_moving_s(parts, begun_at_s),
    )


def _around(said: Insight, quantity: str, begun_at_s: float) -> BeforeAndAfter:
    """What a gauge showed last before a change, and at the end."""
    series = said.series.get(quantity)
    if series is None or not len(series.times_s):
        return BeforeAndAfter(before=None, after=None)
    place = int(np.searchsorted(series.times_s, begun_at_s, side="right")) - 1
    return BeforeAndAfter(before=float(series.values[place]) if place >= 0 else None, after=float(series.values[-1]))


def _began_s(said: Insight) -> float:
    """When a node first said anything."""
    return min((float(series.times_s[0]) for series in said.series.values() if len(series.times_s)), default=-np.inf)


def _is_known(data: NodeData) -> bool:
    return any(value is not None for of in (data.parts, data.bytes) for value in (of.before, of.after))


def _has_nothing(data: NodeData, said: Insight) -> bool:
    """Whether a node that joined holds none of the data: by its bytes, else by its parts, else by the requests that it served."""
    for of in (data.bytes, data.parts):
        if of.after is not None:
            return of.after == 0.0
    requests = said.series.get(REQUESTS)
    return requests is not None and float(requests.values[-1] - requests.values[0]) == 0.0


def _have_bytes(held: Mapping[str, NodeData], joined: list[str]) -> bool:
    return bool(joined) and all(held[node].bytes.after is not None for node in joined)


def _moved_parts(held: Mapping[str, NodeData]) -> int:
    """How many parts nodes have more than before: those that went forth and back are not counted."""
    return round(sum(max(0.0, (of.parts.after or 0.0) - (of.parts.before or 0.0)) for of in held.values()))


def _moving_s(parts: Mapping[str, Series], begun_at_s: float) -> float | None:
    """From the first part that came to another node to the last; None if none did."""
    moments = [moment for series in parts.values() for moment in _changes_s(series) if moment > begun_at_s]
    return max(moments) - min(moments) if moments else None


def _changes_s(series: Series) -> list[float]:
    """When a number was another one than before; a node that comes with some had none until then."""
    changed = np.diff(series.values, prepend=0.0) != 0.0
    return [float(moment) for moment in series.times_s[changed]]
