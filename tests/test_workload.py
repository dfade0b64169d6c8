"""Workloads: what they say of the order of operations."""

from pathlib import Path

import pytest

from sensorbench.errors import UsageError
from sensorbench.runner.workload import Workload
from sensorbench.toml_file import parse


def workload(text: str) -> Workload:
    return parse(f"operations = 9\n{text}", Workload, Path("workload.toml"))


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("mix = { look_up = 0.5 }", "random"),
        ('order = "random"\nmix = { look_up = 0.5 }', "random"),
        ('order = "in turn"\nmix = { look_up = 100, count = 1.0, unused = 0 }', "in turn"),
    ],
)
def test_operations_come_at_random_or_in_turn(text: str, order: str) -> None:
    assert workload(text).order == order


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('order = "in turn"\nmix = { look_up = 2, count = 0.5 }', "in turn, the weights of a mix must be whole numbers: how many times each operation comes in a round"),
        ('order = "in turn"\nmix = { look_up = inf }', "in turn, the weights of a mix must be whole numbers"),
        ('order = "sorted"\nmix = { look_up = 2 }', "line 2, order: Input should be 'random' or 'in turn' (it is 'sorted')"),
    ],
)  # fmt: skip
def test_an_order_that_cannot_be_kept(text: str, expected: str) -> None:
    with pytest.raises(UsageError) as refused:
        workload(text)
    assert expected in str(refused.value)
