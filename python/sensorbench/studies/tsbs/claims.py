"""What the claims of TSBS's published figures (claims.toml) speak of, besides the quantities of all comparisons."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from sensorbench.analysis.sample import Floats
from sensorbench.claims import LOAD_VARIATION, Evidence, Quantity, RunValues
from sensorbench.results.summary.comparison import LoadFigures


def _mean_over_median(evidence: Evidence, role: str, others: Sequence[str]) -> RunValues | None:
    """Of each run the mean of an operation's latencies over their median."""
    (operation,) = others
    return evidence.by_run([_skew(evidence.latencies(run, [operation])[0]) for run in evidence.runs(role)])


def _skew(latencies: Floats) -> float | None:
    return float(np.mean(latencies) / np.median(latencies)) if len(latencies) else None


def _rows_per_s(evidence: Evidence, role: str, others: Sequence[str]) -> RunValues | None:
    """Rows per second until everything was loaded and settled, as TSBS counts rows: one for each measurement, host and time."""
    del others
    return _once(evidence, role, rows_per_s)


def _values_per_s(evidence: Evidence, role: str, others: Sequence[str]) -> RunValues | None:
    """Values per second until everything was loaded and settled, which TSBS calls metrics."""
    del others
    return _once(evidence, role, values_per_s)


def _once(evidence: Evidence, role: str, rate: Callable[[LoadFigures], float | None]) -> RunValues | None:
    """A rate of the load of a role, which was measured once."""
    load = evidence.result.loads.get(evidence.roles[role])
    return None if load is None else RunValues.once(rate(load), LOAD_VARIATION)


def rows_per_s(load: LoadFigures) -> float | None:
    """Rows per second until everything was loaded and settled."""
    return load.settled_readings_per_s


def values_per_s(load: LoadFigures) -> float | None:
    """Values per second until everything was loaded and settled."""
    return None if load.settled_readings_per_s is None else load.settled_readings_per_s * load.values_per_reading


QUANTITIES: Mapping[str, Quantity] = {
    "mean_over_median": _mean_over_median,
    "rows_per_s": _rows_per_s,
    "values_per_s": _values_per_s,
}
