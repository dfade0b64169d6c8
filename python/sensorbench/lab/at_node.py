"""What is done to a node on the machine that it is on: hosts are given these functions to call, with the instance as they know it."""

import os
import shutil
import signal
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import NamedTuple

import psutil

from sensorbench.errors import FailedError
from sensorbench.lab import isolation, processes
from sensorbench.lab.database import LabDatabase, Place, Snapshot
from sensorbench.lab.instance import LOG_FILE, Instance, Node, find_instance, is_recorded
from sensorbench.lab.kept_data import take_data
from sensorbench.lab.limits import enter_group
from sensorbench.lab.processes import ProcessId
from sensorbench.lab.registry import require_server

# What `st_blocks` counts in, whatever the blocks of the file system are.
_BLOCK_BYTES = 512


class NodeUsage(NamedTuple):
    """What the process of a node and those below it take: memory, and CPU time (s)."""

    pid: int
    memory_bytes: int
    cpu_s: float


def create_and_launch(instance: Instance, number: int, joining: Sequence[Node]) -> ProcessId:
    """Makes the folder of a node, sets it up and starts its process. `joining`: those that join at the same time."""
    place, database = _place(instance, number, joining)
    place.folder.mkdir(mode=0o700)
    place.user.owns(place.folder)
    database.set_up(place)
    if instance.data_of is not None:
        take_data(place, find_instance(instance.data_of), database)
    return _launch(place, database)


def launch(instance: Instance, number: int) -> ProcessId:
    """Starts the process of a node that is set up, within the limits of its instance."""
    return _launch(*_place(instance, number))


def _place(instance: Instance, number: int, joining: Sequence[Node] = ()) -> tuple[Place, LabDatabase]:
    database = require_server(instance.database)
    source = database.source(instance.version)
    if source is None:
        raise FailedError(f"{instance.name}: this sensorbench does not know {database.name} {instance.version}")
    return Place(instance, instance.node(number), source.get(), database.user(), tuple(joining)), database


def _launch(place: Place, database: LabDatabase) -> ProcessId:
    limits_ = place.instance.limits
    with isolation.entered(place.instance) if database.is_isolated else nullcontext():
        started = processes.start(
            database.command(place),
            instance=place.instance.folder,
            folder=place.folder,
            user=place.user,
            environment=database.environment_of(place),
            cpus=limits_.cpus if limits_.cpus_by == "affinity" else None,
        )
    process = ProcessId.of(started.pid)
    enter_group(limits_, started.pid)
    return process


def end(process: ProcessId | None, database: str, patience_s: float) -> None:
    """Ends the process of a node and its children, if it has one: asked first, killed after a while."""
    if process is not None and (family := process.family()):
        processes.end(family, signal=require_server(database).stop_signal, patience_s=patience_s)


def remove_folder(instance: Instance, number: int) -> None:
    """Removes the folder of a node. What another instance of this name has here stays."""
    if is_recorded(instance):
        shutil.rmtree(instance.node_folder(instance.node(number)), ignore_errors=True)


def log_tail(instance: Instance, number: int) -> str:
    """What a node said last in its log."""
    return require_server(instance.database).log_tail(instance.node_folder(instance.node(number)) / LOG_FILE)


def send_signal(process: ProcessId, wanted: signal.Signals) -> bool:
    """Sends a signal to the process of a node and those below it; False if it is not running."""
    family = process.family()
    for item in family:
        item.send_signal(wanted)
    return bool(family)


def node_usage(process: ProcessId | None) -> NodeUsage | None:
    """What a node takes; None of one that is not running."""
    if process is None:
        return None
    try:
        family = process.family()
        if not family:
            return None
        memory_bytes = sum(item.memory_info().rss for item in family)
        return NodeUsage(family[0].pid, memory_bytes, sum(sum(item.cpu_times()[:2]) for item in family))
    except psutil.NoSuchProcess:
        return None


def snapshot(instance: Instance, number: int) -> Snapshot | None:
    """Has a node write its data to disk; None of a server that has no such command."""
    place, database = _place(instance, number)
    return database.snapshot(instance, place.node, place.software, place.user)


def insight(instance: Instance, number: int) -> dict[str, float]:
    """Counters and gauges of a node, or of the coordinator; nothing of one that is down. `lab.disk_bytes` is what the node's folder of data
    takes on disk; `lab.load_average` is that of the machine over the last minute, which all processes on it share.
    """
    node = instance.node(number)
    if node.find() is None:
        return {}
    own = require_server(instance.database).insight(instance, node)
    disk_bytes = float(_bytes_on_disk(instance.data_folder(node)))
    return {**own, "lab.disk_bytes": disk_bytes, "lab.load_average": os.getloadavg()[0]}


def _bytes_on_disk(folder: Path) -> int:
    """Blocks of all files below a folder; those that go meanwhile are left out."""
    total = 0
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                if entry.is_dir(follow_symlinks=False):
                    total += _bytes_on_disk(Path(entry))
                else:
                    total += entry.stat(follow_symlinks=False).st_blocks * _BLOCK_BYTES
    return total
