"""What is done to a cluster while it works: nodes join or leave, are killed, stand still for a while, or are restarted in turn."""

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from sensorbench import lab
from sensorbench.errors import FailedError, UsageError
from sensorbench.experiment.lengths import seconds

Kind = Literal["join", "leave", "kill", "pause", "rolling-restart", "stay"]
KINDS: dict[Kind, str] = {
    "join": "nodes join, one after the other",
    "leave": "nodes leave gracefully, the last one first",
    "kill": "the last node is killed (kill -9), and started again after a time",
    "pause": "the last node stands still (SIGSTOP) for a time",
    "rolling-restart": "all nodes are ended and started again, one after the other",
    "stay": "nothing is done: the load is measured on what there is",
}
# What the events of a run are called.
BEGIN, DONE = "change begins", "change done"
# How long a node that was killed stays away, and how long one stands still, if nothing else is said (s).
USUAL_AWAY_S = 30.0
_WITH_COUNT, _WITH_LENGTH = {"join", "leave"}, {"kill", "pause"}

Mark = Callable[[str], None]


@dataclass(frozen=True)
class Change:
    """A change; `count`: how many nodes; `away_s`: how long the node is away (s)."""

    kind: Kind
    count: int = 1
    away_s: float = USUAL_AWAY_S

    @property
    def title(self) -> str:
        """In a few words."""
        nodes = f"{self.count} nodes" if self.count > 1 else "a node"
        return {
            "join": f"{nodes} joined",
            "leave": f"{nodes} left",
            "kill": "a node was killed",
            "pause": f"a node stood still for {self.away_s:g} s",
            "rolling-restart": "all nodes were restarted in turn",
            "stay": "nothing was changed",
        }[self.kind]

    @property
    def grows_by(self) -> int:
        """How many nodes more there are afterwards."""
        return {"join": self.count, "leave": -self.count}.get(self.kind, 0)


def parse_change(text: str) -> Change:
    """A change as users write it: `join`, `join:2`, `kill:10s`. Raises UsageError."""
    kind, _, more = text.partition(":")
    if kind not in KINDS:
        raise UsageError(f"--change {text}: expected one of {', '.join(KINDS)}")
    if not more:
        return Change(kind)
    if kind in _WITH_COUNT and more.isdecimal() and int(more) > 0:
        return Change(kind, count=int(more))
    if kind in _WITH_LENGTH:
        try:
            return Change(kind, away_s=seconds(more))
        except ValueError as error:
            raise UsageError(f"--change {text}: {error}") from None
    expected = "a number of nodes" if kind in _WITH_COUNT else "nothing"
    raise UsageError(f"--change {text}: expected {expected} behind {kind}")


def carry_out(change: Change, name: str, mark: Mark) -> None:
    """Changes an instance of the lab, and puts down when what happened. It is over when the database says that it is: all data are where
    they belong. Raises FailedError and UsageError.
    """
    mark(BEGIN)
    {
        "join": _join,
        "leave": _leave,
        "kill": _kill,
        "pause": _pause,
        "rolling-restart": _restart_in_turn,
        "stay": _stay,
    }[change.kind](change, name, mark)
    mark(DONE)


def _join(change: Change, name: str, mark: Mark) -> None:
    for _ in range(change.count):
        node = lab.add_node(name)
        mark(f"node {node.number} joined")


def _leave(change: Change, name: str, mark: Mark) -> None:
    for _ in range(change.count):
        node = lab.remove_node(name)
        mark(f"node {node.number} left")


def _kill(change: Change, name: str, mark: Mark) -> None:
    node = _send(name, signal.SIGKILL)
    mark(f"node {node.number} killed")
    time.sleep(change.away_s)
    lab.start_node(name, node.number)
    mark(f"node {node.number} is back")


def _pause(change: Change, name: str, mark: Mark) -> None:
    node = _send(name, signal.SIGSTOP)
    mark(f"node {node.number} stands still")
    try:
        time.sleep(change.away_s)
    finally:
        _send(name, signal.SIGCONT)
    mark(f"node {node.number} goes on")


def _restart_in_turn(change: Change, name: str, mark: Mark) -> None:
    del change
    for node in lab.find_instance(name).nodes:
        lab.stop_node(name, node.number)
        mark(f"node {node.number} ended")
        lab.start_node(name, node.number)
        mark(f"node {node.number} is back")


def _stay(change: Change, name: str, mark: Mark) -> None:
    del change, name, mark


def _send(name: str, wanted: signal.Signals) -> lab.Node:
    """Sends a signal to the last node and all its processes; the children of one that is killed go with it."""
    node = lab.find_instance(name).nodes[-1]
    process = node.find()
    if process is None:
        raise FailedError(f"{name}: node {node.number} does not run")
    for one in [process, *process.children(recursive=True)]:
        one.send_signal(wanted)
    return node
