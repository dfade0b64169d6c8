"""Load generators on pages and in the answer of a command: what each did and loaded, or why one process loaded, and how well the clock of its host is known."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sensorbench.report import formatting
from sensorbench.results.page import Block, Columns, Line, Piece, Table, Text
from sensorbench.results.summary.comparison import LoadFigures
from sensorbench.results.summary.generators import GeneratorFigures

# Of more load generators, the answer of a command has the slowest and the fastest.
MAX_IN_LINE = 4


@dataclass(frozen=True)
class LoadedShare:
    """What one of several load generators loaded of a variant: its parts of all tables, and how long (s) they took it, one after the other."""

    number: int
    host: str
    rows: int
    duration_s: float

    @property
    def rows_per_s(self) -> float | None:
        """Rows per second while it loaded; None if that took no time."""
        return self.rows / self.duration_s if self.duration_s else None

    def __str__(self) -> str:
        took = f"{self.rows:,} rows in {formatting.duration(self.duration_s)}, {formatting.count(self.rows_per_s)} rows/s"
        return f"load generator {self.number} ({self.host}) {took}"


def loaded_shares(load: LoadFigures) -> list[LoadedShare]:
    """What each load generator loaded of a variant, by number; nothing if one process loaded it."""
    shares: dict[int, LoadedShare] = {}
    for table in load.tables:
        for part in table.get("generators", []):
            before = shares.get(part["number"])
            rows, duration_s = (before.rows, before.duration_s) if before else (0, 0.0)
            shares[part["number"]] = LoadedShare(
                part["number"], part["host"], rows + part["rows"], duration_s + part["duration_s"]
            )
    return [shares[number] for number in sorted(shares)]


def loaded_by_generators(loads: Mapping[str, LoadFigures], variant_ids: Sequence[str]) -> list[Block]:
    """A table of what each load generator loaded, of the variants that several loaded, and why others were loaded by one process; nothing if
    there was one load generator.
    """
    undivided = [
        Text([Piece(", ".join(names), "strong"), f"{_of_each(names)}{why}."], "note")
        for why, names in _undivided({variant: loads[variant] for variant in variant_ids if variant in loads}).items()
    ]
    rows: list[list[Line]] = [
        ["" if place else formatting.variant(variant), share.number, share.host, share.rows, share.duration_s, share.rows_per_s]
        for variant in variant_ids
        if variant in loads
        for place, share in enumerate(loaded_shares(loads[variant]))
    ]
    if not rows:
        return [*undivided]
    columns: Columns = [
        ("Variant", "name"),
        ("load generator", "whole"),
        ("host", "name"),
        ("rows", "whole"),
        ("load", "duration_s"),
        ("rows/s", "count"),
    ]
    note = (
        "Each load generator loaded its part of every table; its time is the sum over these tables. All of them began a table together, and the next "
        "one when the last had ended, so the load as a whole took longer than any of them."
    )
    return [Table(columns, rows, is_grouped=True), Text(note, "note"), *undivided]


def loaded_lines(loads: Mapping[str, LoadFigures]) -> list[str]:
    """What each load generator loaded, a line for each variant that several loaded, and why others were loaded by one process, for the answer of a
    command.
    """
    shares = [
        f"{formatting.variant(variant)}: {_in_line(of_variant)}"
        for variant, load in loads.items()
        if (of_variant := loaded_shares(load))
    ]
    return shares + [f"{', '.join(names)}{_of_each(names)}{why}" for why, names in _undivided(loads).items()]


def _undivided(loads: Mapping[str, LoadFigures]) -> dict[str, list[str]]:
    """The variants whose load load generators did not share, by the reason: a sentence without the variant, which it begins with in the results."""
    found: dict[str, list[str]] = {}
    for variant, load in loads.items():
        if load.undivided:
            found.setdefault(load.undivided.removeprefix(variant), []).append(formatting.variant(variant))
    return found


def _of_each(names: Sequence[str]) -> str:
    """What makes the sentence about one variant one about several."""
    return ": each" if len(names) > 1 else ""


def _in_line(shares: Sequence[LoadedShare]) -> str:
    if len(shares) <= MAX_IN_LINE:
        return "; ".join(map(str, shares))
    # One that had no rows was neither slow nor fast.
    rates = {share: share.rows_per_s for share in shares}
    by_rate = sorted((rate, share.number, share) for share, rate in rates.items() if rate is not None)
    ends = f"; slowest: {by_rate[0][-1]}; fastest: {by_rate[-1][-1]}" if by_rate else ""
    return f"{len(shares)} load generators loaded it{ends}"


def load_generators(generators: Sequence[GeneratorFigures]) -> list[Block]:
    """A table of load generators, with clocks where they are on hosts; nothing if there are none."""
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
