"""How instances do, and what the lab could start here."""

from typing import NotRequired, TypedDict

from sensorbench.errors import LostHostError
from sensorbench.lab import isolation
from sensorbench.lab.at_node import node_usage
from sensorbench.lab.instance import Instance, Node
from sensorbench.lab.lab import url_of
from sensorbench.lab.placement import host_of
from sensorbench.lab.registry import LAB_SERVERS
from sensorbench.lab.software import Source


class NodeStatus(TypedDict):
    """How a node does; of one that runs its process and those below it, with what the server says itself if it was asked. Of one on a host that is
    gone it is not known whether it runs: `runs` is None, and `unknown` says why.
    """

    number: int
    address: str
    host: NotRequired[str]
    runs: bool | None
    unknown: NotRequired[str]
    server: NotRequired[dict[str, str]]
    pid: NotRequired[int]
    memory_bytes: NotRequired[int]
    cpu_s: NotRequired[float]


class InstanceStatus(TypedDict):
    """How an instance does."""

    name: str
    database: str
    version: str
    state: str
    url: str
    log: str
    stays: bool
    settings: dict[str, str]
    limits: dict[str, object]
    coordinator: NotRequired[NodeStatus]
    nodes: list[NodeStatus]


def status(instance: Instance, *, ask_servers: bool = False) -> InstanceStatus:
    """How an instance does: each node's process, memory and CPU time, and what the servers say themselves if they are asked."""
    database = LAB_SERVERS[instance.database]
    statuses = database.node_status(instance, database.user()) if ask_servers else {}
    nodes = [_shown(instance, node, statuses.get(node.number)) for node in instance.nodes]
    found: InstanceStatus = {
        "name": instance.name,
        "database": instance.database,
        "version": instance.version,
        "state": _state(instance, nodes),
        "url": url_of(instance),
        "log": instance.shown_log,
        "stays": instance.stays,
        "settings": instance.shown_settings,
        "limits": instance.limits.model_dump(),
        "nodes": nodes,
    }
    if instance.coordinator:
        found["coordinator"] = _shown(instance, instance.coordinator, None)
    return found


def _state(instance: Instance, nodes: list[NodeStatus]) -> str:
    """The state, or how many nodes are running, and of how many that is not known."""
    running = sum(node["runs"] is True for node in nodes)
    unknown = sum(node["runs"] is None for node in nodes)
    if running == len(nodes) or instance.state == "being removed":
        return instance.state
    return f"{running} of {len(nodes)} nodes are running{f', {unknown} unknown' if unknown else ''}"


def _shown(instance: Instance, node: Node, statuses: dict[str, str] | None) -> NodeStatus:
    shown: NodeStatus = {"number": node.number, "address": f"{node.host}:{node.port}", "runs": None}
    if node.placed_on:
        shown["host"] = node.placed_on
    if statuses is not None:
        shown["server"] = statuses
    try:
        used = host_of(instance, node).call(node_usage, node.process)
    except LostHostError as error:
        shown["unknown"] = str(error)
        return shown
    shown["runs"] = used is not None
    if used is not None:
        shown["pid"] = used.pid
        shown["memory_bytes"] = used.memory_bytes
        shown["cpu_s"] = used.cpu_s
    return shown


class StartableVersion(TypedDict):
    """A version of a server: whether it is in the cache, else what is missing to get it, if anything is."""

    version: str
    here: bool
    missing: str | None


class StartableDatabase(TypedDict):
    """A kind of database that the lab starts."""

    database: str
    summary: str
    versions: list[StartableVersion]


def databases() -> list[StartableDatabase]:
    """Of each kind of database: its versions, and of each whether it can start here."""
    return [
        {
            "database": database.name,
            "summary": database.summary,
            "versions": [
                {"version": source.version, "here": source.is_there and refused is None, "missing": _missing(source, refused)}
                for source in database.sources
            ],
        }
        for database in LAB_SERVERS.values()
        for refused in [isolation.missing() if database.is_isolated else None]
    ]


def _missing(source: Source, refused: str | None) -> str | None:
    return refused or (None if source.is_there else source.missing())
