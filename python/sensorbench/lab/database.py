"""What the lab must know of a kind of database: where it comes from, how it is set up, started, asked whether it is ready."""

import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from sensorbench._engine import Target
from sensorbench.errors import EngineError, FailedError
from sensorbench.lab.instance import Instance, Node
from sensorbench.lab.load_tools import LoadTool
from sensorbench.lab.processes import last_lines
from sensorbench.lab.software import Source
from sensorbench.lab.state_dirs import ServerUser, server_user


@dataclass(frozen=True)
class Place:
    """A node that is to be started, and everything that is needed for it."""

    instance: Instance
    node: Node
    software: Path
    user: ServerUser
    # The nodes that join a cluster at the same time, this one among them; none where it is started with its cluster, or again.
    joining: tuple[Node, ...] = ()

    @property
    def joins_with_others(self) -> bool:
        """Whether other nodes join at the same time."""
        return len(self.joining) > 1

    @property
    def folder(self) -> Path:
        """The node's folder, which belongs to the servers' user."""
        return self.instance.node_folder(self.node)

    @property
    def data(self) -> Path:
        """Where the server keeps its data."""
        return self.instance.data_folder(self.node)

    def write_secret(self, name: str, text: str) -> Path:
        """A file that only the servers' user can read."""
        file = self.folder / name
        file.touch(mode=0o600)
        file.write_text(text, encoding="utf-8")
        self.user.owns(file)
        return file


@dataclass(frozen=True)
class KeptFiles:
    """What of a node's data folder others start with: these folders in it. Files whose names end so are never written again once they are
    there, so that nodes can share them; all others are copied.
    """

    folders: tuple[str, ...]
    immutable: tuple[str, ...]


@dataclass(frozen=True)
class Snapshot:
    """Everything that a server holds in memory, written to disk by its own command: bytes of the file, and how long it took (s)."""

    total_bytes: int
    took_s: float


