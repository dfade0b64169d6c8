"""Real servers on this machine: started, watched and ended by their own record."""

from sensorbench.lab.insight import insight, node_prefix
from sensorbench.lab.instance import Instance, Node, find_instance, read_instances
from sensorbench.lab.lab import (
    Wish,
    add_node,
    borrowed,
    databases,
    down,
    down_all,
    empty_caches,
    instance_at,
    process_name,
    remove_node,
    restart,
    server_processes,
    start_node,
    status,
    stop_node,
    sweep,
    unknown_settings,
    up,
    url_of,
)
from sensorbench.lab.limits import parse_cpus, parse_memory
from sensorbench.lab.registry import LAB_DATABASES, clusters

__all__ = [
    "LAB_DATABASES",
    "Instance",
    "Node",
    "Wish",
    "add_node",
    "borrowed",
    "clusters",
    "databases",
    "down",
    "down_all",
    "empty_caches",
    "find_instance",
    "insight",
    "instance_at",
    "node_prefix",
    "parse_cpus",
    "parse_memory",
    "process_name",
    "read_instances",
    "remove_node",
    "restart",
    "server_processes",
    "start_node",
    "status",
    "stop_node",
    "sweep",
    "unknown_settings",
    "up",
    "url_of",
]
