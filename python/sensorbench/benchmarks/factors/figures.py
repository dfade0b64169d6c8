"""The figures of a cell: of putting the records there as fast as that goes, and of each rate. Times in s, rates in operations per second."""

from collections.abc import Mapping, Sequence

from sensorbench.benchmarks.stress import latencies
from sensorbench.benchmarks.tune import percentile_of_offered
from sensorbench.results.factors import FilledFigures, ServerUse, StepFigures
from sensorbench.results.insight import Insight, insight, over
from sensorbench.results.reader import RunResult
from sensorbench.results.stress import StressResult
from sensorbench.results.summary.stress import StressStep, StressSummary

# The level of a hit rate is that of the last quarter of a step, as the rule for steady hit rates has it. So is the load average, which follows
# what lasts a minute.
LAST_QUARTER = 0.75
_MEMTABLES = ("memtable_heap_bytes", "memtable_off_heap_bytes")


def filled_figures(result: StressResult) -> FilledFigures | None:
    """How fast the records were put there, and what the servers did for it; None if they were there before."""
    run = result.populate
    if run is None or run.manifest.totals is None:
        return None
    phase = run.manifest.totals.phases[0]
    length_s = ((phase.end_ns or run.manifest.totals.duration_ns) - (phase.start_ns or 0)) / 1e9
    service = latencies(run.histograms(), phase.name, list(phase.operations), "service")
    written = sum(operation["counts"]["ok"] for operation in phase.operations.values())
    reported = insight(run, result.manifest.variants[0].database)
    return FilledFigures(
        written=written,
        took_s=length_s,
        per_s=written / length_s,
        mean_s=service.mean if service else None,
        p99_s=service.p99 if service else None,
        sstables=_last(reported, "sstables"),
        table_bytes=_last(reported, "table_bytes"),
        **use_of_servers(reported, 0.0, length_s).model_dump(),
    )


def step_figures(result: StressResult, summary: StressSummary, cache: str) -> list[StepFigures]:
    """Of each step what became of it and what the servers reported; `cache` is the one whose hit rate is looked at."""
    return [
        _step(run, step, result.manifest.variants[0].database, cache)
        for run, step in zip(result.runs, summary.result.steps, strict=False)
    ]


def _step(run: RunResult, step: StressStep, database: str, cache: str) -> StepFigures:
    reported = insight(run, database)
    from_s, to_s = step.start_s, step.end_s
    counts, response = step.counts, step.response_s
    return StepFigures(
        rate_per_s=step.rate_per_s,
        offered=counts.offered,
        ok=counts.ok,
        error=counts.error,
        timeout=counts.timeout,
        dropped=counts.dropped,
        completed_per_s=step.completed_per_s,
        client_bound=step.client_bound,
        client_cpu=step.client_cpu,
        mean_s=response.mean if response else None,
        median_s=response.median if response else None,
        p99_s=response.p99 if response else None,
        p99_of_offered_s=percentile_of_offered(run, 0.99, run.manifest.plan["timeout_s"]),
        hit_rate=over(reported, from_s + LAST_QUARTER * (to_s - from_s), to_s).hit_rates.get(cache),
        hit_rate_of_all=step.servers.hit_rates.get(cache),
        steady_s=step.servers.steady_after_s.get(cache),
        by_operation={name: operation.response_s for name, operation in step.operations.items()},
        **use_of_servers(reported, from_s, to_s).model_dump(),
    )


def use_of_servers(reported: Insight, from_s: float, to_s: float) -> ServerUse:
    """What the servers used from a moment to another one (s on the run's clock); of the load average, its last quarter, or all of a time so short
    that no sample lies there.
    """
    window, end = over(reported, from_s, to_s), over(reported, from_s + LAST_QUARTER * (to_s - from_s), to_s)
    return ServerUse(
        server_cpu=window.rates.get("processor_s"),
        load_average=end.means.get("load_average", window.means.get("load_average")),
        disk_read_per_s=window.rates.get("disk_read_bytes"),
        disk_written_per_s=window.rates.get("disk_written_bytes"),
        compactions_per_s=window.rates.get("compactions"),
        compacted_per_s=window.rates.get("compacted_bytes_out"),
        flushes_per_s=window.rates.get("flushes"),
        garbage_collection=window.rates.get("garbage_collection_s"),
        memtable_bytes=_sum(window.means, _MEMTABLES),
        disk_bytes=window.means.get("disk_bytes"),
    )


def _last(reported: Insight, gauge: str) -> float | None:
    """What a gauge showed when the load was over."""
    return float(reported.series[gauge].values[-1]) if gauge in reported.series else None


def _sum(means: Mapping[str, float], names: Sequence[str]) -> float | None:
    known = [means[name] for name in names if name in means]
    return sum(known) if known else None
