from .estimate import estimate_stress, steps_time, work_estimate, work_part
from .figures import counts_of, latencies, merged
from .objective import parse_objective
from .options import CapacityOptions, SearchOptions, StressOptions, WorkOptions
from .pilot import WorkPilot, run_work_pilot
from .planning import load_of, plan_stress, work_maker
from .records import RecordWork, SharedRecordWork, with_mix
from .run import CapacitySearch, Load, StepsApart, StressBenchmark, StressPlan, attempted, stress
from .steering import request_rate
from .step import Step
from .summary import summarise_stress
from .work import Means, Work

__all__ = [
    "CapacityOptions",
    "CapacitySearch",
    "Load",
    "Means",
    "RecordWork",
    "SearchOptions",
    "SharedRecordWork",
    "Step",
    "StepsApart",
    "StressBenchmark",
    "StressOptions",
    "StressPlan",
    "Work",
    "WorkOptions",
    "WorkPilot",
    "attempted",
    "counts_of",
    "estimate_stress",
    "latencies",
    "load_of",
    "merged",
    "parse_objective",
    "plan_stress",
    "request_rate",
    "run_work_pilot",
    "steps_time",
    "stress",
    "summarise_stress",
    "with_mix",
    "work_estimate",
    "work_maker",
    "work_part",
]
