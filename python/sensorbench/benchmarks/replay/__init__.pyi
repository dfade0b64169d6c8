from .options import ReplayOptions
from .planning import ReplayWork, plan_replay
from .run import ReplayBenchmark
from .summary import summarise_replay

__all__ = ["ReplayBenchmark", "ReplayOptions", "ReplayWork", "plan_replay", "summarise_replay"]
