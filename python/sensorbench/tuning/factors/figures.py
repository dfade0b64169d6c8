"""The figures of a cell: of putting the records there as fast as that goes, and of each rate. Times in s, rates in operations a second."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sensorbench.results.insight import Insight, insight, over
from sensorbench.results.reader import RunResult
from sensorbench.results.stress import StressResult
from sensorbench.results.summary.stress import StressStep, StressSummary
from sensorbench.stress.figures import latencies
from sensorbench.tuning.goal import percentile_of_due

# The level of a hit rate is that of the last quarter of a step, as the rule for steady hit rates has it.
LAST_QUARTER = 0.75
_MEMTABLES = ("memtable_heap_bytes", "memtable_off_heap_bytes")


def filled_figures(result: StressResult) -> dict[str, Any]:
    """How fast the records were put there, and what the servers did for it; nothing where they were there before."""
    run = result.populate
    if run is None or run.manifest.whole is None:
        return {}
    phase = run.manifest.whole.phases[0]
    length_s = ((phase.end_ns or run.manifest.whole.duration_ns) - (phase.start_ns or 0)) / 1e9
    response = latencies(run.histograms(), phase.name, list(phase.operations), "service")
    written = sum(one["counts"]["ok"] for one in phase.operations.values())
    said = insight(run, result.manifest.setting.database)
    return {
        "written": written,
        "took_s": length_s,
        "per_s": written / length_s,
        "mean_s": response.mean if response else None,
        "p99_s": response.p99 if response else None,
        **_use(said, 0.0, length_s),
        "sstables": _last(said, "sstables"),
        "table_bytes": _last(said, "table_bytes"),
    }


def step_figures(result: StressResult, summary: StressSummary, cache: str) -> list[dict[str, Any]]:
    """Of each step what became of it and what the servers said; `cache` is the one whose hit rate is looked at."""
    return [
        _step(run, step, result.manifest.setting.database, cache)
        for run, step in zip(result.runs, summary.result.steps, strict=False)
    ]


def _step(run: RunResult, step: StressStep, database: str, cache: str) -> dict[str, Any]:
    said = insight(run, database)
    from_s, to_s = step.start_s, step.end_s
    level = over(said, from_s + LAST_QUARTER * (to_s - from_s), to_s).hit_rates.get(cache)
    return {
        "rate_per_s": step.rate_per_s,
        **step.counts.model_dump(include={"offered", "ok", "error", "timeout"}),
        "unstarted": step.counts.dropped,
        "completed_per_s": step.completed_per_s,
        "client_bound": step.client_bound,
        "client_cpu": step.client_cpu,
        **{f"{metric}_s": getattr(step.response_s, metric, None) for metric in ("mean", "median", "p99")},
        # Of all that were due, so that those that never started are not forgotten.
        "p99_of_due_s": percentile_of_due(run, 0.99, run.manifest.plan["timeout_s"]),
        "hit_rate": level,
        "hit_rate_of_all": step.servers.hit_rates.get(cache),
        "steady_s": step.servers.steady_after_s.get(cache),
        "by_operation": {name: one.response_s.model_dump() if one.response_s else None for name, one in step.operations.items()},
        **_use(said, from_s, to_s),
    }


def _use(said: Insight, from_s: float, to_s: float) -> dict[str, Any]:
    """What the servers used in a stretch of time."""
    told = asdict(over(said, from_s, to_s))
    rates, means = told["rates"], told["means"]
    return {
        "processors": rates.get("processor_s"),
        "disk_read_per_s": rates.get("disk_read_bytes"),
        "disk_written_per_s": rates.get("disk_written_bytes"),
        "compactions_per_s": rates.get("compactions"),
        "compacted_per_s": rates.get("compacted_bytes_out"),
        "flushes_per_s": rates.get("flushes"),
        "garbage_collection": rates.get("garbage_collection_s"),
        "memtable_bytes": _sum(means, _MEMTABLES),
        "disk_bytes": means.get("disk_bytes"),
    }


def _last(said: Insight, gauge: str) -> float | None:
    """What a gauge showed when the load was over."""
    return float(said.series[gauge].values[-1]) if gauge in said.series else None


def _sum(told: dict[str, float], names: Sequence[str]) -> float | None:
    known = [told[name] for name in names if name in told]
    return sum(known) if known else None
