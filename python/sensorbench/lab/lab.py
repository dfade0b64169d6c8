"""Starting and ending real servers on this machine: private, on loopback addresses of their own, without Docker.

Whatever ends the lab itself, the next call finds what still runs and ends what belongs to nobody (`sweep`).
"""

import contextlib
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from sensorbench._engine import Target
from sensorbench.errors import EngineError, FailedError, UsageError
from sensorbench.lab import addresses, processes
from sensorbench.lab.database import LabCluster, LabDatabase, Place
from sensorbench.lab.homes import ServerUser, instances_folder, server_user
from sensorbench.lab.instance import RECORD_FILE, Instance, Node, find_instance, read_instances
from sensorbench.lab.limits import entering, limits, remove_group
from sensorbench.lab.locks import locked
from sensorbench.lab.processes import ProcessId
from sensorbench.lab.registry import LAB_DATABASES, require_database

_NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")
_STOP_WITHIN_S = 20.0


@dataclass(frozen=True)
class Wish:
    """What is to be started."""

    database: str
    name: str | None = None
    version: str | None = None
    nodes: int | None = None
    replicas: int = 0
    settings: dict[str, str] = field(default_factory=dict)
    cpus: list[int] | None = None
    memory_bytes: int | None = None
    # Whether it goes on when the process that started it ends.
    stays: bool = True


def up(wish: Wish) -> Instance:
    """Starts a server or cluster and returns when it answers.

    Raises UsageError for what makes no sense before anything is started, FailedError when it does not come up; then nothing
    of it is left.
    """
    sweep()
    database = require_database(wish.database)
    source = database.source(wish.version)
    if source is None:
        raise UsageError(f"{database.name} {wish.version}: expected one of {', '.join(one.version for one in database.sources)}")
    _check(wish, database)
    software, user = source.get(), server_user()
    unknown = database.unknown_settings(software, user, wish.settings)
    if unknown:
        key, why = next(iter(unknown.items()))
        raise UsageError(f"--set {key}: {database.name} {source.version} does not know it: {why}")
    with locked(instances_folder() / "lock"):
        instance = _planned(wish, database, source.version, user)
        instance.write()
    try:
        _start(instance, database, software, user)
    except BaseException:
        _remove(instance)
        raise
    instance.state = "running"
    instance.write()
    return instance


def down(name: str) -> None:
    """Ends an instance and removes everything of it."""
    sweep()
    _remove(find_instance(name))


def down_all() -> list[str]:
    """Ends every instance, whoever started it, and removes what is left of others. Returns the names."""
    ended = []
    for instance in _sound_instances():
        _remove(instance)
        ended.append(instance.name)
    sweep()
    for folder in _folders():
        _remove_folder(folder)
        ended.append(folder.name)
    return ended


def sweep() -> list[str]:
    """Ends what belongs to nobody: instances whose owner is gone, and processes whose instance has no record any more."""
    swept = []
    for instance in _sound_instances():
        if instance.is_abandoned:
            _remove(instance)
            swept.append(instance.name)
    return swept


@contextlib.contextmanager
def borrowed(wish: Wish) -> Iterator[Instance]:
    """A server for this process alone, ended whatever happens."""
    instance = up(wish)
    try:
        yield instance
    finally:
        _remove(instance)


def url_of(instance: Instance) -> str:
    """The target's URL; it names the file of credentials instead of showing them."""
    return LAB_DATABASES[instance.database].url(instance)


def status(instance: Instance) -> dict[str, Any]:
    """How an instance does: each node's process, memory and processor time."""
    nodes = []
    for node in instance.nodes:
        process = node.process.find() if node.process else None
        shown: dict[str, Any] = {"number": node.number, "address": f"{node.host}:{node.port}", "runs": process is not None}
        if process is not None:
            family = [process, *process.children(recursive=True)]
            shown |= {
                "pid": process.pid,
                "memory_bytes": sum(one.memory_info().rss for one in family),
                "cpu_s": sum(sum(one.cpu_times()[:2]) for one in family),
            }
        nodes.append(shown)
    runs = sum(bool(node["runs"]) for node in nodes)
    return {
        "name": instance.name,
        "database": instance.database,
        "version": instance.version,
        "state": instance.state if runs == len(nodes) else f"{runs} of {len(nodes)} nodes run",
        "url": url_of(instance),
        "log": str(instance.log),
        "stays": instance.stays,
        "settings": instance.settings,
        "limits": instance.limits.model_dump(),
        "nodes": nodes,
    }


