"""The pictures of the sections that a study has to itself."""

from collections.abc import Sequence
from typing import Any

from sensorbench.report.effects import effects
from sensorbench.report.fronts import front, on_axes
from sensorbench.results.summary.comparison import StudySection


def pictures(sections: Sequence[StudySection]) -> dict[str, dict[str, Any]]:
    """The charts by name: of the first section, front-1 and effects-1."""
    drawn = {}
    for number, section in enumerate(sections, 1):
        points = on_axes(section.front["points"]) if section.front else []
        if section.front and points:
            drawn[f"front-{number}"] = front({**section.front, "points": points})
        if section.effects:
            drawn[f"effects-{number}"] = effects(section.effects)
    return drawn
