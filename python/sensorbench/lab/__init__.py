"""Real servers on this machine: started, watched and ended by their own record."""

from sensorbench.lab.database import Snapshot
from sensorbench.lab.insight import insight, node_prefix
from sensorbench.lab.instance import Instance, Node, find_instance, read_instances
from sensorbench.lab.lab import (
    ServerSpec,
    add_node,
    add_nodes,
    at_once_costs,
    borrowed,
    down,
    down_all,
    empty_caches,
    foreign,
    instance_at,
    knows_is_down,
    process_name,
    remove_node,
    restart,
    server_processes,
    sizes,
    snapshot,
    start_node,
    stop_node,
    sweep,
    unknown_settings,
    up,
    url_of,
    used_as,
)
from sensorbench.lab.limits import parse_cpus, parse_memory
from sensorbench.lab.load_tools import LoadFile, LoadTool
from sensorbench.lab.loading import ToolProgress, load_tools, require_tool, run_load_tool
from sensorbench.lab.overview import databases, status
from sensorbench.lab.registry import LAB_DATABASES, clusters
from sensorbench.lab.state_dirs import instances_folder

__all__ = [
    "LAB_DATABASES",
    "Instance",
    "LoadFile",
    "LoadTool",
    "Node",
    "ServerSpec",
    "Snapshot",
    "ToolProgress",
    "add_node",
    "add_nodes",
    "at_once_costs",
    "borrowed",
    "clusters",
    "databases",
    "down",
    "down_all",
    "empty_caches",
    "find_instance",
    "foreign",
    "insight",
    "instance_at",
    "instances_folder",
    "knows_is_down",
    "load_tools",
    "node_prefix",
    "parse_cpus",
    "parse_memory",
    "process_name",
    "read_instances",
    "remove_node",
    "require_tool",
    "restart",
    "run_load_tool",
    "server_processes",
    "sizes",
    "snapshot",
    "start_node",
    "status",
    "stop_node",
    "sweep",
    "unknown_settings",
    "up",
    "url_of",
    "used_as",
]
