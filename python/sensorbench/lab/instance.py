"""What the lab knows of an instance: a record on disk that is written before anything is started."""

import secrets
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Literal

import psutil
from pydantic import BaseModel, ConfigDict

from sensorbench.errors import FailedError, UsageError
from sensorbench.lab.limits import Limits
from sensorbench.lab.processes import ProcessId
from sensorbench.lab.state_dirs import instances_folder

RECORD_FILE = "instance.json"
CREDENTIALS_FILE = "credentials.toml"
LOG_FILE = "server.log"
USER = "sensorbench"
COORDINATOR = 0
# What this machine is called where hosts have names.
HERE_NAME = ""


class Node(BaseModel):
    """One server process of an instance."""

    model_config = ConfigDict(extra="forbid")

    number: int
    host: str
    port: int
    process: ProcessId | None = None
    # The host that it is on; this machine if it is on none.
    placed_on: str = HERE_NAME

    @property
    def is_coordinator(self) -> bool:
        """Whether it is what the nodes need beside them."""
        return self.number == COORDINATOR

    def find(self) -> psutil.Process | None:
        """Its process, if it runs on this machine."""
        return self.process.find() if self.process else None


class Part(BaseModel):
    """What of an instance is on a host: it has a record in the lab there, whose owner is the host's process."""

    model_config = ConfigDict(extra="forbid")

    folder: Path
    owner: ProcessId
    limits: Limits


class Instance(BaseModel):
    """A server or cluster of the lab."""

    model_config = ConfigDict(extra="forbid")

    name: str
    database: str
    version: str
    created: datetime
    # Who starts it; and whether it goes with that process or stays until it is taken down.
    owner: ProcessId
    stays: bool
    # One that is kept is down for good: others start with its data. One that is being removed waits for hosts that could not be reached.
    state: Literal["starting", "running", "kept", "being removed"] = "starting"
    cluster: int
    replicas: int = 0
    nodes: list[Node]
    # The process of number 0 that the nodes need beside them, for some kinds of database.
    coordinator: Node | None = None
    settings: dict[str, str] = {}
    limits: Limits = Limits()
    server_user: str
    # The kept instance with whose data its nodes started.
    data_of: str | None = None
    # Where nodes may be, in the words of `--hosts`; and of each host with a node what is there.
    hosts: str | None = None
    parts: dict[str, Part] = {}
    # By which a host knows that what it has under this name is a part of this instance.
    identity: str = ""

    @property
    def cluster_name(self) -> str:
        """What its nodes call their cluster, which stands in their data."""
        return self.data_of or self.name

    @property
    def folder(self) -> Path:
        """Everything that belongs to it."""
        return instances_folder() / self.name

    def node_folder(self, node: Node) -> Path:
        """What belongs to one node."""
        return self.folder / f"node-{node.number}"

    def part_on(self, host: str) -> "Instance":
        """The instance as a host knows it; as it is for this machine."""
        return self.as_part(host, self.parts[host]) if host in self.parts else self

    def as_part(self, host: str, part: Part) -> "Instance":
        """The same nodes, but the processes and the limits of those alone that a host has itself."""
        nodes = [node if node.placed_on == host else node.model_copy(update={"process": None}) for node in self.nodes]
        return self.model_copy(update={"nodes": nodes, "limits": part.limits, "owner": part.owner, "parts": {}})

    def node(self, number: int) -> Node:
        """The node, or the coordinator, of this number."""
        return next(node for node in self.all_processes if node.number == number)

    @property
    def all_processes(self) -> list[Node]:
        """The coordinator, if there is one, and the nodes."""
        return [*([self.coordinator] if self.coordinator else []), *self.nodes]

    @property
    def processes_here(self) -> list[Node]:
        """Those of them that are on this machine, whose process it can look for: not what the record has of hosts."""
        return [node for node in self.all_processes if not self.parts or node.placed_on == HERE_NAME]

    def data_folder(self, node: Node) -> Path:
        """Where a node keeps its data."""
        return self.node_folder(node) / "data"

    @property
    def shown_settings(self) -> dict[str, str]:
        """The settings as they may be shown: what has to do with passwords is not."""
        return {
            key: "(not shown)" if "password" in f"{key} {value}".lower() or key == "requirepass" else value
            for key, value in self.settings.items()
        }

    @property
    def log(self) -> Path:
        """The first node's log, where that is on this machine."""
        return self.node_folder(self.nodes[0]) / LOG_FILE

    @property
    def shown_log(self) -> str:
        """Where the first node's log lies, with the host that it lies on."""
        node = self.nodes[0]
        if node.placed_on not in self.parts:
            return str(self.log)
        return f"{node.placed_on}:{self.parts[node.placed_on].folder / self.node_folder(node).name / LOG_FILE}"

    @property
    def credentials(self) -> Path:
        """The file with user and password, for the caller alone."""
        return self.folder / CREDENTIALS_FILE

    @property
    def is_abandoned(self) -> bool:
        """Whether nobody wants it any more: its owner ended before it was ready, or it was the owner's alone. One that is being removed is not
        tried again by each command, which would wait for its hosts: `lab down` does that.
        """
        return self.owner.find() is None and self.state != "being removed" and (not self.stays or self.state == "starting")

    def write(self) -> None:
        """Writes the record."""
        self.folder.mkdir(mode=0o755, exist_ok=True)
        draft = self.folder / f"{RECORD_FILE}.new"
        draft.write_text(self.model_dump_json(indent=2) + "\n", encoding="utf-8")
        draft.rename(self.folder / RECORD_FILE)

    def password(self) -> str:
        """The password; made when there is none yet."""
        if not self.credentials.exists():
            self.write_credentials(USER, secrets.token_urlsafe(18))
        return self.credentials.read_text(encoding="utf-8").split('password = "')[1].split('"')[0]

    def write_credentials(self, user: str, password: str) -> None:
        """Writes the file with user and password."""
        self.credentials.touch(mode=0o600)
        self.credentials.write_text(f'user = "{user}"\npassword = "{password}"\n', encoding="utf-8")


def read_instances() -> list[Instance]:
    """All instances that have a record."""
    found = []
    for folder in sorted(instances_folder().iterdir()):
        # One that somebody ends meanwhile has none any more.
        with suppress(FileNotFoundError, NotADirectoryError):
            found.append(_read(folder / RECORD_FILE))
    return found


def find_instance(name: str) -> Instance:
    """The instance of this name. Raises UsageError."""
    instances = {instance.name: instance for instance in read_instances()}
    if name not in instances:
        known = f"there are {', '.join(instances)}" if instances else "there is none"
        raise UsageError(f"the lab has no instance {name!r}; {known} (start one with: sensorbench lab up DATABASE --name {name})")
    return instances[name]


def is_recorded(instance: Instance) -> bool:
    """Whether what lies under the name of an instance on this machine is that instance, or its part, and nobody else's."""
    file = instance.folder / RECORD_FILE
    return file.exists() and _read(file).identity == instance.identity


def _read(file: Path) -> Instance:
    try:
        return Instance.model_validate_json(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise FailedError(f"{file} is not a record of an instance ({error}); remove its folder when nothing runs there") from None
