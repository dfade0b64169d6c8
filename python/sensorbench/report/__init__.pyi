from .build import write_page
from .comparison import comparison_page
from .elasticity import elasticity_page
from .elasticity_comparison import elasticity_comparison_page
from .factors import factors_page
from .history import history_page
from .mapreduce import mapreduce_page
from .replay import replay_page
from .series import series_page
from .stress import stress_page
from .tools import tool_page
from .traffic import traffic_page
from .traffic_fit import traffic_fit_page
from .tsbs import tsbs_page
from .tune import tune_page

__all__ = [
    "comparison_page",
    "elasticity_comparison_page",
    "elasticity_page",
    "factors_page",
    "history_page",
    "mapreduce_page",
    "replay_page",
    "series_page",
    "stress_page",
    "tool_page",
    "traffic_fit_page",
    "traffic_page",
    "tsbs_page",
    "tune_page",
    "write_page",
]
