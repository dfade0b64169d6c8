"""A summary against one that was computed again: figure by figure, with the name of each that differs."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from sensorbench.results.summary.envelope import Summary
from sensorbench.wording import counted

# Sums of floating-point numbers differ in their last digits by the order of their terms.
TOLERANCE = 1e-6

# What is copied of other files in summaries of kinds that are not comparisons, in the words of their keys; all else of `result` is computed.
_COPIED = (
    "result.plan",
    "result.workload",
    "result.operations",
    "result.dataset",
    "result.space",
    "result.budget",
    "result.goal",
    "result.start",
)
_COMPARED = ("comparison", "series")

# What is computed of results, in the words of the summary's keys. All else is copied from other files.
COMPUTED = (
    "answers_equal",
    "warnings",
    "claims",
    "published",
    "result.runs",
    "result.rate_changes",
    "result.figures",
    "result.rankings",
    "result.answers",
    "result.guarantees",
    "result.freshness",
    "result.retention",
    "result.client_health",
    "result.models",
    "result.sections",
    "result.growth",
    "result.parts",
    "result.blocks",
)
# Of these, what may need logs of operations.
MAY_NEED_LOGS = ("claims", "published", "result.sections", "result.models", "result.guarantees", "result.retention")
# What follows from histories of registers alone.
_OF_HISTORIES = {"guarantees", "lost_writes", "stale_reads"}
# Rankings of variants that did a prefix of the operations are of the operations that two have in common.
_NEEDS_LOGS_BY_PREFIX = "result.rankings"
_PREFIX = "prefix"
# What explains a figure or a verdict that has a key of its own, and what it is called.
_EXPLANATION = re.compile(
    r"warnings\[.*\]\.(text|action)|claims\[.*\]\.(text|sentence|form|note|reason|requires\[\d+\])|.*\.(client_bound|why|reason)"
    r"|result\.sections\[.*\]\.(title|text|columns\[.*\]\.title)|published\[.*\]\.(title|conditions)"
)
_NUMBER = re.compile(r"\d[\d,.]*")
_NAMES = (("variant", "operation"), ("id",), ("name",), ("operation",), ("variant",), ("title",), ("kind", "variant"))


@dataclass(frozen=True)
class Remeasured:
    """A file that says how a measurement came out, and the same as it follows from what was recorded; `keys` are those of its figures."""

    file: str
    stored: BaseModel
    computed: BaseModel
    keys: tuple[str, ...]

    @property
    def differences(self) -> list["Difference"]:
        """The figures that differ."""
        return list(_differences("", self._figures(self.stored), self._figures(self.computed)))

    @property
    def count(self) -> int:
        """How many figures there are."""
        return sum(value is not None for _, value in _leaves("", self._figures(self.stored)))

    def _figures(self, measurement: BaseModel) -> dict[str, Any]:
        return measurement.model_dump(mode="json", include=set(self.keys))


@dataclass(frozen=True)
class Difference:
    """A figure whose two values differ."""

    path: str
    stored: object
    computed: object

    def __str__(self) -> str:
        return f"{self.path} is {_shown(self.stored)}, but {_shown(self.computed)} follows from what was recorded"


def differences(stored: Summary[Any], computed: Summary[Any]) -> list[Difference]:
    """The figures of a summary that are not what follows from the results."""
    return list(_differences("", stored.model_dump(mode="json"), computed.model_dump(mode="json")))


def figures_of(summary: Summary[Any]) -> dict[str, object]:
    """All values of a summary by their paths, in which elements of lists have the names that distinguish them from the others."""
    return dict(_leaves("", summary.model_dump(mode="json")))


def computed_count(summary: Summary[Any], below: str = "") -> int:
    """How many figures of a summary are computed of results: all, or those whose paths begin with `below`."""
    return sum(
        path.startswith(below) and is_computed(path, summary.kind) and value is not None
        for path, value in figures_of(summary).items()
    )


def is_computed(path: str, kind: str) -> bool:
    """Whether a figure of a summary of this kind is computed of results, rather than copied."""
    if kind in _COMPARED:
        return path.startswith(COMPUTED)
    return path.startswith(("claims", "published", "warnings")) or (path.startswith("result.") and not path.startswith(_COPIED))


def may_need_logs(path: str, summary: Summary[Any]) -> bool:
    """Whether a figure may be one that does not follow where logs of operations are left out."""
    has_prefixes = any(caveat.kind == _PREFIX for caveat in summary.warnings)
    return path.startswith(MAY_NEED_LOGS) or (has_prefixes and path.startswith(_NEEDS_LOGS_BY_PREFIX))


def needs_history(difference: "Difference") -> bool:
    """Whether what clients of registers saw was not computed again."""
    return difference.computed is None and difference.path.rpartition(".")[2] in _OF_HISTORIES


def _differences(path: str, stored: Any, computed: Any) -> Iterator[Difference]:
    if isinstance(stored, dict) and isinstance(computed, dict):
        for key in dict.fromkeys([*stored, *computed]):
            yield from _differences(_below(path, key), stored.get(key), computed.get(key))
    elif isinstance(stored, list) and isinstance(computed, list) and len(stored) == len(computed):
        for number, (left, right) in enumerate(zip(stored, computed, strict=True)):
            yield from _differences(f"{path}[{_name(right, number)}]", left, right)
    elif not _are_equal(*(_without_wording(path, value) for value in (stored, computed))):
        yield Difference(path, stored, computed)


def _without_wording(path: str, value: object) -> object:
    """Of an explanation its numbers: another version may word it otherwise, and states the same."""
    return _NUMBER.findall(value) if isinstance(value, str) and _EXPLANATION.fullmatch(path) else value


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, below in value.items():
            yield from _leaves(_below(path, key), below)
    elif isinstance(value, list):
        for number, below in enumerate(value):
            yield from _leaves(f"{path}[{_name(below, number)}]", below)
    else:
        yield path, value


def _below(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _name(value: Any, number: int) -> str:
    """What distinguishes an element of a list from the others: names that it has, else its number."""
    if isinstance(value, dict):
        for keys in _NAMES:
            if all(isinstance(value.get(key), str) for key in keys):
                return " ".join(value[key] for key in keys)
    return str(number)


def _are_equal(left: object, right: object) -> bool:
    if isinstance(left, int | float) and isinstance(right, int | float) and not isinstance(left, bool):
        return math.isclose(left, right, rel_tol=TOLERANCE, abs_tol=0.0)
    return left == right


def _shown(value: object) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return counted(len(value), "entry", "entries")
    return f"{value:.6g}" if isinstance(value, float) else repr(value) if isinstance(value, str) else str(value)
