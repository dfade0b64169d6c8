from .figures import counts_of, latencies, merged
from .objective import parse_objective
from .options import CapacityOptions, SearchOptions, StressOptions, WorkOptions
from .planning import load_of, plan_stress, work_maker
from .records import RecordWork, with_mix
from .run import CapacitySearch, Load, StepsApart, StressBenchmark, StressPlan, attempted, stress
from .steering import request_rate
from .step import Step
from .summary import summarise_stress
from .work import Work

__all__ = [
    "CapacityOptions",
    "CapacitySearch",
    "Load",
    "RecordWork",
    "SearchOptions",
    "Step",
    "StepsApart",
    "StressBenchmark",
    "StressOptions",
    "StressPlan",
    "Work",
    "WorkOptions",
    "attempted",
    "counts_of",
    "latencies",
    "load_of",
    "merged",
    "parse_objective",
    "plan_stress",
    "request_rate",
    "stress",
    "summarise_stress",
    "with_mix",
    "work_maker",
]
