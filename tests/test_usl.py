"""The universal scalability law, on measurements that follow it."""

import numpy as np
import pytest

from sensorbench.analysis.usl import fit_usl

NODES = (1, 2, 4, 8, 16)


def law(nodes: int, per_node: float, contention: float, coherency: float) -> float:
    return per_node * nodes / (1.0 + contention * (nodes - 1) + coherency * nodes * (nodes - 1))


@pytest.mark.parametrize(("contention", "coherency"), [(0.0, 0.0), (0.08, 0.0), (0.05, 0.01), (0.0, 0.02)])
def test_what_follows_the_law_has_its_parameters(contention: float, coherency: float) -> None:
    found = fit_usl({nodes: np.full(3, law(nodes, 950.0, contention, coherency)) for nodes in NODES})
    assert found.per_node.value == pytest.approx(950.0)
    assert found.contention.value == pytest.approx(contention, abs=1e-9)
    assert found.coherency.value == pytest.approx(coherency, abs=1e-9)
    assert found.at(np.array([3.0])) == pytest.approx([law(3, 950.0, contention, coherency)])
    if coherency:
        assert found.peak_nodes == pytest.approx(np.sqrt((1.0 - contention) / coherency))
    else:
        assert found.peak_nodes is None or found.peak_nodes > 1e3


def test_intervals_have_the_parameters_as_often_as_they_say() -> None:
    rng = np.random.default_rng(5)
    covered = 0
    for trial in range(60):
        measured = {nodes: law(nodes, 950.0, 0.06, 0.004) * rng.normal(1.0, 0.02, 20) for nodes in NODES}
        found = fit_usl(measured, seed=trial)
        covered += found.contention.low <= 0.06 <= found.contention.high
    # Of 60 with 95% each, 48 or fewer come once in a hundred thousand.
    assert covered > 48


def test_faster_than_in_proportion_is_no_contention_below_zero() -> None:
    found = fit_usl({1: np.array([100.0]), 2: np.array([230.0]), 4: np.array([500.0])})
    assert (found.contention.value, found.coherency.value, found.peak_nodes) == (0.0, 0.0, None)


def test_two_sizes_say_nothing() -> None:
    with pytest.raises(ValueError, match="2 numbers of nodes: expected 3 at least"):
        fit_usl({1: np.array([100.0]), 2: np.array([190.0])})
