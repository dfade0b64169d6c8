from .cells import Cell, described_cells
from .estimate import estimate_factors
from .expected import Expected
from .file import FactorsFile
from .levels import by_round, measurements_of
from .options import FactorOptions
from .plan import FactorsPlan, check
from .run import FactorsBenchmark
from .summary import summarise_factors

__all__ = [
    "Cell",
    "Expected",
    "FactorOptions",
    "FactorsBenchmark",
    "FactorsFile",
    "FactorsPlan",
    "by_round",
    "check",
    "described_cells",
    "estimate_factors",
    "measurements_of",
    "summarise_factors",
]
