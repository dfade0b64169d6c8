"""When the markers of a comparison became visible, of each variant, over all its runs."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensorbench.analysis.censored import quantile_bounds
from sensorbench.results import ComparisonResult
from sensorbench.results.freshness import MeasuredMarkers, measured_markers
from sensorbench.results.summary.freshness import FreshnessBounds, FreshnessFigures, VariantFreshness
from sensorbench.runner import seconds

_SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}


def freshness_of(result: ComparisonResult) -> dict[str, VariantFreshness]:
    """By variant, how fresh what it returned was; none where the workload had no markers."""
    wanted = result.manifest.plan.workload.get("freshness")
    if not wanted:
        return {}
    found = {}
    for variant in result.manifest.variants:
        runs = [markers for run in result.usable_runs(variant.id) if (markers := measured_markers(run)) is not None]
        if runs:
            rates = list(dict.fromkeys(rate for run in runs for rate in run.rate))
            found[variant.id] = VariantFreshness(
                poll_s=seconds(wanted["poll"]),
                within_s=seconds(wanted["within"]),
                whole=_figures(runs, None, 1.0 / wanted["rate"]),
                by_rate=[_figures(runs, rate, 1.0 / wanted["rate"]) for rate in rates] if len(rates) > 1 else [],
            )
    return found


def _figures(runs: list[MeasuredMarkers], rate: str | None, every_s: float) -> FreshnessFigures:
    """The figures of markers, those of one rate if one is given; `every_s`: time from one marker to the next."""
    wanted = [np.array([rate is None or of == rate for of in run.rate], dtype=np.bool_) for run in runs]

    def of_all(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(run, name)[of_run] for run, of_run in zip(runs, wanted, strict=True)])

    is_acknowledged = of_all("is_acknowledged")
    low_s, high_s = (of_all(name)[is_acknowledged] for name in ("low_s", "high_s"))
    is_seen = np.isfinite(high_s)
    bounds = quantile_bounds(low_s, high_s, _SHARES) if len(low_s) else {}
    return FreshnessFigures(
        rate=rate,
        markers=int(is_acknowledged.sum()),
        seen=int(is_seen.sum()),
        at_once=int((is_seen & of_all("missed_none")[is_acknowledged]).sum()),
        failed=int((~is_acknowledged).sum()),
        late=int((of_all("lag_s")[is_acknowledged] > every_s).sum()),
        reads=int(of_all("reads").sum()),
        failed_reads=int(of_all("failed_reads").sum()),
        quantiles_s={
            name: FreshnessBounds(low_s=low, high_s=high if np.isfinite(high) else None) for name, (low, high) in bounds.items()
        },
        max_width_s=float((high_s - low_s)[is_seen].max()) if is_seen.any() else None,
    )
