"""How instances do, and what the lab could start here."""

from typing import NotRequired, TypedDict

from sensorbench.lab import isolation
from sensorbench.lab.instance import Instance, Node
from sensorbench.lab.lab import url_of
from sensorbench.lab.registry import LAB_SERVERS
from sensorbench.lab.software import Source


class NodeStatus(TypedDict):
    """How a node does; of one that runs its process and those below it, with what the server says itself if it was asked."""

    number: int
    address: str
    runs: bool
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
    nodes = [_shown(node, statuses.get(node.number)) for node in instance.nodes]
    runs = sum(node["runs"] for node in nodes)
    found: InstanceStatus = {
        "name": instance.name,
        "database": instance.database,
        "version": instance.version,
        "state": instance.state if runs == len(nodes) else f"{runs} of {len(nodes)} nodes run",
        "url": url_of(instance),
        "log": str(instance.log),
        "stays": instance.stays,
        "settings": instance.shown_settings,
        "limits": instance.limits.model_dump(),
        "nodes": nodes,
    }
    if instance.coordinator:
        found["coordinator"] = _shown(instance.coordinator, None)
    return found


def _shown(node: Node, statuses: dict[str, str] | None) -> NodeStatus:
    process = node.find()
    shown: NodeStatus = {"number": node.number, "address": f"{node.host}:{node.port}", "runs": process is not None}
    if statuses is not None:
        shown["server"] = statuses
    if process is not None:
        family = [process, *process.children(recursive=True)]
        shown["pid"] = process.pid
        shown["memory_bytes"] = sum(item.memory_info().rss for item in family)
        shown["cpu_s"] = sum(sum(item.cpu_times()[:2]) for item in family)
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
