"""What the lab knows of its servers while they work, beyond what they report to a client."""

from sensorbench.lab import at_node
from sensorbench.lab.instance import Instance, Node
from sensorbench.lab.placement import host_of


def node_prefix(instance: Instance, node: Node) -> str:
    """What the names of a node's figures begin with: its address where there are several, as they do in `Target.status`."""
    return f"{node.host}." if len(instance.all_processes) > 1 else ""


def insight(instance: Instance, node: Node) -> dict[str, float]:
    """Counters and gauges of a node, or of the coordinator, as its machine reports them (`at_node.insight`); nothing of one that is down. Raises
    LostHostError where its host is gone.
    """
    return host_of(instance, node).call(at_node.insight, instance.part_on(node.placed_on), node.number)
