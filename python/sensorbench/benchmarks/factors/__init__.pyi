from .cells import Cell, described_cells
from .estimate import estimate_factors
from .expected import Expected
from .figures import filled_figures, step_figures
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
    "filled_figures",
    "measurements_of",
    "step_figures",
    "summarise_factors",
]
