from .options import ReplayOptions
from .planning import plan_replay
from .run import ReplayBenchmark
from .summary import summarise_replay

__all__ = ["ReplayBenchmark", "ReplayOptions", "plan_replay", "summarise_replay"]
