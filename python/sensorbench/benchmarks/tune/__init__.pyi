from .again import follows_from_records, value_again
from .configured import ConfiguredWork, check_settings
from .estimate import estimate_tune
from .goal import measured_figure, percentile_of_offered
from .options import TuneOptions
from .planning import plan_tune
from .run import TuneBenchmark, TunePlan
from .space import load_space
from .summary import summarise_tune

__all__ = [
    "ConfiguredWork",
    "TuneBenchmark",
    "TuneOptions",
    "TunePlan",
    "check_settings",
    "estimate_tune",
    "follows_from_records",
    "load_space",
    "measured_figure",
    "percentile_of_offered",
    "plan_tune",
    "summarise_tune",
    "value_again",
]
