"""What is done to a cluster while it works: nodes join or leave, are killed, stand still for a while, or are restarted in turn."""

import re
import signal
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from sensorbench import lab
from sensorbench.elasticity import network
from sensorbench.elasticity.clusters import ASKS_EVERY_S, Cluster, LabNodes, OwnNodes
from sensorbench.errors import UsageError
from sensorbench.experiment.lengths import seconds

Kind = Literal["join", "leave", "kill", "pause", "partition", "slow-network", "rolling-restart", "stay"]
KINDS: dict[Kind, str] = {
    "join": "nodes join, one after the other",
    "leave": "nodes leave gracefully, the last one first",
    "kill": "the last node is killed (kill -9), and started again after a time",
    "pause": "the last node stands still (SIGSTOP) for a time",
    "partition": "no packet comes to the last node for a time, not from clients and not from the others",
    "slow-network": "packets to and from the last node go at a rate for a time",
    "rolling-restart": "all nodes are ended and started again, one after the other",
    "stay": "nothing is done: the load is measured on what there is",
}
# What the events of a run are called.
BEGIN, DONE = "change begins", "change done"
# Behind the name of a node: the others know that it does not answer.
NOTICED = "is known to be down"
# How long a node that was killed stays away, and how long one stands still, if nothing else is said (s).
USUAL_AWAY_S = 30.0
USUAL_RATE = "1mbit"
# What needs no hand on the processes of nodes.
OF_ANY_CLUSTER: tuple[Kind, ...] = ("join", "leave", "stay")
_WITH_COUNT, _WITH_LENGTH, _WITH_RATE = {"join", "leave"}, {"kill", "pause", "partition", "slow-network"}, {"slow-network"}
_RATE = re.compile(r"[1-9]\d*[kmg]bit")

Mark = Callable[[str], None]


@dataclass(frozen=True)
class Change:
    """A change; `count`: how many nodes; `away_s`: how long the node is away, or in trouble (s); `rate`: what its network has then."""

    kind: Kind
    count: int = 1
    away_s: float = USUAL_AWAY_S
    rate: str = USUAL_RATE

    @property
    def title(self) -> str:
        """In a few words."""
        nodes = f"{self.count} nodes" if self.count > 1 else "a node"
        return {
            "join": f"{nodes} joined",
            "leave": f"{nodes} left",
            "kill": "a node was killed",
            "pause": f"a node stood still for {self.away_s:g} s",
            "partition": f"a node was cut off for {self.away_s:g} s",
            "slow-network": f"the network of a node was slow ({self.rate}) for {self.away_s:g} s",
            "rolling-restart": "all nodes were restarted in turn",
            "stay": "nothing was changed",
        }[self.kind]

    @property
    def grows_by(self) -> int:
        """How many nodes more there are afterwards."""
        return {"join": self.count, "leave": -self.count}.get(self.kind, 0)


def parse_change(text: str) -> Change:
    """A change as users write it: `join`, `join:2`, `kill:10s`, `slow-network:30s@1mbit`. Raises UsageError."""
    whole, at, rate = text.partition("@")
    kind, _, more = whole.partition(":")
    if kind not in KINDS:
        raise UsageError(f"--change {text}: expected one of {', '.join(KINDS)}")
    if at and (kind not in _WITH_RATE or not _RATE.fullmatch(rate)):
        expected = "a rate as 1mbit or 200kbit" if kind in _WITH_RATE else "nothing"
        raise UsageError(f"--change {text}: expected {expected} behind @")
    change = Change(kind, rate=rate or USUAL_RATE)
    if not more:
        return change
    if kind in _WITH_COUNT and more.isdecimal() and int(more) > 0:
        return replace(change, count=int(more))
    if kind in _WITH_LENGTH:
        try:
            return replace(change, away_s=seconds(more))
        except ValueError as error:
            raise UsageError(f"--change {text}: {error}") from None
    expected = "a number of nodes" if kind in _WITH_COUNT else "nothing"
    raise UsageError(f"--change {text}: expected {expected} behind {kind}")


