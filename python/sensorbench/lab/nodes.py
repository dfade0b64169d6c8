"""One node of an instance: its process is started, waited for until it answers, and ended, on the machine that it is on."""

import time
from collections.abc import Callable, Sequence

from sensorbench.errors import FailedError
from sensorbench.lab import addresses, at_node, isolation
from sensorbench.lab.database import LabDatabase
from sensorbench.lab.instance import COORDINATOR, Instance, Node
from sensorbench.lab.limits import ended_by_memory_limit
from sensorbench.lab.placement import host_of, runs

STOP_WITHIN_S = 20.0
# One whose data are needed again may write for longer what it has in memory.
KEEP_WITHIN_S = 120.0
_ASK_EVERY_S = 0.05
_REPORT_EVERY_S = 3.0
Report = Callable[[str], None]


def planned_coordinator(cluster: int, database: LabDatabase) -> Node | None:
    """The process that the nodes of a cluster need beside them, on its own address; None for databases that need none."""
    if database.coordinator_port is None:
        return None
    host = isolation.address(cluster) if database.is_isolated else addresses.coordinator_address(cluster)
    return Node(number=COORDINATOR, host=host, port=database.coordinator_port)


def create_and_launch(instance: Instance, node: Node, joining: Sequence[Node] = ()) -> None:
    """Makes the folder of a node, sets it up and starts its process. `joining`: the nodes that join a cluster at the same time, this one among
    them; none where it is started with its cluster.
    """
    part = instance.part_on(node.placed_on)
    node.process = host_of(instance, node).call(at_node.create_and_launch, part, node.number, tuple(joining))


def start_coordinator_again(instance: Instance, database: LabDatabase) -> None:
    """Starts what the nodes need beside them, if they do and it is down."""
    coordinator = instance.coordinator
    if coordinator is not None and not runs(instance, coordinator):
        launch(instance, coordinator)
        instance.write()
        wait_until_others_may_start(instance, coordinator, database)


def launch(instance: Instance, node: Node) -> None:
    """Starts the process of a node that is set up, within the limits of its instance."""
    node.process = host_of(instance, node).call(at_node.launch, instance.part_on(node.placed_on), node.number)


def wait_until_others_may_start(instance: Instance, node: Node, database: LabDatabase) -> None:
    """Waits until other nodes may start beside this one. Raises FailedError with what its log says."""

    def problem() -> str:
        return "" if database.lets_others_start(instance, node) else "it does not let other nodes start"

    _wait_until(instance, node, database, problem)


def wait_until_ready(instance: Instance, node: Node, database: LabDatabase, report: Report | None = None) -> None:
    """Waits until a node answers as a target does, to whom asks from here."""
    _wait_until(instance, node, database, database.readiness(instance, node), report)


def _wait_until(
    instance: Instance, node: Node, database: LabDatabase, problem: Callable[[], str], report: Report | None = None
) -> None:
    """Waits until a node has no problem any more. Raises FailedError with what its log says."""
    start_s = reported_s = time.monotonic()
    while True:
        for needed in (node, instance.coordinator):
            if needed is not None and not runs(instance, needed):
                raise FailedError(f"{_named(instance, needed)}: the server ended while it started: {_log_tail(instance, needed)}")
        why = problem()
        if not why:
            return
        now_s = time.monotonic()
        if now_s - start_s > database.ready_within_s:
            raise FailedError(
                f"{_named(instance, node)} does not answer after {database.ready_within_s:g} s ({why}): {_log_tail(instance, node)}"
            )
        if report and now_s - reported_s > _REPORT_EVERY_S:
            report(database.progress(instance, node, database.user()))
            reported_s = time.monotonic()
        time.sleep(_ASK_EVERY_S)


def _named(instance: Instance, node: Node) -> str:
    """An instance, with the host where something is wrong."""
    return f"{instance.name}, node {node.number} on host {node.placed_on}" if node.placed_on else instance.name


def why_ended(instance: Instance) -> str:
    """What the nodes whose process has ended said last, and whether the limit of memory ended them; empty if all run. Raises LostHostError."""
    ended = [node for node in instance.all_processes if node.process is not None and not runs(instance, node)]
    if not ended:
        return ""
    memory = instance.limits.memory_bytes
    by_limit = (
        f", by the kernel at its limit of {memory / 1e9:,.1f} GB of memory"
        if memory and ended_by_memory_limit(instance.limits)
        else ""
    )
    logs = "; ".join(f"{_named(instance, node)}: {_log_tail(instance, node)}" for node in ended)
    return f"the server has ended{by_limit}; its log says last: {logs}"


def _log_tail(instance: Instance, node: Node) -> str:
    return host_of(instance, node).call(at_node.log_tail, instance.part_on(node.placed_on), node.number)


def end_and_remove_node(instance: Instance, node: Node) -> None:
    """Ends a node and removes its folder."""
    end_process(instance, node)
    host_of(instance, node).call(at_node.remove_folder, instance.part_on(node.placed_on), node.number)


def end_process(instance: Instance, node: Node, patience_s: float = STOP_WITHIN_S) -> None:
    """Ends the process of a node and its children, if it has one: asked first, killed after a while."""
    host_of(instance, node).call(at_node.end, node.process, instance.database, patience_s)
