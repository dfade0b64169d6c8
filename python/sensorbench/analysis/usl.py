"""The universal scalability law: what a cluster of N nodes gets done, and which share of it contention and coherency take.

    X(N) = λ N / (1 + σ (N - 1) + κ N (N - 1))

λ is what one node would do, σ the contention (what must be done one after the other), κ the coherency (what every node has to agree on
with every other). Gunther, "A general theory of computational scalability based on rational functions", arXiv:0808.1431, 2008.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sensorbench.analysis.sample import Floats

MIN_SIZES = 3
RESAMPLES = 2000
_INTERVAL = (2.5, 97.5)


@dataclass(frozen=True)
class Estimate:
    """A parameter with its 95% interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Usl:
    """The law, fitted. `peak_nodes` is the number of nodes beyond which more get less done; None if there is none (κ = 0)."""

    per_node: Estimate
    contention: Estimate
    coherency: Estimate
    peak_nodes: float | None

    def at(self, nodes: Floats) -> Floats:
        """What this many nodes get done by the law."""
        law = self.per_node.value, self.contention.value, self.coherency.value
        return _law(nodes, *law)


def fit_usl(measured: Mapping[int, Floats], seed: int = 1) -> Usl:
    """Fits the law to what was measured (in operations per second, above zero), several times for each number of nodes. Relative deviations
    count; σ and κ are not below zero. Intervals are percentiles of resampled measurements, so they say how certain the measurements are, and
    nothing of whether the law holds.

    Raises ValueError with fewer than three numbers of nodes: the law has three parameters.
    """
    if len(measured) < MIN_SIZES:
        raise ValueError(f"{len(measured)} numbers of nodes: expected {MIN_SIZES} at least")
    nodes = np.array(sorted(measured), dtype=np.float64)
    samples = [np.asarray(measured[int(node)], dtype=np.float64) for node in nodes]
    found = _fitted(nodes, np.array([sample.mean() for sample in samples]))
    rng = np.random.default_rng(seed)
    means = [sample[rng.integers(0, len(sample), (RESAMPLES, len(sample)))].mean(axis=1) for sample in samples]
    low, high = np.percentile(_all_fitted(nodes, np.column_stack(means)), _INTERVAL, axis=0)
    per_node, contention, coherency = (Estimate(*map(float, row)) for row in zip(found, low, high, strict=True))
    turns = coherency.value > 0.0 and contention.value < 1.0
    peak = float(np.sqrt((1.0 - contention.value) / coherency.value)) if turns else None
    return Usl(per_node, contention, coherency, peak)


def _law(nodes: Floats, per_node: float, contention: float, coherency: float) -> Floats:
    return per_node * nodes / (1.0 + contention * (nodes - 1.0) + coherency * nodes * (nodes - 1.0))


def _fitted(nodes: Floats, per_s: Floats) -> tuple[float, float, float]:
    """λ, σ and κ. N / X(N) is linear in 1/λ, σ/λ and κ/λ, none of which is below zero."""
    from scipy.optimize import nnls

    (inverse, contention, coherency), _ = nnls(_terms(nodes) * (per_s / nodes)[:, None], np.ones_like(nodes))
    return float(1.0 / inverse), float(contention / inverse), float(coherency / inverse)


def _all_fitted(nodes: Floats, per_s: Floats) -> Floats:
    """λ, σ and κ for each row of figures. Where nothing comes out below zero, keeping to that changes nothing: those are fitted at once."""
    weights = per_s / nodes
    inverse, contention, coherency = (np.linalg.pinv(_terms(nodes) * weights[:, :, None]) @ np.ones_like(nodes)).T
    with np.errstate(divide="ignore", invalid="ignore"):
        fitted = np.column_stack([1.0 / inverse, contention / inverse, coherency / inverse])
    for row in np.flatnonzero(np.minimum(np.minimum(inverse, contention), coherency) < 0.0):
        fitted[row] = _fitted(nodes, per_s[row])
    return fitted


def _terms(nodes: Floats) -> Floats:
    return np.column_stack([np.ones_like(nodes), nodes - 1.0, nodes * (nodes - 1.0)])
