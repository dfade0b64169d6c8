"""The summary of a phase of YCSB."""

from sensorbench.compat.figures import summarise_tool
from sensorbench.results.planned import YcsbManifest
from sensorbench.results.summary.tools import YcsbSummary
from sensorbench.results.tools import ToolResult


def summarise_ycsb(result: ToolResult[YcsbManifest]) -> YcsbSummary:
    """The summary of a phase on disk."""
    return summarise_tool(result, YcsbSummary)
