"""The answer of a search for settings, in words."""

from typing import Any

from sensorbench.report import words
from sensorbench.report.answer import sure

GOALS = {"load": "the time to load", "size": "the size of the data"}


def headline(summary: dict[str, Any]) -> str:
    """What came out, in a sentence."""
    if summary["outcome"] is None:
        return f"Nothing came out yet: {summary['why']}."
    if summary["outcome"] == "no gain":
        seen = f": {ratio(summary['ratio'])}" if summary["ratio"] else ""
        return f"No gain: {summary['why']}{seen}."
    seen, pairs = ratio(summary["ratio"]), summary["pairs"]
    return f"Gain: {goal(summary)} is {seen} of the default's, in {pairs} pairs of runs of their own."


def goal(summary: dict[str, Any]) -> str:
    """The goal in words."""
    text: str = summary["goal"]["text"]
    if text in GOALS:
        return GOALS[text]
    word, _, objective = text.partition(":")
    if word == "capacity":
        return f"the capacity at {objective}"
    percentile, _, rate = text.partition("@")
    return f"the {percentile} at {rate} operations/s"


def ratio(interval: dict[str, Any] | None) -> str:
    """A ratio with how sure it is."""
    return "–" if interval is None else f"{words.times(interval['value'])} ({sure(interval)})"
