"""Intervals as summaries have them."""

from dataclasses import asdict

from sensorbench.analysis.intervals import Interval
from sensorbench.results.summary.claims import MeasuredFigure


def measured_figure(interval: Interval) -> MeasuredFigure:
    """The figure of an interval."""
    return MeasuredFigure(**asdict(interval))
