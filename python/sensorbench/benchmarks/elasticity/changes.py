"""What is done to a cluster while it works: nodes join or leave, are killed, stand still for a while, or are restarted in turn."""

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from sensorbench import lab
from sensorbench.benchmarks.elasticity.clusters import ASKS_EVERY_S, Cluster, ExternalCluster, LabNodes
from sensorbench.benchmarks.elasticity.faults import FAULTS, suffering, why_not
from sensorbench.benchmarks.elasticity.faults import Kind as FaultKind
from sensorbench.errors import UsageError
from sensorbench.hosts.host import Host
from sensorbench.lab import HERE
from sensorbench.runner import seconds

Kind = Literal["join", "leave", "kill", "pause", "partition", "slow-network", "slow-disk", "rolling-restart", "stay"]
KINDS: dict[Kind, str] = {
    "join": "nodes join, one after the other (`@once`: all at once)",
    "leave": "nodes leave gracefully, the last one first",
    "kill": "the last node is killed (kill -9) and restarted after a time",
    "pause": "the last node is paused (SIGSTOP) for a time",
    **{kind: fault.summary for kind, fault in FAULTS.items()},
    "rolling-restart": "all nodes are restarted, one after the other",
    "stay": "nothing is done: the load is measured on what there is",
}
# What the events of a run are called.
BEGIN, DONE = "change begins", "change done"
# Behind the name of a node: the others know that it does not answer.
NOTICED = "is known to be down"
# How long a node that was killed stays away, and how long one stands still, if nothing else is said (s).
DEFAULT_AWAY_S = 30.0
# What needs no hand on the processes of nodes.
OF_ANY_CLUSTER: tuple[Kind, ...] = ("join", "leave", "stay")
_WITH_COUNT, _WITH_LENGTH = {"join", "leave"}, {"kill", "pause", *FAULTS}
# Nodes that join do so all at the same time.
ONCE = "once"

Annotate = Callable[[str], None]


@dataclass(frozen=True)
class Change:
    """A change; `count`: how many nodes; `away_s`: how long the node is away, or in trouble (s); `how`: what follows @, ONCE for nodes
    that join at the same time, or what the node is left with in its trouble.
    """

    kind: Kind
    count: int = 1
    away_s: float = DEFAULT_AWAY_S
    how: str = ""

    @property
    def title(self) -> str:
        """In a few words."""
        if self.kind in FAULTS:
            return f"{FAULTS[self.kind].title.format(how=self.how)} for {self.away_s:g} s"
        nodes = f"{self.count} nodes" if self.count > 1 else "a node"
        return {
            "join": f"{nodes} joined{', all at once' if self.is_at_once else ''}",
            "leave": f"{nodes} left",
            "kill": "a node was killed",
            "pause": f"a node stood still for {self.away_s:g} s",
            "rolling-restart": "all nodes were restarted, one after the other",
            "stay": "nothing was changed",
        }[self.kind]

    @property
    def min_s(self) -> float:
        """How long it takes at least (s): as long as a node is away or in trouble."""
        return self.away_s if self.kind in _WITH_LENGTH else 0.0

    @property
    def is_at_once(self) -> bool:
        """Whether several nodes join at the same time."""
        return self.kind == "join" and self.how == ONCE and self.count > 1

    @property
    def grows_by(self) -> int:
        """How many nodes more there are afterwards."""
        return {"join": self.count, "leave": -self.count}.get(self.kind, 0)


def parse_change(text: str) -> Change:
    """A change as users write it: `join`, `join:2@once`, `kill:10s`, `slow-network:30s@1mbit`. Raises UsageError."""
    whole, at, how = text.partition("@")
    kind, _, more = whole.partition(":")
    if kind not in KINDS:
        raise UsageError(f"--change {text}: expected one of {', '.join(KINDS)}")
    if at and (expected := _expected_behind_at(kind, how)):
        raise UsageError(f"--change {text}: expected {expected} after @")
    change = Change(kind, how=how or (FAULTS[kind].default if kind in FAULTS else ""))
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
    raise UsageError(f"--change {text}: expected {expected} after {kind}")


def _expected_behind_at(kind: Kind, how: str) -> str | None:
    """What should follow @; None if it does."""
    if kind == "join":
        return None if how == ONCE else ONCE
    if kind not in FAULTS or not FAULTS[kind].default:
        return "nothing"
    return None if FAULTS[kind].form.fullmatch(how) else FAULTS[kind].expected


