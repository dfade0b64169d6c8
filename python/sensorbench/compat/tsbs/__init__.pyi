from .estimate import estimate_tsbs
from .load import TsbsLoadBenchmark, plan_tsbs_load
from .options import TsbsLoadOptions, TsbsRunOptions
from .run import TsbsRunBenchmark, plan_tsbs_run
from .summary import summarise_tsbs
from .text import as_text

__all__ = [
    "TsbsLoadBenchmark",
    "TsbsLoadOptions",
    "TsbsRunBenchmark",
    "TsbsRunOptions",
    "as_text",
    "estimate_tsbs",
    "plan_tsbs_load",
    "plan_tsbs_run",
    "summarise_tsbs",
]
