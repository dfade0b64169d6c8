"""What variants are ranked within: consistency levels, and durability classes. Those of different ones are shown side by side, without a winner."""

from collections.abc import Iterable, Mapping

from sensorbench.analysis.promises import levels_of, replicas_of
from sensorbench.results import ComparisonResult, VariantManifest
from sensorbench.results.durability import durability_of
from sensorbench.results.summary.envelope import Caveat

_NOT_KNOWN = "durability not known"
_DURABLE = {
    "memory": "acknowledged in the server's memory",
    "cache": "acknowledged in the operating system's cache",
    "disk": "acknowledged on disk",
}


def consistency_levels(result: ComparisonResult, operations: Iterable[str]) -> dict[str, str]:
    """The consistency level at which each variant executes operations, in words; empty if all variants have the same.

    Args:
        result: a comparison.
        operations: those whose levels count.

    """
    names = list(operations)
    levels = {variant.id: _level(variant, _settings(result, variant.id), names, result) for variant in result.manifest.variants}
    return levels if len(set(levels.values())) > 1 else {}


def durability_classes(result: ComparisonResult) -> dict[str, str]:
    """Where the writes of each variant are when they are acknowledged, in words; empty if that is the same for all variants."""
    found = {}
    for variant, load in result.loads.items():
        known = durability_of(load.description.database, load.description.settings)
        found[variant] = _DURABLE[known] if known else _NOT_KNOWN
    return found if len(set(found.values())) > 1 else {}


def class_caveats(levels: Mapping[str, str], durabilities: Mapping[str, str]) -> list[Caveat]:
    """What readers must know of variants that are not ranked against one another."""
    found = []
    if levels:
        named = "; ".join(dict.fromkeys(level or "a database without levels" for level in levels.values()))
        text = f"Variants are of different consistency levels ({named}). Each is ranked within its own."
        found.append(Caveat(kind="consistency", text=text, action="Give them the same levels to have one ranking."))
    if durabilities:
        named = "; ".join(dict.fromkeys(durabilities.values()))
        text = f"Writes of the variants are not equally durable ({named}). At operations that write, each is ranked within its own class."
        action = "Set the servers to the same durability to have one ranking."
        found.append(Caveat(kind="durability", text=text, action=action))
    return found


def _settings(result: ComparisonResult, variant: str) -> Mapping[str, str]:
    load = result.loads.get(variant)
    return load.description.settings if load else {}


def _level(variant: VariantManifest, settings: Mapping[str, str], operations: list[str], result: ComparisonResult) -> str:
    """Replicas that answer reads and acknowledge writes; empty for a database without levels, and for one copy."""
    of_target = levels_of(settings)
    if of_target is None:
        return ""
    replication = int(settings["replication"])
    if replication == 1:
        # Of one copy all levels are the same, and the same as of a database that has one copy and no levels.
        return ""
    kinds: dict[str, set[str]] = {}
    for name in operations:
        kind, words = (
            ("write", "acknowledge a write") if result.manifest.plan.operations[name].writes else ("read", "answer a read")
        )
        own = None if f"{kind}_consistency" in settings else variant.statements.get(name, {}).get("consistency")
        level = own or of_target[kind == "write"]
        kinds.setdefault(words, set()).add(_replicas(level, replication))
    return ", ".join(f"{' or '.join(sorted(levels))} of {replication} {words}" for words, levels in sorted(kinds.items()))


def _replicas(level: str, replication: int) -> str:
    """How many replicas a level is, so that `quorum` and `all` of one copy are the same; the level itself where that is not a number."""
    try:
        return str(replicas_of(level, replication))
    except ValueError:
        return level