def carry_out(change: Change, cluster: Cluster, mark: Mark) -> None:
    """Changes a cluster, and puts down when what happened. Raises FailedError and UsageError."""
    mark(BEGIN)
    if change.kind == "join":
        _times(change, cluster.add_node, "joined", mark)
    elif change.kind == "leave":
        _times(change, cluster.remove_node, "left", mark)
    elif change.kind != "stay":
        _to_processes(change, _of_lab(change, cluster), mark)
    mark(DONE)


def check_can(change: Change, cluster: Cluster) -> None:
    """Raises UsageError for a change that cannot be made to a cluster."""
    if change.kind not in OF_ANY_CLUSTER:
        _of_lab(change, cluster)
        if (trouble := _trouble(change)) and (reason := network.why_not(trouble)):
            raise UsageError(f"--change {change.kind}: not available on this machine: {reason}")
    elif isinstance(cluster, OwnNodes):
        cluster.require_command(change.kind)


def _of_lab(change: Change, cluster: Cluster) -> LabNodes:
    if not isinstance(cluster, LabNodes):
        raise UsageError(
            f"--change {change.kind}: the processes of a cluster of your own are not got at; expected {', '.join(OF_ANY_CLUSTER)}"
        )
    return cluster


def _times(change: Change, once: Callable[[], str], word: str, mark: Mark) -> None:
    for _ in range(change.count):
        mark(f"{once()} {word}")


def _to_processes(change: Change, cluster: LabNodes, mark: Mark) -> None:
    if change.kind == "kill":
        _kill(change, cluster, mark)
    elif change.kind == "pause":
        _pause(change, cluster, mark)
    elif trouble := _trouble(change):
        _suffer(change, cluster, trouble, mark)
    else:
        _restart_in_turn(cluster, mark)


def _kill(change: Change, cluster: LabNodes, mark: Mark) -> None:
    number = cluster.send_to_last(signal.SIGKILL)
    mark(f"node {number} killed")
    _wait_while_away(change, cluster, number, mark)
    lab.start_node(cluster.name, number)
    mark(f"node {number} is back")


def _pause(change: Change, cluster: LabNodes, mark: Mark) -> None:
    number = cluster.send_to_last(signal.SIGSTOP)
    mark(f"node {number} stands still")
    try:
        _wait_while_away(change, cluster, number, mark)
    finally:
        cluster.send_to_last(signal.SIGCONT)
    mark(f"node {number} goes on")


def _trouble(change: Change) -> Callable[[str], AbstractContextManager[None]] | None:
    """What the network does to an address; None for changes of other kinds."""
    if change.kind == "partition":
        return network.cut_off
    return partial(network.slowed, rate=change.rate) if change.kind == "slow-network" else None


def _suffer(change: Change, cluster: LabNodes, trouble: Callable[[str], AbstractContextManager[None]], mark: Mark) -> None:
    node = lab.find_instance(cluster.name).nodes[-1]
    with trouble(node.host):
        mark(f"node {node.number} {'cut off' if change.kind == 'partition' else 'is slow to reach'}")
        _wait_while_away(change, cluster, node.number, mark)
    mark(f"node {node.number} is reached as ever")


def _wait_while_away(change: Change, cluster: LabNodes, number: int, mark: Mark) -> None:
    """Waits for as long as a node is to be away, and puts down when the others have noticed."""
    over_s, is_known = time.monotonic() + change.away_s, False
    while (left_s := over_s - time.monotonic()) > 0.0:
        if not is_known and lab.knows_is_down(cluster.name, number):
            is_known = True
            mark(f"node {number} {NOTICED}")
        time.sleep(min(left_s, ASKS_EVERY_S))


def _restart_in_turn(cluster: LabNodes, mark: Mark) -> None:
    for node in lab.find_instance(cluster.name).nodes:
        lab.stop_node(cluster.name, node.number)
        mark(f"node {node.number} ended")
        lab.start_node(cluster.name, node.number)
        mark(f"node {node.number} is back")
