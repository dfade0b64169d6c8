"""Manifests of format 1, in which each kind had keys of its own beside those of all, in the words of format 2."""

from typing import Any

# The keys that all kinds have. All others of format 1 are part of the plan.
_SHARED = ("id", "title", "reason", "process", "created", "finished", "version", "command", "environment")
_STATUS = {"incomplete": "out of space"}
# Keys within the plan that have another name now, by where they are.
_RENAMED = {
    "search": {"least_per_s": "min_per_s", "most_per_s": "max_per_s"},
    "systems": {"own_means": "native_job"},
    "workload": {
        "most_s": "max_s",
        "cores_a_worker": "cores_per_worker",
        "memory_a_worker": "memory_per_worker",
        "articles_a_part": "articles_per_part",
    },
}


def kind_in(content: dict[str, Any]) -> Any:
    """The kind of a manifest of either format."""
    kind = content["kind"]
    return "comparison" if kind in ("experiment", "study") else kind


def of_format_2(content: dict[str, Any]) -> dict[str, Any]:
    """A manifest of format 1 as one of format 2. What is missing there is missing here."""
    own = {key: value for key, value in content.items() if key not in ("format", "kind", "state", "setting", "settings")}
    variants = content["settings"] if "settings" in content else [content[key] for key in ("setting",) if key in content]
    status = content.get("state", "running")
    head = {"format": 2, "kind": kind_in(content), "status": _STATUS.get(status, status)}
    if content["kind"] == "run":
        return {**own, **head, **({"variant": variants[0]} if variants else {})}
    plan = {key: _renamed(value, key) for key, value in own.items() if key not in _SHARED}
    if head["kind"] == "comparison":
        plan["source"] = content["kind"]
    return {**{key: own[key] for key in _SHARED if key in own}, **head, "variants": variants, "plan": plan}


def _renamed(value: Any, key: str) -> Any:
    names = _RENAMED.get(key, {})
    if not names or not isinstance(value, dict):
        return value
    if key == "systems":
        return {name: _with_names(system, names) for name, system in value.items()}
    return _with_names(value, names)


def _with_names(value: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    return {names.get(key, key): one for key, one in value.items()}
