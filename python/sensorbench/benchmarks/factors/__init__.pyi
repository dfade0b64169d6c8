from .best_draft import OBJECTIVE
from .file import FactorsFile
from .levels import by_round, measurements_of, ratio
from .options import FactorOptions
from .run import FactorsBenchmark, FactorsPlan, check
from .summary import summarise_factors

__all__ = [
    "OBJECTIVE",
    "FactorOptions",
    "FactorsBenchmark",
    "FactorsFile",
    "FactorsPlan",
    "by_round",
    "check",
    "measurements_of",
    "ratio",
    "summarise_factors",
]
