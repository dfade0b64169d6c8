from .candidates import Gathered, by_reason, candidates_of, gather, has_several_datasets
from .estimate import estimate_comparisons, found_of, run_cost
from .pilot import run_pilot
from .piloted import Pilot
from .run import ComparisonBenchmark, plan_comparison
from .same_work import CHANGES_NO_OPERATION, work_digest, workload_of
from .samples import block_sums_of, sample_of
from .summary import done_in_s, summarise
from .units import too_few_blocks, unit_of

__all__ = [
    "CHANGES_NO_OPERATION",
    "ComparisonBenchmark",
    "Gathered",
    "Pilot",
    "block_sums_of",
    "by_reason",
    "candidates_of",
    "done_in_s",
    "estimate_comparisons",
    "found_of",
    "gather",
    "has_several_datasets",
    "plan_comparison",
    "run_cost",
    "run_pilot",
    "sample_of",
    "summarise",
    "too_few_blocks",
    "unit_of",
    "work_digest",
    "workload_of",
]
