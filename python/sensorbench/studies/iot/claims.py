"""What the claims of the building-sensor study (claims.toml) speak of, besides the quantities of all comparisons."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from sensorbench.analysis.sample import Floats
from sensorbench.claims import SIZE_VARIATION, Evidence, NotMeasuredError, Quantity, RunValues
from sensorbench.results import RunResult
from sensorbench.results.latencies import logged_latencies

Q1 = "get_sensor_data"
QUERIES = (Q1, "get_peak_data", "get_available_data", "get_floor_zone_data")
FIRST_REQUESTS = 25
SPIKE = 3.0
LONGEST_MONTH_S = 31 * 86_400.0
# Readings of a sensor in a year, one per minute, as the paper counts them.
YEAR_READINGS = 365 * 24 * 60
YEARS = 5


def _by_run(figure: Callable[[Evidence, RunResult], float | None]) -> Quantity:
    """A quantity that each run of a role has once."""
    return lambda evidence, role, _: evidence.by_run([figure(evidence, run) for run in evidence.runs(role)])


def _normalised(evidence: Evidence, run: RunResult) -> list[Floats]:
    """Latencies of each query as multiples of the query's median, so that the mix does not matter."""
    return [latencies / np.median(latencies) for latencies in evidence.latencies(run, QUERIES) if len(latencies)]


def _variation(evidence: Evidence, run: RunResult) -> float | None:
    """The mean coefficient of variation of the queries."""
    normalised = _normalised(evidence, run)
    return float(np.mean([np.std(latencies) / np.mean(latencies) for latencies in normalised])) if normalised else None


def _late_spikes(evidence: Evidence, run: RunResult) -> float | None:
    """Of latencies above three times the median, the share in the last quarter of their query's requests."""
    late = total = 0
    for latencies in _normalised(evidence, run):
        is_spike = latencies > SPIKE
        total += int(is_spike.sum())
        late += int(is_spike[3 * len(latencies) // 4 :].sum())
    return late / total if total else None


def _first_over_rest(evidence: Evidence, run: RunResult) -> float | None:
    """The mean of the first requests of a run over that of the rest. Each latency counts as a multiple of its query's median."""
    if evidence.result.manifest.plan.workload.get("warmup", "0") != "0":
        raise NotMeasuredError("the runs were warmed up before they were measured")
    normalised: list[tuple[float, float]] = []
    for operation in QUERIES:
        numbers, latencies = logged_latencies(run, operation)
        if len(latencies):
            normalised += zip(numbers, latencies / np.median(latencies), strict=True)
    values = np.array([value for _, value in sorted(normalised)])
    if len(values) <= FIRST_REQUESTS:
        raise NotMeasuredError(f"runs have {len(values)} requests; the first {FIRST_REQUESTS} are compared with the rest")
    return float(values[:FIRST_REQUESTS].mean() / values[FIRST_REQUESTS:].mean())


def _long_ranges(evidence: Evidence, role: str, others: Sequence[str]) -> RunValues | None:
    """How many times as long the first role takes as the second for ranges that certainly span a month, by run. Requests of equal
    number are equal queries, and are compared pair by pair.
    """
    (plain_role,) = others
    if plain_role not in evidence.roles:
        return None
    min_rows = LONGEST_MONTH_S / evidence.result.manifest.plan.dataset["interval_s"]
    ratios = []
    for plain, bucketed in zip(evidence.runs(plain_role), evidence.runs(role), strict=False):
        long, also_long = (
            dict(zip(numbers, latencies, strict=True))
            for numbers, latencies in (logged_latencies(run, Q1, min_rows=min_rows) for run in (plain, bucketed))
        )
        both = sorted(long.keys() & also_long.keys())
        ratios.append(float(np.exp(np.mean([np.log(also_long[number] / long[number]) for number in both]))) if both else None)
    if not any(ratios):
        raise NotMeasuredError(f"no range returned more than {min_rows:,.0f} rows, which is a month")
    return evidence.by_run(ratios)


@dataclass(frozen=True)
class LargestPartition:
    """The largest partition that the server reports, which has all of a sensor: bytes, and readings that are due in its span."""

    measured_bytes: int
    readings: float

    def bytes_with(self, readings: float) -> float:
        """What a partition with this many readings has, by the bytes per reading of this one."""
        return self.measured_bytes / self.readings * readings


def largest_partition(evidence: Evidence, role: str) -> LargestPartition:
    """The largest partition of a role with one partition per sensor.

    Raises:
        NotMeasuredError: if the server does not say, or the dataset has no usual interval.

    """
    largest = evidence.largest_partition_bytes(role)
    if largest is None:
        raise NotMeasuredError("the server's nodetool, which reports the sizes of partitions, was not there")
    dataset = evidence.result.manifest.plan.dataset
    first, last, interval_s = dataset.get("first_time"), dataset.get("last_time"), dataset.get("interval_s")
    if not (first and last and interval_s):
        raise NotMeasuredError("readings of this dataset come at no usual interval")
    span_s = (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()
    return LargestPartition(largest, span_s / interval_s)


def _bytes_after(years: int) -> Quantity:
    """The bytes that a partition has with some years of a sensor."""
    return lambda evidence, role, _: RunValues.once(
        largest_partition(evidence, role).bytes_with(years * YEAR_READINGS), SIZE_VARIATION
    )


QUANTITIES: Mapping[str, Quantity] = {
    "variation": _by_run(_variation),
    "late_spikes": _by_run(_late_spikes),
    "first_over_rest": _by_run(_first_over_rest),
    "long_ranges": _long_ranges,
    "year_bytes": _bytes_after(1),
    "five_years_bytes": _bytes_after(YEARS),
}
