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
    for comparison in found:
        if isinstance(comparison, LeftOut):
            table.add_row(comparison.what, *7 * ["-"], f"left out: {comparison.why}")
            continue
        ours, theirs = [cost.cpu_us for cost in comparison.ours], [cost.cpu_us for cost in comparison.theirs]
        per_s = [f"{statistics.median(cost.per_s for cost in side):,.0f}" for side in (comparison.ours, comparison.theirs)]
        shown = [f"{statistics.median(ours):.2f}", f"{statistics.median(theirs):.2f}", f"{_ratio(ours, theirs):.2f}"]
        table.add_row(comparison.what, *shown, *per_s, _p99(comparison.ours), _p99(comparison.theirs), comparison.marks)
    return table


def _p99(costs: Iterable[Cost]) -> str:
    output = [cost.p99_ms for cost in costs if cost.p99_ms is not None]
    return f"{statistics.median(output):.2f}" if output else "-"


def loads(found: Iterable[LoadComparison]) -> Table:
    """How fast rows are loaded."""
    table = Table(title="rows loaded a second", box=None)
    of_server = ("server's CPU µs a row, ours", "its own")
    for column in ("what", "its own tool", "ours", "its own", "ours / its own", *of_server, "marks"):
        table.add_column(column)
    for comparison in found:
        rates = [f"{statistics.median(rates):,.0f}" for rates in (comparison.ours, comparison.theirs)]
        ratio = f"{_ratio(comparison.ours, comparison.theirs):.2f}"
        server_us = [
            f"{statistics.median(needed):.2f}" if needed else "-"
            for needed in (comparison.our_server_us, comparison.their_server_us)
        ]
        table.add_row(comparison.what, comparison.tool, *rates, ratio, *server_us, comparison.marks)
    return table


def _ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    return statistics.median(our / other for our, other in zip(ours, theirs, strict=True))
