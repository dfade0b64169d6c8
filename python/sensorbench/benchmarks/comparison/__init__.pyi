from .candidates import Gathered, by_reason, candidates_of, gather
from .run import ComparisonBenchmark, plan_comparison
from .summary import done_in_s, sample_of, summarise

__all__ = [
    "ComparisonBenchmark",
    "Gathered",
    "by_reason",
    "candidates_of",
    "done_in_s",
    "gather",
    "plan_comparison",
    "sample_of",
    "summarise",
]
