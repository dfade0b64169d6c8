"""What `sensorbench tune` measures of a configuration, and when it gives one up."""

from pathlib import Path
from typing import Any

import pytest

from sensorbench.benchmarks.stress.run import Load
from sensorbench.benchmarks.tune.measure import Bench, Order, Pruner, measure
from sensorbench.benchmarks.tune.space import Configuration
from sensorbench.results.tune import Measurement
from tests.tuning import goal_of, null_work


def measured(
    goal: Any, folder: Path, configuration: Configuration, *, target: str = "null", timeout_s: float = 10.0
) -> Measurement:
    load = Load(concurrency=2, timeout_s=timeout_s, arrival="constant", pin=False)
    return measure(Bench(null_work(target, 20), load, goal), Order("search", configuration, {}, 1), folder, None)


def test_operations_that_never_started_count_as_the_time_out(tmp_path: Path) -> None:
    """Two workers that take 20 ms each end 50 of 1000 operations in half a second."""
    slow = {"delay_ms": "20", "session": "blocking"}
    goal = goal_of("p50@2000", timeout_s=5.0, held_s=0.5)
    assert measured(goal, tmp_path / "beyond", slow, timeout_s=5.0).value == 5.0
    within = measured(goal_of("p50@10", timeout_s=5.0, held_s=1.0), tmp_path / "within", slow, timeout_s=5.0)
    assert within.value is not None
    assert 0.02 <= within.value < 5.0


def test_capacity_load_and_size_are_figures_of_the_same_measurement(tmp_path: Path) -> None:
    load = measured(goal_of("load"), tmp_path / "load", {"cache_mib": "1"}, target="sqlite")
    assert (load.outcome, load.value) == ("measured", load.load_s)
    size = measured(goal_of("size"), tmp_path / "size", {"cache_mib": "1"}, target="sqlite")
    assert (size.outcome, size.value) == ("measured", size.size_bytes)
    assert size.value is not None
    assert size.value > 20 * 10 * 100
    unknown = measured(goal_of("size"), tmp_path / "none", {"delay_ms": "0"})
    assert (unknown.outcome, unknown.reason) == ("failed", "there is no such figure")
    capacity = measured(goal_of("capacity:p50=9s", held_s=0.2), tmp_path / "capacity", {"delay_ms": "0"})
    assert (capacity.outcome, capacity.value) == ("measured", 200.0)


class FakeRun:
    """A run that can be stopped."""

    stopped = False

    def stop(self) -> None:
        self.stopped = True


def told(now_s: float, *p99_s: float) -> dict[str, Any]:
    operations = {str(place): {"response_ns": {"p50": 0.0, "p99": value * 1e9}} for place, value in enumerate(p99_s)}
    return {"now_ns": now_s * 1e9, "phases": [{"start_ns": 0, "operations": {}}, {"start_ns": 1e9, "operations": operations}]}


@pytest.mark.parametrize(
    ("snapshot", "is_so"),
    [
        (told(1.5, 1.0), False),
        (told(4.0), False),
        (told(4.0, 0.02), False),
        (told(4.0, 1.0, 0.02), False),
        (told(4.0, 1.0, 0.031), True),
    ],
)
def test_only_what_is_far_worse_in_all_operations_after_a_while_is_given_up(snapshot: dict[str, Any], is_so: bool) -> None:
    hopeless, run = Pruner("p99", best_s=0.01, held_s=10.0), FakeRun()
    hopeless.on_snapshot(run, snapshot)  # type: ignore[arg-type]
    assert (hopeless.is_so, run.stopped) == (is_so, is_so)
