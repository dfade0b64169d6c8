"""Search spaces, goals and work on the null database, for tests of `sensorbench tune`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sensorbench.analysis.capacity import Search
from sensorbench.benchmarks.stress.records import RecordWork
from sensorbench.benchmarks.stress.work import Work
from sensorbench.benchmarks.tune.goal import parse_goal
from sensorbench.benchmarks.tune.space import Space, load_space
from sensorbench.compat.ycsb import overridden
from sensorbench.compat.ycsb.core_workload import parse_core_workload
from sensorbench.runner.variants import parse_target


def space_of(text: str, tmp_path: Path) -> Space:
    file = tmp_path / "space.toml"
    file.write_text(text, encoding="utf-8")
    return load_space("null", file)[0]


def goal_of(text: str, *, timeout_s: float = 10.0, held_s: float = 1.0) -> Any:
    return parse_goal(text, held_s=held_s, ramp_s=0.0, timeout_s=timeout_s, search=Search(100.0, 0.1, 1, max_per_s=200.0))


def null_work(target: str = "null", records: int = 1) -> Callable[[Path, int], Work]:
    workload, _ = parse_core_workload(overridden({}, [f"recordcount={records}", "updateproportion=0.5", "readproportion=0.5"]))
    return lambda folder, seed: RecordWork(parse_target(target), workload, folder, seed=seed, replace=False)
