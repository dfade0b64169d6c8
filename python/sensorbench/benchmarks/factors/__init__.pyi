from .cells import Cell
from .estimate import estimate_factors
from .file import FactorsFile
from .levels import by_round, measurements_of
from .options import FactorOptions
from .run import FactorsBenchmark, FactorsPlan, check
from .summary import summarise_factors

__all__ = [
    "Cell",
    "FactorOptions",
    "FactorsBenchmark",
    "FactorsFile",
    "FactorsPlan",
    "by_round",
    "check",
    "estimate_factors",
    "measurements_of",
    "summarise_factors",
]
