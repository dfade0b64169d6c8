"""Load generators on pages and in the answer of a command: what each did, and how well the clock of its host is known."""

from collections.abc import Sequence

from sensorbench.report import formatting
from sensorbench.results.page import Block, Columns, Table, Text
from sensorbench.results.summary.generators import GeneratorFigures


def load_generators(generators: Sequence[GeneratorFigures]) -> list[Block]:
    """A table of load generators, with clocks where they are on hosts; nothing where there are none."""
    if not generators:
        return []
    columns: Columns = [
        ("Load generator", "whole"),
        ("host", "name"),
        ("started", "whole"),
        ("CPUs", "number"),
        ("timer lag p99", "duration_s"),
    ]
    rows = [[each.number, each.host, each.started, each.cpus, each.timer_lag_p99_s] for each in generators]
    if all(each.bound_s is None for each in generators):
        return [Table(columns, rows)]
    clocks: Columns = [
        ("times corrected by", "text"),
        ("known to ±", "duration_s"),
        ("drift", "text"),
        ("time of day ahead by", "text"),
    ]
    with_clocks = [
        [
            *row,
            formatting.signed_duration(each.corrected_by_s),
            each.bound_s,
            formatting.signed_duration(each.drift_s),
            formatting.signed_duration(each.wall_offset_s),
        ]
        for row, each in zip(rows, generators, strict=True)
    ]
    note = (
        "Times of operations are on the clock of the controller: what each host's clock was ahead by when a run began is taken off. No time is wrong by "
        "more than the bound, half of the shortest round trips and the drift included. Latencies are measured by one clock each and are not corrected."
    )
    return [Table([*columns, *clocks], with_clocks), Text(note, "note")]


def clock_lines(generators: Sequence[GeneratorFigures]) -> list[str]:
    """The clock of each host in a line, for the answer of a command; none of hosts that read the clock of the controller."""
    of_hosts = {each.host: each for each in generators if each.bound_s}
    return [
        f"host {host}: times corrected by {formatting.signed_duration(each.corrected_by_s)} (known to ± {formatting.duration(each.bound_s)}); "
        f"its time of day is ahead by {formatting.signed_duration(each.wall_offset_s)}"
        for host, each in of_hosts.items()
    ]
