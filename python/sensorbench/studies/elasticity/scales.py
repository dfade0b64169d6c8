"""What the study's findings depend on, as the works measured it: never what was meant to be there."""

from collections.abc import Sequence
from typing import NamedTuple

from sensorbench.benchmarks.elasticity import keeps_memory
from sensorbench.results.summary.elasticity import DataMoves, ElasticitySummary, Transition


class Scale(NamedTuple):
    """A value of `claims.SCALES`, and what it was computed of, in words."""

    value: float
    arithmetic: str = ""


def scales_of(summary: ElasticitySummary, growing: Sequence[Transition], stable: Transition | None) -> dict[str, Scale]:
    """What one work says of each.

    Args:
        summary: of the work.
        growing: its transitions to more nodes that claims are about.
        stable: its largest cluster to which nothing is done.

    """
    transitions = summary.result.transitions
    found = {
        "requests_per_set": Scale(float(min((transition.requests_per_set for transition in transitions), default=0))),
        "nodes": Scale(float(stable.nodes if stable else min((transition.nodes for transition in transitions), default=0))),
    }
    before = [transition.data for transition in growing or transitions if transition.data is not None]
    parts = [of.parts.before for data in before for of in data.nodes.values() if of.parts.before is not None]
    if parts:
        found |= dict.fromkeys(("regions_per_server", "token_ranges_per_node"), Scale(min(parts)))
    if (bytes_over_memory := _bytes_over_memory(summary, before)) is not None:
        found["bytes_per_node_over_memory"] = bytes_over_memory
    return found


def _bytes_over_memory(summary: ElasticitySummary, before: Sequence[DataMoves]) -> Scale | None:
    """Of the node that holds least, over what its memory has for data: what it takes without any does not hold them. Nodes of the lab whose
    memory nothing limits share that of the machine, also where a limit was asked for and could not be kept; of a user's cluster the memory is as
    the user says.
    """
    held = [_bytes_of_nodes(data) for data in before]
    per_node = held if held and all(held) else _loaded(summary)
    if not per_node:
        return None
    memory, machine = summary.result.workload.node_memory_bytes, summary.environment.get("memory_bytes")
    if memory and keeps_memory(summary.environment):
        smallest, idle = min(min(of_nodes) for of_nodes in per_node), summary.result.workload.node_idle_bytes or 0
        has = f"{_size(memory)} of memory"
        if 0 < idle < memory:
            has = f"{_size(memory - idle)} for data of {_size(memory)} of memory"
            memory -= idle
        return Scale(smallest / memory, f"{_size(smallest)} on the node with the least data, which has {has}")
    (variant,) = summary.variants
    if not machine or "://" in variant.url:
        return None
    total = min(sum(of_nodes) for of_nodes in per_node)
    return Scale(total / machine, f"{_size(total)} on nodes that share {_size(machine)} of memory")


def _bytes_of_nodes(data: DataMoves) -> list[float]:
    """What each node held before a change; nothing if one does not report it."""
    held = [of.bytes.before for node, of in data.nodes.items() if node not in data.joined]
    return [size for size in held if size is not None] if None not in held else []


def _loaded(summary: ElasticitySummary) -> list[list[float]]:
    """What each node holds if the data that were loaded lie on all of them alike."""
    load, transitions = summary.result.load, summary.result.transitions
    stored = load["size"]["total_bytes"] if load else None
    if stored is None or not transitions:
        return []
    nodes = transitions[0].nodes
    return [[stored * summary.result.workload.copies / nodes] * nodes]


def _size(size: float) -> str:
    return f"{size / 1e9:,.2f} GB" if size >= 1e9 else f"{size / 1e6:,.1f} MB"
