"""Sizes and lengths of time in settings, in proportion to the data and to the time that a rate is held.

A cache that holds a fiftieth of the keys of 50 million records holds all of those of 50 thousand: hit rates would say nothing. So sizes
shrink with the data, as far as the server takes them; then all levels of a setting by the same factor, so that they stay as far apart.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sensorbench.benchmarks.factors.file import FactorsFile
from sensorbench.runner import seconds

# A length of time that switches something off.
NEVER = "0s"
_SIZE = re.compile(r"(?P<number>\d+)(?P<unit>MiB|M)")


@dataclass(frozen=True)
class Scaled:
    """By which factor the data, lengths of time, and each setting that is a size are multiplied; and which settings are lengths of time."""

    data: float
    time: float
    sizes: Mapping[str, float]
    lengths: Sequence[str]

    def configuration(self, wanted: Mapping[str, str]) -> dict[str, str]:
        """A configuration of scale 1 at this scale, as it stands in the server's own file."""
        return {setting: self._written(setting, value) for setting, value in wanted.items()}

    def _written(self, setting: str, value: str) -> str:
        if setting in self.lengths:
            return value if value == NEVER or self.time == 1.0 else f"{max(1, round(seconds(value) * self.time))}s"
        size = _SIZE.fullmatch(value)
        if setting not in self.sizes or size is None:
            return value
        return f"{max(1, round(int(size['number']) * self.sizes[setting]))}{size['unit']}"


def scaled(file: FactorsFile, scale: float, step_s: float) -> Scaled:
    """How the settings of a file are at a scale, where a rate is held for `step_s`."""
    default = file.default
    sizes = {setting: max(scale, _number(floor) / _number(default[setting])) for setting, floor in file.scaling.with_data.items()}
    return Scaled(scale, step_s / seconds(file.source_step), sizes, file.scaling.with_time)


def _number(size: str) -> int:
    found = _SIZE.fullmatch(size)
    if found is None:
        raise AssertionError(f"{size}: a size that is scaled has a number and MiB or M")
    return int(found["number"])
