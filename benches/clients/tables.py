"""What was measured, as tables: medians of all turns, and the median of the ratios within each turn."""

import statistics
from collections.abc import Iterable, Sequence

from benches.clients.loading import LoadComparison
from benches.clients.measuring import Comparison, Cost, LeftOut
from rich.table import Table


def costs(found: Iterable[Comparison | LeftOut]) -> Table:
    """What an operation costs the client."""
    table = Table(title="µs of client processor time an operation", box=None)
    for column in ("what", "ours", "theirs", "ratio", "ours/s", "theirs/s", "p99 ms, ours", "theirs", "marks"):
        table.add_column(column)
    for one in found:
        if isinstance(one, LeftOut):
            table.add_row(one.what, *7 * ["-"], f"left out: {one.why}")
            continue
        ours, theirs = [cost.cpu_us for cost in one.ours], [cost.cpu_us for cost in one.theirs]
        per_s = [f"{statistics.median(cost.per_s for cost in side):,.0f}" for side in (one.ours, one.theirs)]
        shown = [f"{statistics.median(ours):.2f}", f"{statistics.median(theirs):.2f}", f"{_ratio(ours, theirs):.2f}"]
        table.add_row(one.what, *shown, *per_s, _p99(one.ours), _p99(one.theirs), one.marks)
    return table


def _p99(costs: Iterable[Cost]) -> str:
    output = [cost.p99_ms for cost in costs if cost.p99_ms is not None]
    return f"{statistics.median(output):.2f}" if output else "-"


def loads(found: Iterable[LoadComparison]) -> Table:
    """How fast rows are loaded."""
    table = Table(title="rows loaded a second", box=None)
    for column in ("what", "its own tool", "ours", "its own", "ours / its own", "marks"):
        table.add_column(column)
    for one in found:
        rates = [f"{statistics.median(rates):,.0f}" for rates in (one.ours, one.theirs)]
        table.add_row(one.what, one.tool, *rates, f"{_ratio(one.ours, one.theirs):.2f}", one.marks)
    return table


def _ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    return statistics.median(one / other for one, other in zip(ours, theirs, strict=True))
