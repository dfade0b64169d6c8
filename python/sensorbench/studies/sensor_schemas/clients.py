"""Throughput and latency over the number of clients, each of which waits for its answer, and whether they agree by Little's law."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sensorbench.analysis.intervals import Interval, interval, spread_over_runs
from sensorbench.analysis.little import TOLERANCE, ClosedLoop
from sensorbench.benchmarks.comparison import done_in_s
from sensorbench.claims import Evidence
from sensorbench.results import VariantManifest
from sensorbench.results.summary.comparison import ComparisonSummary
from sensorbench.results.summary.envelope import Caveat
from sensorbench.studies.pictures import CurvePoint, Curves
from sensorbench.studies.sensor_schemas.claims import READ, WRITE, by_variants, rates
from sensorbench.studies.study import Column, Section
from sensorbench.wording import counted

# The operation of each part that varies the clients.
PARTS = {"clients_write": WRITE, "clients_read": READ}
SHOWN = ("mean", "median", "sd", "p75", "p95", "p99")
DRAWN = ("mean", "p95", "p99")
_TITLES = {"clients_write": "Writing, by the number of clients", "clients_read": "Reading, by the number of clients"}


@dataclass(frozen=True)
class _Level:
    """A layout with this many clients: throughput, latencies, and what Little's law says of them."""

    line: str
    per_s: Interval
    latency_s: dict[str, Interval]
    loop: ClosedLoop

    @property
    def clients(self) -> int:
        """How many there are."""
        return self.loop.concurrency


def client_sections(evidence: Evidence, summary: ComparisonSummary) -> list[Section]:
    """The section of a part that varies the clients; none of other parts."""
    part = summary.result.part
    levels = _levels(evidence, part)
    return [_section(part, levels)] if levels else []


def client_caveats(evidence: Evidence, summary: ComparisonSummary) -> list[Caveat]:
    """A warning for each number of clients at which throughput and latency do not agree."""
    loops = _loops(by_variants(evidence), PARTS.get(summary.result.part))
    return [
        Caveat(
            kind="little's law",
            text=(
                f"{loop.concurrency} clients had {loop.in_flight:.3g} requests in flight by throughput × mean latency, "
                f"{abs(loop.deviation):.0%} {'fewer' if loop.deviation < 0 else 'more'} than there are clients "
                f"(tolerance {TOLERANCE:.0%}): {cause}."
            ),
            action="Do not read its throughput as the database's. More operations, a longer time-out or fewer clients bring both together.",
            variant=variant.id,
        )
        for variant, loop in loops
        if (cause := loop.violation) is not None
    ]


def _loops(own: Evidence, operation: str | None) -> list[tuple[VariantManifest, ClosedLoop]]:
    """Each variant with a number of clients of which anything was measured."""
    if operation is None:
        return []
    found = [(variant, _loop(own, variant, operation)) for variant in own.result.manifest.variants]
    return [(variant, loop) for variant, loop in found if loop is not None]


def _loop(own: Evidence, variant: VariantManifest, operation: str) -> ClosedLoop | None:
    sample, done = own.sample(variant.id, operation), done_in_s(own.runs(variant.id), operation)
    elapsed_s = sum(in_s for _, in_s in done)
    if sample is None or variant.concurrency is None or not all(ok for ok, _ in done) or elapsed_s <= 0.0:
        return None
    counts, runs = own.counts(variant.id, operation), len(done)
    return ClosedLoop(
        concurrency=variant.concurrency,
        succeeded=counts["ok"] / runs,
        failed=(sum(counts.values()) - counts["ok"]) / runs,
        # Of all runs together, like the mean: a slow run has more of the time.
        per_s=sum(ok for ok, _ in done) / elapsed_s,
        mean_s=sample.figure("mean"),
    )


def _levels(evidence: Evidence, part: str) -> list[_Level]:
    """What was measured, layout by layout, from few clients to many."""
    own, operation = by_variants(evidence), PARTS.get(part)
    levels = [_level(own, variant, operation, loop) for variant, loop in _loops(own, operation) if operation]
    return sorted(levels, key=lambda level: (level.line, level.loop.concurrency))


def _level(own: Evidence, variant: VariantManifest, operation: str, loop: ClosedLoop) -> _Level:
    sample = own.sample(variant.id, operation)
    latency_s = {} if sample is None else {metric: interval(sample, metric) for metric in SHOWN}
    line = f"{variant.system or variant.database} {variant.schema_name}"
    return _Level(line, spread_over_runs(np.array(rates(own, variant.id, operation))), latency_s, loop)


def _section(part: str, levels: Sequence[_Level]) -> Section:
    return Section(
        _TITLES[part],
        "Each client has one request in flight and waits for its answer, as the synchronous clients of the paper did (figures 8.5 to 8.10, whose "
        "curves have no printed numbers). By Little's law, throughput times mean latency is the number of clients. The column “in flight” has "
        f"that product, and the next one by how much it differs; beyond {TOLERANCE:.0%} there is a warning with the likely cause.",
        [
            Column("layout"),
            Column("clients", "whole"),
            Column("operations per second", "count"),
            *(Column({"sd": "standard deviation"}.get(metric, metric), "duration_s") for metric in SHOWN),
            Column("in flight", "number"),
            Column("differs by", "share"),
        ],
        [_row(level) for level in levels],
        curves=_curves(levels),
    )


def _row(level: _Level) -> list[Any]:
    latencies = [level.latency_s[metric].value for metric in SHOWN]
    return [level.line, level.clients, level.per_s.value, *latencies, level.loop.in_flight, level.loop.deviation]


def _curves(levels: Sequence[_Level]) -> list[Curves]:
    """Throughput over clients, latency over clients, and latency over throughput."""
    by_clients = [
        CurvePoint(
            level.line,
            "throughput",
            level.clients,
            _clients(level),
            level.clients,
            level.per_s.value,
            level.per_s.low,
            level.per_s.high,
        )
        for level in levels
    ]
    latencies = [
        CurvePoint(level.line, metric, level.clients, _clients(level), level.clients, of.value, of.low, of.high)
        for metric in DRAWN
        for level in levels
        if (of := level.latency_s[metric]).value > 0.0
    ]
    over_rate = [
        CurvePoint(level.line, metric, level.clients, _clients(level), level.per_s.value, of.value, of.low, of.high)
        for metric in ("mean", "p99")
        for level in levels
        if (of := level.latency_s[metric]).value > 0.0
    ]
    rate, latency, clients = "operations per second", "latency", "clients"
    return [
        Curves("Throughput over clients", clients, "count", rate, "count", by_clients),
        Curves("Latency over clients", clients, "count", latency, "duration_s", latencies),
        Curves("Latency over throughput", rate, "count", latency, "duration_s", over_rate),
    ]


def _clients(level: _Level) -> str:
    return counted(level.clients, "client")