def databases() -> list[dict[str, Any]]:
    """Of each kind of database: its versions, and of each whether it can start here."""
    return [
        {
            "database": database.name,
            "summary": database.summary,
            "versions": [
                {"version": source.version, "here": source.is_there, "missing": None if source.is_there else source.missing()}
                for source in database.sources
            ],
        }
        for database in LAB_DATABASES.values()
    ]


def add_node(name: str) -> Node:
    """Starts one more node and makes it part of the cluster."""
    instance, database, software, user = _cluster(name)
    number = max(node.number for node in instance.nodes) + 1
    if not addresses.is_free(instance.cluster, number, instance.nodes[0].port):
        raise FailedError(f"{addresses.address(instance.cluster, number)}:{instance.nodes[0].port} is in use by somebody else")
    node = Node(number=number, host=addresses.address(instance.cluster, number), port=instance.nodes[0].port)
    started = instance.model_copy(update={"nodes": [*instance.nodes, node]})
    started.write()
    try:
        _start_node(Place(started, node, software, user), database)
        _wait_until_ready(started, node, database)
        database.add_node(instance, node, software, user)
    except BaseException:
        _end_node(instance, node, database)
        instance.write()
        raise
    started.write()
    return node


def remove_node(name: str, number: int | None = None) -> Node:
    """Takes a node out of the cluster (the last one if none is named) and ends it."""
    instance, database, software, user = _cluster(name)
    found = [node for node in instance.nodes if number in (None, node.number)]
    if not found:
        raise UsageError(f"{name} has no node {number}; it has {', '.join(str(node.number) for node in instance.nodes)}")
    node = found[-1]
    if len(instance.nodes) <= database.nodes:
        raise UsageError(f"{name} has {len(instance.nodes)} nodes, which is the least for {database.name}")
    database.remove_node(instance, node, software, user)
    _end_node(instance, node, database)
    instance.model_copy(update={"nodes": [other for other in instance.nodes if other is not node]}).write()
    return node


def _cluster(name: str) -> tuple[Instance, LabCluster, Path, ServerUser]:
    sweep()
    instance = find_instance(name)
    database = require_database(instance.database)
    if not isinstance(database, LabCluster):
        raise UsageError(f"{name} is one server of {database.name}, which has no nodes to add or remove")
    source = database.source(instance.version)
    if source is None:
        raise FailedError(f"{name}: {database.name} {instance.version} is not known any more")
    return instance, database, source.get(), server_user()


def _check(wish: Wish, database: LabDatabase) -> None:
    if wish.name is not None and not _NAME.fullmatch(wish.name):
        raise UsageError(f"--name {wish.name}: expected small letters, digits and hyphens, a letter first")
    if wish.nodes is not None and not isinstance(database, LabCluster) and wish.nodes != 1:
        raise UsageError(f"--nodes {wish.nodes}: {database.name} is one server")
    if wish.nodes is not None and isinstance(database, LabCluster) and wish.nodes < database.nodes:
        raise UsageError(f"--nodes {wish.nodes}: {database.name} needs {database.nodes} masters at least")
    if wish.replicas and not isinstance(database, LabCluster):
        raise UsageError(f"--replicas {wish.replicas}: {database.name} is one server")


def _planned(wish: Wish, database: LabDatabase, version: str, user: ServerUser) -> Instance:
    """The record of what is about to be started. The lab's lock is held."""
    taken = {folder.name for folder in _folders()}
    base = database.name.replace("+", "-")
    name = wish.name or next(name for name in (base, *(f"{base}-{n}" for n in range(2, len(taken) + 3))) if name not in taken)
    if name in taken:
        raise UsageError(
            f"--name {name}: the lab has an instance of this name; name another, or end it: sensorbench lab down {name}"
        )
    masters = wish.nodes or database.nodes
    count = masters * (1 + wish.replicas)
    cluster, port = addresses.lease(count, database.port, {instance.cluster for instance in read_instances()})
    return Instance(
        name=name,
        database=database.name,
        version=version,
        created=datetime.now(UTC).replace(microsecond=0),
        owner=ProcessId.this(),
        stays=wish.stays,
        cluster=cluster,
        replicas=wish.replicas,
        nodes=[Node(number=number, host=addresses.address(cluster, number), port=port) for number in range(1, count + 1)],
        settings=wish.settings,
        limits=limits(name, wish.cpus, wish.memory_bytes),
        server_user=user.name,
    )


