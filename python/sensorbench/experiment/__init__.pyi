from .comparison import DATA_FOLDER, Comparison
from .file import plan_experiment
from .settings import Setting, Side, TargetSpec, databases, make_settings, parse_target, started_target
from .sweep import parse_sweeps, swept
from .workload import WARM_UP, Schedule, Workload

__all__ = [
    "DATA_FOLDER",
    "WARM_UP",
    "Comparison",
    "Schedule",
    "Setting",
    "Side",
    "TargetSpec",
    "Workload",
    "databases",
    "make_settings",
    "parse_sweeps",
    "parse_target",
    "plan_experiment",
    "started_target",
    "swept",
]
