from .blocks import DataBetweenBlocks, PlannedBlocks
from .manifest import RunManifest, VariantManifest
from .planned import ComparisonManifest, ServerResources
from .reader import ComparisonResult, RunResult, has_results, kind_of, read_comparison, read_run
from .writer import ComparisonWriter, RunWriter, write_summary

__all__ = [
    "ComparisonManifest",
    "ComparisonResult",
    "ComparisonWriter",
    "DataBetweenBlocks",
    "PlannedBlocks",
    "RunManifest",
    "RunResult",
    "RunWriter",
    "ServerResources",
    "VariantManifest",
    "has_results",
    "kind_of",
    "read_comparison",
    "read_run",
    "write_summary",
]
