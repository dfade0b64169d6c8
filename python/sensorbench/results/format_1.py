"""Results of format 1 in the words of format 2: manifests, in which each kind had keys of its own beside those of all, and tables."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from sensorbench.results.manifest import BaseManifest, Process, now

# What a study of several datasets or parts had in the place of a manifest.
SERIES_FILE = "series.json"
# The keys that all kinds have. All others of format 1 are part of the plan.
_SHARED = ("id", "title", "reason", "process", "created", "finished", "version", "command", "environment")
_STATUS = {"incomplete": "out of space"}
# Keys that have another name now, by where they are: `*` is any key, or any entry of a list. What users named may be called like one of them.
_RENAMED: dict[tuple[str, ...], dict[str, str]] = {
    (): {"whole": "totals"},
    ("whole", "phases", "*"): {"unstarted": "dropped"},
    ("whole", "phases", "*", "operations", "*"): {"wait_ns": "schedule_lag_ns"},
    ("plan",): {"in_flight": "concurrency"},
    ("setting",): {"in_flight": "concurrency"},
    ("settings", "*"): {"in_flight": "concurrency"},
    ("operations", "*"): {"variant": "instance", "variant_of": "instance_of"},
    ("search",): {"least_per_s": "min_per_s", "most_per_s": "max_per_s"},
    ("systems", "*"): {"own_means": "native_job"},
    ("workload", "schedule"): {"in_flight": "concurrency"},
    ("workload",): {
        "in_flight": "concurrency",
        "most_s": "max_s",
        "cores_a_worker": "cores_per_worker",
        "memory_a_worker": "memory_per_worker",
        "articles_a_part": "articles_per_part",
    },
}

# Columns of tables.
_COLUMNS = {"scheduled_ns": "intended_start_ns"}


def kind_in(content: dict[str, Any]) -> Any:
    """The kind of a manifest of either format."""
    kind = content["kind"]
    return "comparison" if kind in ("experiment", "study") else kind


def of_format_2(content: dict[str, Any]) -> dict[str, Any]:
    """A manifest of format 1 as one of format 2. What is missing there is missing here."""
    content = _renamed(content, ())
    own = {key: value for key, value in content.items() if key not in ("format", "kind", "state", "setting", "settings")}
    variants = content["settings"] if "settings" in content else [content[key] for key in ("setting",) if key in content]
    status = content.get("state", "running")
    head = {"format": 2, "kind": kind_in(content), "status": _STATUS.get(status, status)}
    if content["kind"] == "run":
        return {**own, **head, **({"variant": variants[0]} if variants else {})}
    plan = {key: value for key, value in own.items() if key not in _SHARED}
    if head["kind"] == "comparison":
        plan["source"] = content["kind"]
    return {**{key: own[key] for key in _SHARED if key in own}, **head, "variants": variants, "plan": plan}


def series_of_format_2(series: dict[str, Any], begun: Sequence[BaseManifest[Any]]) -> dict[str, Any]:
    """A series of format 1 as a manifest of format 2. It knew its parts alone: what all kinds say is that of its parts that were `begun`."""
    unfinished = next((part for part in begun if part.state != "complete"), None)
    is_complete = unfinished is None and len(begun) == len(series["parts"])
    first = begun[0] if begun else None
    return {
        "format": 2,
        "kind": "series",
        "title": series["title"],
        "status": "complete" if is_complete else unfinished.state if unfinished else "interrupted",
        "reason": unfinished.reason if unfinished else None,
        "process": (first.process if first else Process(pid=0, started=0.0)).model_dump(),
        "created": (first.created if first else now()).isoformat(),
        "version": first.version if first else "",
        "command": first.command if first else [],
        "environment": first.environment if first else {},
        "variants": [],
        "plan": {"name": series["name"], "of": series.get("of", "datasets"), "parts": series["parts"]},
    }


def with_present_names(table: pa.Table) -> pa.Table:
    """A table of either format."""
    return table.rename_columns(list(map(present_name, table.column_names)))


def present_name(column: str) -> str:
    """What a column of either format is called today."""
    return _COLUMNS.get(column, column)


def _renamed(value: Any, place: tuple[str, ...]) -> Any:
    """The value at a place of a manifest, with present names."""
    if isinstance(value, dict):
        names = _names_at(place)
        return {names.get(key, key): _renamed(inner, (*place, key)) for key, inner in value.items()}
    return [_renamed(inner, (*place, "*")) for inner in value] if isinstance(value, list) else value


def _names_at(place: tuple[str, ...]) -> dict[str, str]:
    for known, names in _RENAMED.items():
        if len(known) == len(place) and all(part in ("*", key) for part, key in zip(known, place, strict=True)):
            return names
    return {}
