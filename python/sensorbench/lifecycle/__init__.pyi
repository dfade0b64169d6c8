from .benchmark import Benchmark, Description, Plan, RunContext, check_folder, recorded_as, run
from .deadline import Deadline
from .series import ChildPlan, SeriesBenchmark, SeriesPlan

__all__ = [
    "Benchmark",
    "ChildPlan",
    "Deadline",
    "Description",
    "Plan",
    "RunContext",
    "SeriesBenchmark",
    "SeriesPlan",
    "check_folder",
    "recorded_as",
    "run",
]
