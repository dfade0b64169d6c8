"""One node of an instance: its process is started, waited for until it answers, and ended."""

import contextlib
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from sensorbench.errors import FailedError
from sensorbench.lab import addresses, isolation, processes
from sensorbench.lab.database import LabDatabase, Place
from sensorbench.lab.instance import COORDINATOR, Instance, Node, find_instance
from sensorbench.lab.kept_data import take_data
from sensorbench.lab.limits import enter_group
from sensorbench.lab.processes import ProcessId
from sensorbench.lab.state_dirs import ServerUser

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


def create_and_launch(place: Place, database: LabDatabase) -> None:
    """Makes the folder of a node, sets it up and starts its process."""
    place.folder.mkdir(mode=0o700)
    place.user.owns(place.folder)
    database.set_up(place)
    if place.instance.data_of is not None:
        take_data(place, find_instance(place.instance.data_of), database)
    launch(place, database)


def start_coordinator_again(instance: Instance, database: LabDatabase, software: Path, user: ServerUser) -> None:
    """Starts what the nodes need beside them, if they do and it is down."""
    coordinator = instance.coordinator
    if coordinator is not None and coordinator.find() is None:
        launch(Place(instance, coordinator, software, user), database)
        instance.write()
        wait_until_others_may_start(instance, coordinator, database)


def launch(place: Place, database: LabDatabase) -> None:
    """Starts the process of a node that is set up, within the limits of its instance."""
    limits_ = place.instance.limits
    with isolation.entered(place.instance) if database.is_isolated else contextlib.nullcontext():
        started = processes.start(
            database.command(place),
            instance=place.instance.folder,
            folder=place.folder,
            user=place.user,
            environment=database.environment_of(place),
            cpus=limits_.cpus if limits_.cpus_by == "affinity" else None,
        )
    place.node.process = ProcessId.of(started.pid)
    enter_group(limits_, started.pid)


def wait_until_others_may_start(instance: Instance, node: Node, database: LabDatabase) -> None:
    """Waits until other nodes may start beside this one. Raises FailedError with what its log says."""

    def problem() -> str:
        return "" if database.lets_others_start(instance, node) else "it does not let other nodes start"

    _wait_until(instance, node, database, problem)


def wait_until_ready(instance: Instance, node: Node, database: LabDatabase, report: Report | None = None) -> None:
    """Waits until a node answers as a target does."""
    _wait_until(instance, node, database, database.readiness(instance, node), report)


def _wait_until(
    instance: Instance, node: Node, database: LabDatabase, problem: Callable[[], str], report: Report | None = None
) -> None:
    """Waits until a node has no problem any more. Raises FailedError with what its log says."""
    log = instance.node_folder(node) / "server.log"
    start_s = reported_s = time.monotonic()
    while True:
        for needed in (node, instance.coordinator):
            if needed is not None and needed.find() is None:
                words = database.log_tail(instance.node_folder(needed) / "server.log")
                raise FailedError(f"{instance.name}: the server ended while it started: {words}")
        why = problem()
        if not why:
            return
        now_s = time.monotonic()
        if now_s - start_s > database.ready_within_s:
            raise FailedError(
                f"{instance.name} does not answer after {database.ready_within_s:g} s ({why}): {database.log_tail(log)}"
            )
        if report and now_s - reported_s > _REPORT_EVERY_S:
            report(database.progress(instance, node, database.user()))
            reported_s = time.monotonic()
        time.sleep(_ASK_EVERY_S)


def end_and_remove_node(instance: Instance, node: Node, database: LabDatabase) -> None:
    """Ends a node and removes its folder."""
    end_process(node, database)
    shutil.rmtree(instance.node_folder(node), ignore_errors=True)


def end_process(node: Node, database: LabDatabase, patience_s: float = STOP_WITHIN_S) -> None:
    """Ends the process of a node and its children, if it has one: asked first, killed after a while."""
    if process := node.find():
        processes.end([process, *process.children(recursive=True)], signal=database.stop_signal, patience_s=patience_s)
