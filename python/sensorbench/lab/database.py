"""What the lab must know of a kind of database: where it comes from, how it is set up, started, asked whether it is ready."""

import signal
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sensorbench.lab.homes import ServerUser
from sensorbench.lab.instance import Instance, Node
from sensorbench.lab.software import Source


@dataclass(frozen=True)
class Place:
    """A node that is to be started, and everything that is needed for it."""

    instance: Instance
    node: Node
    software: Path
    user: ServerUser

    @property
    def folder(self) -> Path:
        """The node's folder, which belongs to the servers' user."""
        return self.instance.node_folder(self.node)

    @property
    def data(self) -> Path:
        """Where the server keeps its data."""
        return self.folder / "data"

    def write_secret(self, name: str, text: str) -> Path:
        """A file that only the servers' user can read."""
        file = self.folder / name
        file.touch(mode=0o600)
        file.write_text(text, encoding="utf-8")
        self.user.owns(file)
        return file


class LabDatabase(ABC):
    """A kind of database that the lab can start."""

    name: str
    summary: str
    port: int
    sources: tuple[Source, ...]
    # The least number of nodes, which is also the usual one; more than one for clusters.
    nodes: int = 1
    stop_signal: int = signal.SIGTERM
    ready_within_s: float = 60.0

    def source(self, version: str | None) -> Source | None:
        """Where a version comes from: the one that is asked for, else the first that can be had; None for an unknown one."""
        if version is not None:
            return next((source for source in self.sources if source.version == version), None)
        return next((source for source in self.sources if source.is_there or not source.missing()), self.sources[0])

    @abstractmethod
    def unknown_settings(self, software: Path, user: ServerUser, settings: Mapping[str, str]) -> dict[str, str]:
        """Settings that this version does not know, each with what it says about them."""

    @abstractmethod
    def set_up(self, place: Place) -> None:
        """Makes the data folder. Raises FailedError."""

    @abstractmethod
    def command(self, place: Place) -> list[str | Path]:
        """How a node is started."""

    def environment(self, software: Path) -> dict[str, str]:
        """Variables that the server's programs need."""
        return {}

    @abstractmethod
    def url(self, instance: Instance) -> str:
        """The target's URL, without secrets: it names the file of credentials."""


class LabCluster(LabDatabase):
    """A kind of database whose nodes work together."""

    @abstractmethod
    def join(self, instance: Instance, software: Path, user: ServerUser) -> None:
        """Makes one cluster of the first nodes, which all run."""

    @abstractmethod
    def add_node(self, instance: Instance, node: Node, software: Path, user: ServerUser) -> None:
        """Makes a started node part of the cluster."""

    @abstractmethod
    def remove_node(self, instance: Instance, node: Node, software: Path, user: ServerUser) -> None:
        """Takes a node out of the cluster, before it is ended."""


def with_credentials(scheme: str, instance: Instance, hosts: str, path: str = "") -> str:
    """A URL that names the file of credentials."""
    return f"{scheme}://{hosts}{path}?credentials={instance.credentials}"
