"""Result files: this package alone reads and writes them."""

from sensorbench.results.manifest import ComparisonManifest, RunManifest, SettingManifest, State
from sensorbench.results.reader import ComparisonResult, RunResult, has_results, kind_of, read_comparison, read_run
from sensorbench.results.writer import ComparisonWriter, RunWriter, write_summary, write_whole_summary

__all__ = [
    "ComparisonManifest",
    "ComparisonResult",
    "ComparisonWriter",
    "RunManifest",
    "RunResult",
    "RunWriter",
    "SettingManifest",
    "State",
    "has_results",
    "kind_of",
    "read_comparison",
    "read_run",
    "write_summary",
    "write_whole_summary",
]
