"""What the claims of the sensor-schema study (claims.toml) speak of, besides the quantities of all comparisons."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from sensorbench.benchmarks.comparison import done_in_s
from sensorbench.claims import Evidence, Figure, NotMeasuredError, Quantity, RunValues
from sensorbench.results import RunResult

WRITE, READ, NEW_RANGE = "append_readings", "get_range", "get_new_range"
# Batches by size; those of 150 are the ones of the layout with metadata in the same table.
BATCHES = {50: "BA b50", 100: "BA b100", 150: "BA M1", 200: "BA b200", 300: "BA b300"}
DEFAULT_BATCH = 150


def by_variants(evidence: Evidence) -> Evidence:
    """The evidence with each variant in a role of its own."""
    return Evidence(evidence.result, {variant.id: variant.id for variant in evidence.result.manifest.variants}, evidence.metric)


def readings(role: str) -> int:
    """How many readings an operation of a role writes."""
    if role.startswith("TV"):
        return 1
    return next((size for size, of_size in BATCHES.items() if of_size == role), DEFAULT_BATCH)


def rates(evidence: Evidence, role: str, operation: str) -> list[float]:
    """Operations per second that succeeded, run by run."""
    return [done / elapsed_s for done, elapsed_s in done_in_s(evidence.runs(role), operation)]


def rate(evidence: Evidence, role: str, operation: str) -> float | None:
    """The mean of them; None when nothing was measured."""
    if role not in evidence.roles:
        return None
    known = rates(evidence, role, operation)
    return float(np.mean(known)) if known else None


def _latency_per_reading(evidence: Evidence, role: str, others: Sequence[str]) -> RunValues | None:
    """The latency of an operation divided by the readings that it writes, so that typed values and batches can be compared."""
    latency = evidence.values(Figure("latency", (role, *others)))
    if latency is None:
        return None
    return replace(latency, by_run={run: value / readings(role) for run, value in latency.by_run.items()})


def _time_outs(evidence: Evidence, role: str, others: Sequence[str]) -> RunValues | None:
    """How many operations timed out, and half an operation: a ratio to none has no value (Haldane, Annals of Human Genetics 20, 1956)."""
    (operation,) = others
    by_role = {
        name: [counts["timeout"] for counts in evidence.counts_by_run(name, operation)]
        for name in BATCHES.values()
        if name in evidence.roles
    }
    if not any(count for counts in by_role.values() for count in counts):
        raise NotMeasuredError("nothing timed out, with batches of any size")
    return evidence.by_run([count + 0.5 for count in by_role[role]])


def _client_over_server(evidence: Evidence, role: str, _: Sequence[str]) -> RunValues | None:
    """The median latency of the client over the one that the server itself counts (its coordinator, latest sample of each run)."""
    ratios = []
    for run in evidence.runs(role):
        server_ms = _coordinator_write_ms(run)
        latencies = evidence.latencies(run, [WRITE])[0]
        ratios.append(float(np.median(latencies)) * 1e3 / server_ms if server_ms and len(latencies) else None)
    if not any(ratios):
        raise NotMeasuredError("runs were shorter than the second after which the server is polled")
    return evidence.by_run(ratios)


def _coordinator_write_ms(run: RunResult) -> float | None:
    table = run.table("status")
    if table is None:
        return None
    found = [
        row["value"]
        for row in table.to_pylist()
        if row["name"].startswith("coordinator_write_latency.readings_") and row["name"].endswith(".p50th_ms")
    ]
    return float(np.median(found)) if found else None


QUANTITIES: Mapping[str, Quantity] = {
    "latency_per_reading": _latency_per_reading,
    "time_outs": _time_outs,
    "client_over_server": _client_over_server,
}