class LabDatabase(ABC):
    """A kind of database that the lab can start."""

    name: str
    summary: str
    port: int
    # What else a node listens on; these ports are always the same.
    other_ports: tuple[int, ...] = ()
    sources: tuple[Source, ...]
    # What the server says of its version, where the first source does not name it.
    server_version: str = ""
    # The least number of nodes, which is also the usual one; more than one for clusters.
    nodes: int = 1
    # Whether each of these nodes may be given replicas of its own.
    has_replicas: bool = False
    # By which option of commands an instance is used: as a target, or otherwise.
    used_as: str = "--target"
    # The port of a process that the nodes need beside them, which is started first and keeps running when they are restarted.
    coordinator_port: int | None = None
    # Options of a target's URL that need something that only a started server brings, with their values: the driver checks them when it is up.
    options_of_its_own: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    # Its own tools for loading, which options of targets name by load=.
    load_tools: tuple[LoadTool, ...] = ()
    # How nodes start with the data of others; None if that is not known.
    kept_files: KeptFiles | None = None
    # Whether its nodes may be on hosts: they need no file of another node, and no process beside them.
    runs_on_hosts: bool = False
    # Whether its servers run in a network namespace of their own, because they listen on every address.
    is_isolated: bool = False
    stop_signal: int = signal.SIGTERM
    ready_within_s: float = 180.0

    def source(self, version: str | None) -> Source | None:
        """Where a version comes from: the one that is asked for, else the first that can be had; None for an unknown one."""
        if version is not None:
            return next((source for source in self.sources if source.version == version), None)
        return next((source for source in self.sources if source.is_there or not source.missing()), self.sources[0])

    @abstractmethod
    def unknown_settings(self, software: Path, user: ServerUser, settings: Mapping[str, str]) -> dict[str, str]:
        """Settings that this version does not know, each with what it says about them."""

    # How `memory_settings` divides the memory, in words, and who advises that.
    memory_rule: str = "nothing to set: it keeps no data in memory of its own, and the system's cache has what is left"

    def memory_settings(self, memory_bytes: int) -> dict[str, str]:
        """How a node is set that may use this much memory in all.

        Args:
            memory_bytes: of one node, for its heap, its caches and the system's cache of its files.

        Returns:
            Settings as `unknown_settings` knows them; none where there is nothing to set.

        """
        return {}

    def min_memory(self, settings: Mapping[str, str]) -> int | None:
        """Bytes that the processes of a node take with these settings, apart from data and the system's cache of them; None if it is not known."""
        del settings
        return None

    def user(self) -> ServerUser:
        """As whom its processes run."""
        return server_user()

    def make_credentials(self, instance: Instance) -> None:
        """Makes the file with user and password that servers and drivers read."""
        instance.password()

    def write_tools(self, instance: Instance, software: Path) -> None:
        """Writes programs by which its nodes are asked and loaded from this machine, wherever they are."""
        del instance, software

    @abstractmethod
    def set_up(self, place: Place) -> None:
        """Makes the data folder. Raises FailedError."""

    @abstractmethod
    def command(self, place: Place) -> list[str | Path]:
        """How a node is started, for the first time or again."""

    def environment(self, software: Path) -> dict[str, str]:
        """Variables that the server's programs need."""
        return {}

    def environment_of(self, place: Place) -> dict[str, str]:
        """Variables that a node needs."""
        return self.environment(place.software)

    @abstractmethod
    def url(self, instance: Instance) -> str:
        """The target's URL, without secrets: it names the file of credentials."""

    def node_url(self, instance: Instance, node: Node) -> str:
        """The URL of one node alone, as one asks it whether it is ready."""
        return self.url(instance.model_copy(update={"nodes": [node]}))

    def readiness(self, instance: Instance, node: Node) -> Callable[[], str]:
        """What is asked while a node starts: why it does not answer yet as a target does; empty when it does."""
        target = Target(self.node_url(instance, node))

        def problem() -> str:
            try:
                target.describe()
            except EngineError as error:
                return str(error)
            return ""

        return problem

    def lets_others_start(self, instance: Instance, node: Node) -> bool:
        """Whether the nodes after this one may be started."""
        return True

    def log_tail(self, log: Path) -> str:
        """What a server that ended, or does not answer, said last in its log."""
        return last_lines(log)

    def progress(self, instance: Instance, node: Node, user: ServerUser) -> str:
        """How far a node is that is being added, in words; empty when it does not say."""
        return ""

    def insight(self, instance: Instance, node: Node) -> Mapping[str, float]:
        """Counters and gauges of a node that it does not report to clients, by names of its own; none of one that does not answer."""
        return {}

    def empty_caches(self, instance: Instance, node: Node, user: ServerUser) -> None:
        """Empties the caches of a node while it runs. Raises FailedError if a server cannot do that."""
        raise FailedError(f"{self.name} cannot empty its caches while it runs")

    def write_all(self, instance: Instance, node: Node, user: ServerUser) -> None:
        """Has a node write to its data files all that it has in memory or in a log, before it ends and others start with them."""
        raise FailedError(f"{self.name}: nodes cannot start with the data of others")

    def snapshot(self, instance: Instance, node: Node, software: Path, user: ServerUser) -> Snapshot | None:
        """Has a node write its data to disk, for what that takes; the file goes again. None of a server that has no such command."""
        return None

    def start_query_log(self, instance: Instance, node: Node, user: ServerUser) -> Path:
        """Has a node log all queries into a folder, which is returned. Raises FailedError if a server cannot do that."""
        raise FailedError(f"{self.name} has no log of queries that the lab can read")

    def stop_query_log(self, instance: Instance, node: Node, user: ServerUser) -> None:
        """Switches the log off again. Raises FailedError."""
        raise FailedError(f"{self.name} has no log of queries that the lab can read")

    def read_query_log(self, software: Path, folder: Path) -> Iterator[bytes]:
        """The records of such a log, each a line of JSON. Raises FailedError."""
        raise FailedError(f"{folder}: {self.name} has no log of queries that the lab can read")

    def node_status(self, instance: Instance, user: ServerUser) -> dict[int, dict[str, str]]:
        """What the server says itself of each node, by number; empty when it says nothing."""
        return {}


class LabCluster(LabDatabase):
    """A kind of database whose nodes work together."""

    # What it costs when nodes join all at once instead of one after the other.
    at_once_costs: str

    @abstractmethod
    def join(self, instance: Instance, software: Path, user: ServerUser) -> None:
        """Makes one cluster of the first nodes, which all run."""

    @abstractmethod
    def add_nodes(self, instance: Instance, nodes: Sequence[Node], software: Path, user: ServerUser) -> None:
        """Makes started nodes part of the cluster."""

    @abstractmethod
    def remove_node(self, instance: Instance, node: Node, software: Path, user: ServerUser) -> None:
        """Takes a node out of the cluster, before it is ended."""

    def knows_is_down(self, instance: Instance, node: Node, software: Path, user: ServerUser) -> bool:
        """Whether the other nodes have noticed that a node does not answer; False where they do not report it."""
        return False

    def balance(self, instance: Instance) -> None:
        """Has all nodes take equal shares of the data; nothing if they always do. Raises FailedError."""

    def drop_moved(self, instance: Instance, user: ServerUser) -> None:
        """Has all nodes delete what they still hold of data that have moved to others; nothing if they always do. Raises FailedError."""

    def rejoin(self, instance: Instance, software: Path, user: ServerUser) -> None:
        """Waits until all that run know of each other, after a node was started again."""


def with_credentials(scheme: str, instance: Instance, hosts: str, path: str = "") -> str:
    """A URL that names the file of credentials."""
    return f"{scheme}://{hosts}{path}?credentials={instance.credentials}"
