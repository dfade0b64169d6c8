from .configured import ConfiguredWork, unknown_settings
from .goal import measured_figure, parse_goal, percentile_of_offered
from .measure import Bench
from .run import Budget, TuneBenchmark, TunePlan, check_settings
from .space import load_space, parse_start
from .summary import summarise_tune

__all__ = [
    "Bench",
    "Budget",
    "ConfiguredWork",
    "TuneBenchmark",
    "TunePlan",
    "check_settings",
    "load_space",
    "measured_figure",
    "parse_goal",
    "parse_start",
    "percentile_of_offered",
    "summarise_tune",
    "unknown_settings",
]
