"""The answer of a search for server settings, in words."""

from sensorbench.report import formatting
from sensorbench.results.summary.claims import MeasuredFigure
from sensorbench.results.summary.tune import TuneFigures

GOALS = {"load": "the time to load", "size": "the size of the data"}


def headline(result: TuneFigures) -> str:
    """What came out, in a sentence."""
    if result.verdict is None:
        return f"Nothing came out yet: {result.reason}."
    if result.verdict == "no gain":
        seen = f": {ratio(result.ratio)}" if result.ratio else ""
        return f"No gain: {result.reason}{seen}."
    return f"Gain: {goal(result)} is {ratio(result.ratio)} of the default's, in {result.pairs} pairs of runs of their own."


def goal(result: TuneFigures) -> str:
    """The goal in words."""
    text = result.goal.text
    if text in GOALS:
        return GOALS[text]
    word, _, objective = text.partition(":")
    if word == "capacity":
        return f"the capacity at {objective}"
    percentile, _, rate = text.partition("@")
    return f"the {percentile} at {rate} operations/s"


def ratio(found: MeasuredFigure | None) -> str:
    """A ratio with its confidence interval."""
    return (
        "–"
        if found is None
        else f"{formatting.times(found.value)} ({formatting.interval(found.low, found.high, found.confidence)})"
    )
