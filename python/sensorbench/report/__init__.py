"""Reports: one self-contained HTML file, and its charts as SVG and PNG."""

from sensorbench.report.build import write_report

__all__ = ["write_report"]