def carry_out(change: Change, cluster: Cluster, annotate: Annotate) -> None:
    """Changes a cluster, and puts down when what happened. Raises FailedError and UsageError."""
    annotate(BEGIN)
    if change.is_at_once:
        annotate(f"{cluster.add_nodes(change.count)} joined")
    elif change.kind == "join":
        _times(change, cluster.add_node, "joined", annotate)
    elif change.kind == "leave":
        _times(change, cluster.remove_node, "left", annotate)
    elif change.kind != "stay":
        _to_processes(change, _of_lab(change, cluster), annotate)
    annotate(DONE)


def check_can(change: Change, cluster: Cluster) -> None:
    """Raises UsageError for a change that cannot be made to a cluster."""
    if change.kind not in OF_ANY_CLUSTER:
        for place in _of_lab(change, cluster).places:
            if reason := why_unavailable(change, place):
                where = f"host {place.name}" if place.name else "this machine"
                raise UsageError(f"--change {change.kind}: not available on {where}: {reason}")
    elif isinstance(cluster, ExternalCluster):
        cluster.require_command(change.kind)


def why_unavailable(change: Change, place: Host = HERE) -> str | None:
    """Why a fault cannot be had on a machine; None if it can, and of what is not a fault."""
    return place.call(why_not, change.kind, place.address, change.how) if change.kind in FAULTS else None


def _of_lab(change: Change, cluster: Cluster) -> LabNodes:
    if not isinstance(cluster, LabNodes):
        raise UsageError(
            f"--change {change.kind}: sensorbench cannot act on the processes of your own cluster; expected {', '.join(OF_ANY_CLUSTER)}"
        )
    return cluster


def _times(change: Change, once: Callable[[], str], word: str, annotate: Annotate) -> None:
    for _ in range(change.count):
        annotate(f"{once()} {word}")


def _to_processes(change: Change, cluster: LabNodes, annotate: Annotate) -> None:
    if change.kind == "kill":
        _kill(change, cluster, annotate)
    elif change.kind == "pause":
        _pause(change, cluster, annotate)
    elif change.kind in FAULTS:
        _suffer(change, cluster, change.kind, annotate)
    else:
        _restart_in_turn(cluster, annotate)


def _kill(change: Change, cluster: LabNodes, annotate: Annotate) -> None:
    number = cluster.send_to_last(signal.SIGKILL)
    annotate(f"node {number} killed")
    _wait_while_away(change, cluster, number, annotate)
    lab.start_node(cluster.name, number)
    annotate(f"node {number} is back")


def _pause(change: Change, cluster: LabNodes, annotate: Annotate) -> None:
    number = cluster.send_to_last(signal.SIGSTOP)
    annotate(f"node {number} stands still")
    try:
        _wait_while_away(change, cluster, number, annotate)
    finally:
        cluster.send_to_last(signal.SIGCONT)
    annotate(f"node {number} continues")


def _suffer(change: Change, cluster: LabNodes, kind: FaultKind, annotate: Annotate) -> None:
    number = lab.find_instance(cluster.name).nodes[-1].number
    with suffering(cluster.name, number, kind, change.how):
        annotate(f"node {number} {FAULTS[kind].annotation}")
        _wait_while_away(change, cluster, number, annotate)
    annotate(f"node {number} has recovered")


def _wait_while_away(change: Change, cluster: LabNodes, number: int, annotate: Annotate) -> None:
    """Waits for as long as a node is to be away, and puts down when the others have noticed."""
    over_s, is_known = time.monotonic() + change.away_s, False
    while (left_s := over_s - time.monotonic()) > 0.0:
        if not is_known and lab.knows_is_down(cluster.name, number):
            is_known = True
            annotate(f"node {number} {NOTICED}")
        time.sleep(min(left_s, ASKS_EVERY_S))


def _restart_in_turn(cluster: LabNodes, annotate: Annotate) -> None:
    for node in lab.find_instance(cluster.name).nodes:
        lab.stop_node(cluster.name, node.number)
        annotate(f"node {node.number} ended")
        lab.start_node(cluster.name, node.number)
        annotate(f"node {node.number} is back")
