"""What retention cost during a run, of each variant of a comparison."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sensorbench.results import ComparisonResult, RunResult
from sensorbench.results.engine_plan import KeptRetention
from sensorbench.results.latencies import of_kind
from sensorbench.results.latency_blocks import SERVED
from sensorbench.results.manifest import MEASURE
from sensorbench.results.retention import EXPIRE, ROLLUP, SIZE, RetentionEvent, read_retention
from sensorbench.results.summary.retention import LatencyBeside, RetentionActions, VariantRetention

_OF_ACTIONS = {"p50": 0.5, "max": 1.0}
_OF_LATENCIES = {"p50": 0.5, "p99": 0.99}


def retention_of(result: ComparisonResult) -> dict[str, VariantRetention]:
    """By variant, what its retention cost; none where the workload has none."""
    if not result.manifest.plan.workload.get("retention"):
        return {}
    found = {}
    for variant in result.manifest.variants:
        for run in result.usable_runs(variant.id):
            events = read_retention(run.folder)
            described = run.manifest.plan.get("retention")
            if events is not None and described is not None:
                found[variant.id] = _figures(run, events, described)
    return found


def _figures(run: RunResult, events: Sequence[RetentionEvent], described: KeptRetention) -> VariantRetention:
    sizes = [event.bytes for event in events if event.kind == SIZE and event.bytes is not None]
    kinds = [kind for kind in (ROLLUP, EXPIRE) if any(event.kind == kind for event in events)]
    return VariantRetention(
        **described,
        actions=[_actions(kind, [event for event in events if event.kind == kind]) for kind in kinds],
        latency=[_beside(run, name, events) for name in run.manifest.operations],
        first_bytes=sizes[0] if sizes else None,
        max_bytes=max(sizes, default=None),
        last_bytes=sizes[-1] if sizes else None,
    )


def _actions(kind: str, events: Sequence[RetentionEvent]) -> RetentionActions:
    meanwhile = [event for event in events if not event.is_last]
    lengths_s = np.array([(event.end_ns - event.start_ns) / 1e9 for event in meanwhile])
    removed = [event.removed for event in events if event.removed is not None]
    errors = [event.error for event in events if event.error is not None]
    return RetentionActions(
        kind=kind,
        count=len(meanwhile),
        failed=len(errors),
        first_error=errors[0] if errors else None,
        duration_s=_quantiles(lengths_s, _OF_ACTIONS),
        total_s=float(lengths_s.sum()),
        removed=sum(removed) if removed else None,
        last_s=next(((event.end_ns - event.start_ns) / 1e9 for event in events if event.is_last), None),
    )


def _beside(run: RunResult, name: str, events: Sequence[RetentionEvent]) -> LatencyBeside:
    """Operations overlap an action where they end after its start, and were to start before its end."""
    table = run.sampled_operations()
    if table is None or MEASURE not in run.manifest.phases:
        return LatencyBeside(operation=name, beside=0, others=0, beside_s={}, others_s={})
    rows = of_kind(table, run.manifest.phases.index(MEASURE), run.manifest.operations.index(name))
    is_served = np.isin(rows["outcome"].to_numpy(zero_copy_only=False), SERVED.to_pylist())
    intended_ns, end_ns = (rows[column].to_numpy().astype(np.int64)[is_served] for column in ("intended_start_ns", "end_ns"))
    is_beside = np.zeros(len(intended_ns), dtype=np.bool_)
    for event in events:
        if event.kind in {ROLLUP, EXPIRE}:
            is_beside |= (end_ns > event.start_ns) & (intended_ns < event.end_ns)
    latencies_s = (end_ns - intended_ns) / 1e9
    return LatencyBeside(
        operation=name,
        beside=int(is_beside.sum()),
        others=int((~is_beside).sum()),
        beside_s=_quantiles(latencies_s[is_beside], _OF_LATENCIES),
        others_s=_quantiles(latencies_s[~is_beside], _OF_LATENCIES),
    )


def _quantiles(values: NDArray[np.float64], shares: Mapping[str, float]) -> dict[str, float]:
    return {name: float(np.quantile(values, share)) for name, share in shares.items()} if len(values) else {}
