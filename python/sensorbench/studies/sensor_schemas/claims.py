"""What the claims of the sensor-schema study (claims.toml) speak of, besides the quantities of all comparisons."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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
    """The median latency of the client over the one that the server itself counts (its coordinator, median of the samples of each run)."""
    runs = evidence.runs(role)
    servers_s = [coordinator_write_s(_status(run)) for run in runs]
    if all(server_s is None for server_s in servers_s):
        raise NotMeasuredError("runs were shorter than the second after which the server is polled")
    ratios = []
    for run, server_s in zip(runs, servers_s, strict=True):
        latencies = evidence.latencies(run, [WRITE])[0]
        ratios.append(float(np.median(latencies)) / server_s if server_s and len(latencies) else None)
    if not any(ratios):
        raise NotMeasuredError("the server counts latencies in ms, and the median of its own was below one")
    return evidence.by_run(ratios)


def _status(run: RunResult) -> pa.Table | None:
    return run.table("status")


def coordinator_write_s(status: pa.Table | None) -> float | None:
    """The median latency of writes as the server counts it, in s: in µs at servers of the lab, else in whole ms by table. None if nothing was reported."""
    if status is None:
        return None
    for is_wanted, unit_s in (
        (pc.ends_with(status["name"], "jmx.ClientRequest.Write.50thPercentile"), 1e-6),
        (pc.match_substring_regex(status["name"], r"coordinator_write_latency\.readings_.*\.p50th_ms$"), 1e-3),
    ):
        found = status["value"].filter(is_wanted).to_numpy()
        if len(found):
            return float(np.median(found)) * unit_s
    return None


QUANTITIES: Mapping[str, Quantity] = {
    "latency_per_reading": _latency_per_reading,
    "time_outs": _time_outs,
    "client_over_server": _client_over_server,
}
