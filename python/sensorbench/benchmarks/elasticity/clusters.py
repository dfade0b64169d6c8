"""Clusters that can be changed: the lab's own, and those of users, who say with commands how."""

import shlex
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from sensorbench import lab
from sensorbench.errors import FailedError, UsageError
from sensorbench.hosts.host import Host

ASKS_EVERY_S = 1.0
# This much of what a command printed is shown when it fails.
_MAX_SAID = 500
_OPTIONS = {"join": "--add-node-command", "leave": "--remove-node-command"}


class Cluster(ABC):
    """A cluster whose nodes come and go. What is done is over when the database says that all data are where they belong."""

    @property
    @abstractmethod
    def nodes(self) -> int:
        """How many nodes there are."""

    @property
    @abstractmethod
    def at_once_costs(self) -> str:
        """What it costs when nodes join all at once."""

    @abstractmethod
    def add_node(self) -> str:
        """One more node; what it is called. Raises FailedError."""

    @abstractmethod
    def add_nodes(self, count: int) -> str:
        """Adds this many nodes, all at once; returns what they are called. Raises FailedError."""

    @abstractmethod
    def balance(self) -> None:
        """Has all nodes take equal shares of the data, as far as that can be ordered here. Raises FailedError."""

    @abstractmethod
    def remove_node(self) -> str:
        """Takes a node out gracefully; what it was called. Raises FailedError."""


@dataclass(frozen=True)
class LabNodes(Cluster):
    """An instance of the lab, by name. Its processes can be got at, too."""

    name: str

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return len(lab.find_instance(self.name).nodes)

    @property
    def at_once_costs(self) -> str:
        """What its kind of database gives up then."""
        return lab.at_once_costs(self.name)

    def add_node(self) -> str:
        """Starts one more node."""
        return _placed(lab.add_node(self.name))

    def add_nodes(self, count: int) -> str:
        """Starts more nodes at the same time."""
        return _listed([_placed(node) for node in lab.add_nodes(self.name, count)])

    def balance(self) -> None:
        """Orders it of the database."""
        lab.balance(self.name)

    def remove_node(self) -> str:
        """Takes the last node out."""
        return f"node {lab.remove_node(self.name).number}"

    def send_to_last(self, wanted: signal.Signals) -> int:
        """Sends a signal to the last node and all its processes, where it is; the node's number. Raises FailedError if it is not running."""
        number = lab.find_instance(self.name).nodes[-1].number
        lab.signal_node(self.name, number, wanted)
        return number

    @property
    def places(self) -> list[Host]:
        """The machines that its nodes are on."""
        return lab.places_of(lab.find_instance(self.name))


def _placed(node: lab.Node) -> str:
    """What a node is called, with its host."""
    return f"node {node.number} on {node.placed_on}" if node.placed_on else f"node {node.number}"


def _listed(nodes: Iterable[str]) -> str:
    return f"nodes {', '.join(node.removeprefix('node ') for node in nodes)}"


@dataclass
class ExternalCluster(Cluster):
    """A user's cluster. Commands have no shell; `status` ends with 0 when no data are moving any more; without it that is so when the other
    command is over. `max_s` is how long is waited for each.
    """

    count: int
    add: str | None
    remove: str | None
    status: str | None
    max_s: float

    @property
    def nodes(self) -> int:
        """How many nodes there are, as the user said, and as nodes have come and gone since."""
        return self.count

    @property
    def at_once_costs(self) -> str:
        """That depends on how the command adds them."""
        return "what --add-node-command makes of that: it was called for all nodes at the same time"

    def add_node(self) -> str:
        """Has one more node added."""
        self._carry_out(*self._command("join"))
        self.count += 1
        return f"node {self.count}"

    def add_nodes(self, count: int) -> str:
        """Has more nodes added, by as many commands at the same time."""
        option, command = self._command("join")
        with ThreadPoolExecutor(count) as commands:
            list(commands.map(lambda _: self._carry_out(option, command), range(count)))
        self.count += count
        return _listed(f"node {number}" for number in range(self.count - count + 1, self.count + 1))

    def balance(self) -> None:
        """That is up to the user's cluster, and its balancer."""

    def remove_node(self) -> str:
        """Has a node taken out."""
        self._carry_out(*self._command("leave"))
        self.count -= 1
        return f"node {self.count + 1}"

    def require_command(self, kind: str) -> None:
        """Raises UsageError if a command is missing for a kind of change."""
        if kind in _OPTIONS:
            self._command(kind)

    def _command(self, kind: str) -> tuple[str, str]:
        option, command = _OPTIONS[kind], self.add if kind == "join" else self.remove
        if command is None:
            raise UsageError(f"--change {kind}: for a cluster of your own, give the command that does this with {option}")
        return option, command

    def _carry_out(self, option: str, command: str) -> None:
        ended = self._run(option, command)
        if ended.returncode != 0:
            output = (ended.stderr or ended.stdout).strip()[-_MAX_SAID:]
            raise FailedError(f"{option} {command}: it ended with {ended.returncode}: {output or 'it printed nothing'}")
        give_up_s = time.monotonic() + self.max_s
        while self.status is not None and self._run("--status-command", self.status).returncode != 0:
            if time.monotonic() > give_up_s:
                raise FailedError(f"--status-command {self.status}: it did not end with 0 within {self.max_s:g} s")
            time.sleep(ASKS_EVERY_S)

    def _run(self, option: str, command: str) -> subprocess.CompletedProcess[str]:
        try:
            words = shlex.split(command)
            return subprocess.run(words, capture_output=True, text=True, timeout=self.max_s, check=False)
        except subprocess.TimeoutExpired:
            raise FailedError(f"{option} {command}: it did not end within {self.max_s:g} s") from None
        except (OSError, ValueError, IndexError) as error:
            raise FailedError(f"{option} {command}: it cannot be run: {error}") from None