def _start(instance: Instance, database: LabDatabase, software: Path, user: ServerUser) -> None:
    instance.password()
    for node in instance.nodes:
        _start_node(Place(instance, node, software, user), database)
        instance.write()
    for node in instance.nodes:
        _wait_until_ready(instance, node, database)
    if isinstance(database, LabCluster):
        database.join(instance, software, user)


def _start_node(place: Place, database: LabDatabase) -> None:
    place.folder.mkdir(mode=0o700)
    place.user.owns(place.folder)
    database.set_up(place)
    limits_ = place.instance.limits
    started = processes.start(
        database.command(place),
        instance=place.instance.folder,
        folder=place.folder,
        user=place.user,
        environment=database.environment(place.software),
        cpus=limits_.cpus if limits_.cpus_by == "affinity" else None,
        enter_group=entering(limits_),
    )
    place.node.process = ProcessId.of(started.pid)


def _wait_until_ready(instance: Instance, node: Node, database: LabDatabase) -> None:
    """Waits until a node answers as a target does. Raises FailedError with the end of its log."""
    log = instance.node_folder(node) / "server.log"
    target = Target(database.url(instance.model_copy(update={"nodes": [node]})).replace("redis+cluster:", "redis:"))
    end_s = time.monotonic() + database.ready_within_s
    while True:
        if node.process is None or node.process.find() is None:
            raise FailedError(f"{instance.name}: the server ended while it started: {processes.last_lines(log)}")
        try:
            target.describe()
        except EngineError as error:
            if time.monotonic() > end_s:
                raise FailedError(
                    f"{instance.name} does not answer after {database.ready_within_s:g} s ({error}): {processes.last_lines(log)}"
                ) from None
            time.sleep(0.05)
        else:
            return


def _end_node(instance: Instance, node: Node, database: LabDatabase) -> None:
    process = node.process.find() if node.process else None
    if process is not None:
        processes.end([process, *process.children(recursive=True)], signal=database.stop_signal, patience_s=_STOP_WITHIN_S)
    shutil.rmtree(instance.node_folder(node), ignore_errors=True)


def _remove(instance: Instance) -> None:
    """Ends an instance's processes and removes its folder. What it stored is lost, so nothing is waited for."""
    found = {process.pid: process for process in processes.processes_of(instance.folder)}
    for node in instance.nodes:
        if node.process and (process := node.process.find()):
            found[process.pid] = process
    processes.end(list(found.values()), signal=LAB_DATABASES[instance.database].stop_signal, patience_s=_STOP_WITHIN_S)
    remove_group(instance.limits)
    shutil.rmtree(instance.folder, ignore_errors=True)


def _remove_folder(folder: Path) -> None:
    """A folder without a sound record: its processes are known by their environment alone."""
    processes.end(processes.processes_of(folder), signal=15, patience_s=_STOP_WITHIN_S)
    shutil.rmtree(folder, ignore_errors=True)


def _folders() -> list[Path]:
    return [folder for folder in sorted(instances_folder().iterdir()) if folder.is_dir()]


def _sound_instances() -> list[Instance]:
    sound = []
    for folder in _folders():
        with contextlib.suppress(FailedError, UsageError):
            if (folder / RECORD_FILE).exists():
                sound.append(find_instance(folder.name))
    return sound


def server_processes(instance: Instance) -> dict[str, psutil.Process]:
    """The main process of each node, by a name for reports."""
    found = {}
    for node in instance.nodes:
        process = node.process.find() if node.process else None
        if process is not None:
            found[f"{instance.name}:{node.number}" if len(instance.nodes) > 1 else instance.name] = process
    return found
