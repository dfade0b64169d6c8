from .api.bundles import Verified, bundle, verify
from .api.compare import ComparedOperation, Comparison, compare
from .api.dataset import Dataset
from .api.errors import (
    DamagedResultsError,
    DiskFullError,
    FailedError,
    InterruptedRunError,
    NotAvailableError,
    SensorbenchError,
    UsageError,
)
from .api.figures import Figure
from .api.gate import gate
from .api.history import add_to_history, read_history
from .api.progress import Progress
from .api.results import ComparisonResults, MeasuredResults, Results, SeriesResults, Variant, read
from .api.rows import Rows
from .api.run import run, study

__version__: str

__all__ = [
    "ComparedOperation",
    "Comparison",
    "ComparisonResults",
    "DamagedResultsError",
    "Dataset",
    "DiskFullError",
    "FailedError",
    "Figure",
    "InterruptedRunError",
    "MeasuredResults",
    "NotAvailableError",
    "Progress",
    "Results",
    "Rows",
    "SensorbenchError",
    "SeriesResults",
    "UsageError",
    "Variant",
    "Verified",
    "add_to_history",
    "bundle",
    "compare",
    "gate",
    "read",
    "read_history",
    "run",
    "study",
    "verify",
]
