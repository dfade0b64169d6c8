"""The study's own draft: of each part that offers one, the level that is significantly better than the default.

The objective: the response time within which 99% of all arrivals succeeded (s), at the highest rate of the part's
first load. A level is better when the interval of its ratio to the default, round by round, lies below 1. Settings of different parts
are put together as if they did not depend on one another; whether they do, the drafts without one setting each show.
"""

from dataclasses import dataclass

from sensorbench.analysis.intervals import Interval
from sensorbench.benchmarks.factors.file import FactorsFile
from sensorbench.benchmarks.factors.levels import measurements_of, ratio
from sensorbench.results.factors import LAST, FactorsResult

OBJECTIVE = "p99_of_offered_s"
# The level of the draft's part that the study makes itself.
OWN = "own draft"


@dataclass(frozen=True)
class Choice:
    """A level of a part that was better than the default, and its ratio to it."""

    part: str
    level: str
    ratio: Interval


@dataclass(frozen=True)
class BestDraft:
    """What the study chose, and the settings that differ from the default for it, at scale 1."""

    choices: list[Choice]
    changed: dict[str, str]


def best_draft(file: FactorsFile, result: FactorsResult) -> BestDraft:
    """The draft that follows from what was measured."""
    found = [
        _best(file, result, name) for name, part in file.parts.items() if part.chooses and name in result.manifest.plan.parts
    ]
    choices = [choice for choice in found if choice is not None]
    changed = {key: value for choice in choices for key, value in file.parts[choice.part].level(choice.level).set.items()}
    return BestDraft(choices, {key: value for key, value in changed.items() if file.default.get(key) != value})


def _best(file: FactorsFile, result: FactorsResult, part: str) -> Choice | None:
    default = file.default_level(part)
    if default is None:
        return None
    load = file.parts[part].loads[0]
    base = measurements_of(result, load, (part, default.name))
    known = [
        Choice(part, level.name, found)
        for level in file.parts[part].levels
        if level is not default
        and (found := ratio(measurements_of(result, load, (part, level.name)), base, LAST, OBJECTIVE)) is not None
    ]
    better = [choice for choice in known if choice.ratio.high is not None and choice.ratio.high < 1.0]
    return min(better, key=lambda choice: choice.ratio.value, default=None)
