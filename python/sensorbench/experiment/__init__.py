"""Experiments: settings that are loaded, warmed up and run in turn under one workload."""

from sensorbench.experiment.comparison import DATA_FOLDER, Comparison
from sensorbench.experiment.conduct import check_out, conduct
from sensorbench.experiment.file import plan_experiment
from sensorbench.experiment.settings import Setting, Side, TargetSpec, databases, make_settings, parse_target, started_target
from sensorbench.experiment.sweep import parse_sweeps, swept
from sensorbench.experiment.workload import WARM_UP, Schedule, Workload

__all__ = [
    "DATA_FOLDER",
    "WARM_UP",
    "Comparison",
    "Schedule",
    "Setting",
    "Side",
    "TargetSpec",
    "Workload",
    "check_out",
    "conduct",
    "databases",
    "make_settings",
    "parse_sweeps",
    "parse_target",
    "plan_experiment",
    "started_target",
    "swept",
]
