"""Starting and ending real servers on this machine: private, on loopback addresses of their own, without Docker.

Whatever ends the lab itself, the next call finds what still runs and ends what belongs to nobody (`sweep`).
"""

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import psutil

from sensorbench.errors import FailedError, UsageError
from sensorbench.lab import addresses, isolation, processes
from sensorbench.lab.database import LabCluster, LabDatabase, Place, Snapshot
from sensorbench.lab.instance import RECORD_FILE, Instance, Node, find_instance, read_instances
from sensorbench.lab.kept_data import check_kept
from sensorbench.lab.limits import apply_memory, limits, of_more_nodes, remove_group
from sensorbench.lab.locks import locked
from sensorbench.lab.nodes import (
    KEEP_WITHIN_S,
    STOP_WITHIN_S,
    Report,
    create_and_launch,
    end_and_remove_node,
    end_process,
    launch,
    planned_coordinator,
    start_coordinator_again,
    wait_until_others_may_start,
    wait_until_ready,
)
from sensorbench.lab.processes import ProcessId
from sensorbench.lab.registry import LAB_SERVERS, require_server
from sensorbench.lab.server_spec import ServerSpec
from sensorbench.lab.software import Source
from sensorbench.lab.state_dirs import ServerUser, instances_folder

_NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")


def up(spec: ServerSpec) -> Instance:
    """Starts a server or cluster and returns when it answers.

    Raises UsageError for what makes no sense before anything is started, FailedError when it does not come up; then nothing
    of it is left.
    """
    sweep()
    database, source = _wanted(spec)
    _check(spec, database)
    if database.is_isolated and (missing := isolation.missing()):
        raise UsageError(f"{database.name} cannot be started here: {missing}")
    software, user = source.get(), database.user()
    if spec.fits_memory and spec.memory_bytes:
        of_a_node = database.memory_settings(spec.memory_bytes // (spec.nodes or database.nodes))
        spec = replace(spec, settings={**of_a_node, **spec.settings})
    unknown = database.unknown_settings(software, user, spec.settings)
    if unknown:
        key, why = next(iter(unknown.items()))
        raise UsageError(f"--server-setting {key}: {database.name} {source.version} does not know it: {why}")
    with locked(instances_folder() / "lock"):
        instance = _planned(spec, database, source.version, user)
        instance.write()
    try:
        _start(instance, database, software, user)
    except BaseException:
        _remove(instance)
        raise
    instance.state = "running"
    instance.write()
    return instance


def min_memory(spec: ServerSpec) -> int | None:
    """Bytes that all nodes take together before there are any data; None where it is not known. Nothing is started."""
    database, _ = _wanted(spec)
    nodes = spec.nodes or database.nodes
    of_limit = database.memory_settings(spec.memory_bytes // nodes) if spec.fits_memory and spec.memory_bytes else {}
    of_a_node = database.min_memory({**of_limit, **spec.settings})
    return None if of_a_node is None else nodes * of_a_node


def unknown_settings(spec: ServerSpec) -> dict[str, str]:
    """Settings that the version which is wished for does not know, each with what it says about them. Nothing is started."""
    database, source = _wanted(spec)
    return database.unknown_settings(source.get(), database.user(), spec.settings)


def down(name: str) -> None:
    """Ends an instance and removes everything of it."""
    sweep()
    _remove(find_instance(name))


def down_all() -> list[str]:
    """Ends every instance, whoever started it, and removes what is left of others. Returns the names. Folders that are none of the lab's stay."""
    ended = []
    for instance in _sound_instances():
        _remove(instance)
        ended.append(instance.name)
    sweep()
    for folder in filter(_is_of_lab, _folders()):
        _remove_folder(folder)
        ended.append(folder.name)
    return ended


def sizes() -> dict[str, int]:
    """What `down_all` would end and remove, by name: bytes on disk."""
    return {folder.name: _size(folder) for folder in _folders() if _is_of_lab(folder)}


def foreign() -> list[Path]:
    """Folders that lie among the instances and are none of the lab's: nobody removes them."""
    return [folder for folder in _folders() if not _is_of_lab(folder)]


def _size(folder: Path) -> int:
    """Bytes of the files in a folder. Servers make and remove some of them meanwhile."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += (Path(place) / name).lstat().st_size
    return total


def _is_of_lab(folder: Path) -> bool:
    """Whether a folder is that of an instance: it has a record, sound or not, or its processes run."""
    return (folder / RECORD_FILE).exists() or processes.is_anything_started_for(folder)


def sweep() -> list[str]:
    """Ends what belongs to nobody: instances whose owner is gone, and processes whose instance has no record any more."""
    swept = []
    for instance in _sound_instances():
        if instance.is_abandoned:
            _remove(instance)
            swept.append(instance.name)
    return swept


@contextlib.contextmanager
def borrowed(spec: ServerSpec) -> Iterator[Instance]:
    """A server for this process alone, ended whatever happens."""
    instance = up(spec)
    try:
        yield instance
    finally:
        _remove(instance)


def used_as(instance: Instance) -> str:
    """How commands are told to use an instance: an option and its value."""
    return f"{LAB_SERVERS[instance.database].used_as} lab:{instance.name}"


def url_of(instance: Instance) -> str:
    """The target's URL; it names the file of credentials instead of showing them."""
    return LAB_SERVERS[instance.database].url(instance)


def add_node(name: str, report: Report | None = None) -> Node:
    """Starts one more node and makes it part of the cluster; tells how far it is where that takes long."""
    return add_nodes(name, 1, report)[0]


def add_nodes(name: str, count: int, report: Report | None = None) -> list[Node]:
    """Starts more nodes, all at once, and makes them part of the cluster; what that costs, `at_once_costs` says.

    Args:
        name: that of the instance.
        count: how many nodes.
        report: told in words how far joining is, where that takes long.

    Returns:
        The new nodes. Where one does not come up, none of them is left.

    Raises:
        UsageError: for what is no cluster.
        FailedError: where an address is taken, or a node does not come up.

    """
    instance, database, software, user = _cluster(name)
    nodes = [_next_node(instance, number, database) for number in range(1, count + 1)]
    more = of_more_nodes(instance.limits, len(instance.nodes), len(instance.nodes) + count)
    started = instance.model_copy(update={"nodes": [*instance.nodes, *nodes], "limits": more})
    started.write()
    try:
        start_coordinator_again(started, database, software, user)
        for node in nodes:
            create_and_launch(Place(started, node, software, user, joining=tuple(nodes)), database)
            started.write()
        for node in nodes:
            wait_until_ready(started, node, database, report)
        database.add_nodes(instance, nodes, software, user)
    except BaseException:
        for node in nodes:
            end_and_remove_node(instance, node, database)
        apply_memory(instance.limits)
        instance.write()
        raise
    return nodes


def _next_node(instance: Instance, ahead: int, database: LabDatabase) -> Node:
    """The node that is so many behind the last one. Raises FailedError where its address is taken."""
    number = max(node.number for node in instance.nodes) + ahead
    node = Node(number=number, host=addresses.address(instance.cluster, number), port=instance.nodes[0].port)
    for port in (node.port, *database.other_ports):
        if not addresses.is_free(instance.cluster, number, port):
            raise FailedError(f"{node.host}:{port} is in use by somebody else")
    return node


def at_once_costs(name: str) -> str:
    """What it costs when nodes of a cluster join all at once, in words."""
    return _cluster(name)[1].at_once_costs


def balance(name: str) -> None:
    """Has all nodes of a cluster take equal shares of the data. Raises FailedError."""
    instance, database, _, _ = _cluster(name)
    database.balance(instance)


def drop_moved(name: str) -> None:
    """Has all nodes of a cluster delete what they still hold of data that have moved to others. Raises FailedError."""
    instance, database, _, user = _cluster(name)
    database.drop_moved(instance, user)


def start_node(name: str, number: int | None = None) -> Node:
    """Starts a node that is down (the first one if none is named) with the data that it has on disk."""
    instance, database, software, user = _known(name)
    down = [node for node in _named(instance, number) if node.find() is None]
    if not down:
        runs = f"node {number} runs" if number is not None else "all of its nodes run"
        raise UsageError(f"{name}: {runs}; only one that is down can be started")
    node = down[0]
    try:
        start_coordinator_again(instance, database, software, user)
        launch(Place(instance, node, software, user), database)
        instance.write()
        wait_until_ready(instance, node, database)
        if isinstance(database, LabCluster):
            database.rejoin(instance, software, user)
    except BaseException:
        end_process(node, database)
        raise
    return node


def stop_node(name: str, number: int) -> Node:
    """Ends a node, gracefully, whose data stay on disk: `start_node` brings it back."""
    instance, database, _, _ = _known(name)
    node = _named(instance, number)[0]
    end_process(node, database)
    return node


def knows_is_down(name: str, number: int) -> bool:
    """Whether the other nodes of a cluster have noticed that a node does not answer."""
    instance, database, software, user = _cluster(name)
    return database.knows_is_down(instance, _named(instance, number)[0], software, user)


def restart(name: str) -> None:
    """Ends all nodes and starts them again, at the same time, with the data that they have on disk."""
    instance, database, software, user = _known(name)
    for node in instance.nodes:
        end_process(node, database)
    _launch_all(instance, database, software, user)


def stop(name: str) -> None:
    """Ends all processes of an instance, gracefully: their data stay on disk, and `start` brings them back."""
    instance, database, _, _ = _known(name)
    for node in [*instance.nodes, *([instance.coordinator] if instance.coordinator else [])]:
        end_process(node, database, patience_s=KEEP_WITHIN_S)


def keep(name: str) -> None:
    """Ends an instance for good whose nodes write everything before: others start with their data (`data_of`). Raises FailedError."""
    instance, database, _, user = _known(name)
    for node in instance.nodes:
        database.write_all(instance, node, user)
    for node in instance.nodes:
        end_process(node, database)
    instance.state = "kept"
    instance.write()


def start(name: str) -> Instance:
    """Starts an instance again that was stopped, with the data that it has on disk, and returns when it answers."""
    instance, database, software, user = _known(name)
    _launch_all(instance, database, software, user)
    return instance


def _launch_all(instance: Instance, database: LabDatabase, software: Path, user: ServerUser) -> None:
    """Starts all nodes of an instance, none of which runs."""
    start_coordinator_again(instance, database, software, user)
    for node in instance.nodes:
        launch(Place(instance, node, software, user), database)
        instance.write()
    for node in instance.nodes:
        wait_until_ready(instance, node, database)
    if isinstance(database, LabCluster):
        database.rejoin(instance, software, user)


def empty_caches(name: str) -> None:
    """Empties the caches of all nodes while they run. Raises FailedError for a database that cannot do that."""
    instance, database, _, user = _known(name)
    for node in instance.nodes:
        database.empty_caches(instance, node, user)


def snapshot(name: str) -> Snapshot | None:
    """Has all nodes write their data to disk at once; None of a database that has no such command. Raises FailedError."""
    instance, database, software, user = _known(name)
    taken = [database.snapshot(instance, node, software, user) for node in instance.nodes]
    known = [snapshot for snapshot in taken if snapshot is not None]
    return Snapshot(sum(of_node.total_bytes for of_node in known), sum(of_node.took_s for of_node in known)) if known else None


def remove_node(name: str, number: int | None = None) -> Node:
    """Takes a node out of the cluster (the last one if none is named) and ends it."""
    instance, database, software, user = _cluster(name)
    node = _named(instance, number)[-1]
    if len(instance.nodes) <= database.nodes:
        raise UsageError(f"{name} has {len(instance.nodes)} nodes, which is the least for {database.name}")
    database.remove_node(instance, node, software, user)
    end_and_remove_node(instance, node, database)
    left = instance.model_copy(update={"nodes": [other for other in instance.nodes if other is not node]})
    left.write()
    left.model_copy(update={"limits": of_more_nodes(left.limits, len(instance.nodes), len(left.nodes))}).write()
    return node


def _named(instance: Instance, number: int | None) -> list[Node]:
    """The node of a number; all of them if none is named."""
    found = [node for node in instance.nodes if number in (None, node.number)]
    if not found:
        raise UsageError(f"{instance.name} has no node {number}; it has {', '.join(str(node.number) for node in instance.nodes)}")
    return found


def _cluster(name: str) -> tuple[Instance, LabCluster, Path, ServerUser]:
    instance, database, software, user = _known(name)
    if not isinstance(database, LabCluster):
        raise UsageError(f"{name} is one server of {database.name}, which has no nodes to add or remove")
    return instance, database, software, user


def _known(name: str) -> tuple[Instance, LabDatabase, Path, ServerUser]:
    sweep()
    instance = find_instance(name)
    database = require_server(instance.database)
    source = database.source(instance.version)
    if source is None:
        raise FailedError(f"{name}: {database.name} {instance.version} is not known any more")
    return instance, database, source.get(), database.user()


def _wanted(spec: ServerSpec) -> tuple[LabDatabase, Source]:
    """The kind of database, and where its version comes from. Raises UsageError."""
    database = require_server(spec.database)
    source = database.source(spec.version)
    if source is None:
        raise UsageError(
            f"{database.name} {spec.version}: expected one of {', '.join(source.version for source in database.sources)}"
        )
    return database, source


def _check(spec: ServerSpec, database: LabDatabase) -> None:
    if spec.name is not None and not _NAME.fullmatch(spec.name):
        raise UsageError(f"--name {spec.name}: expected small letters, digits and hyphens, a letter first")
    if spec.nodes is not None and not isinstance(database, LabCluster) and spec.nodes != 1:
        raise UsageError(f"--nodes {spec.nodes}: {database.name} is one server")
    if spec.nodes is not None and isinstance(database, LabCluster) and spec.nodes < database.nodes:
        raise UsageError(f"--nodes {spec.nodes}: {database.name} needs {database.nodes} masters at least")
    if spec.replicas and not database.has_replicas:
        raise UsageError(f"--replicas {spec.replicas}: nodes of {database.name} have no replicas of their own")


def _planned(spec: ServerSpec, database: LabDatabase, version: str, user: ServerUser) -> Instance:
    """The record of what is about to be started. The lab's lock is held."""
    taken = {folder.name for folder in _folders()}
    base = database.name.replace("+", "-")
    name = spec.name or next(name for name in (base, *(f"{base}-{n}" for n in range(2, len(taken) + 3))) if name not in taken)
    if name in taken:
        raise UsageError(
            f"--name {name}: the lab has an instance of this name; name another, or end it: sensorbench lab down {name}"
        )
    masters = spec.nodes or database.nodes
    count = masters * (1 + spec.replicas)
    if spec.data_of is not None:
        kept = find_instance(spec.data_of)
        check_kept(kept, database, version, count)
        cluster, port = addresses.share(kept.cluster, count, (database.port, *database.other_ports))
    elif spec.beside is not None:
        cluster, port = addresses.share(find_instance(spec.beside).cluster, count, (database.port, *database.other_ports))
    else:
        others = {instance.cluster for instance in read_instances()} | isolation.taken_clusters()
        cluster, port = addresses.lease(count, database.port, database.other_ports, others)
    host = isolation.address(cluster) if database.is_isolated else None
    return Instance(
        name=name,
        database=database.name,
        version=version,
        created=datetime.now(UTC).replace(microsecond=0),
        owner=ProcessId.this(),
        stays=spec.stays,
        cluster=cluster,
        replicas=spec.replicas,
        nodes=[Node(number=number, host=host or addresses.address(cluster, number), port=port) for number in range(1, count + 1)],
        coordinator=planned_coordinator(cluster, database),
        settings=spec.settings,
        limits=limits(name, spec.cpus, spec.memory_bytes),
        server_user=user.name,
        data_of=spec.data_of,
    )


def _start(instance: Instance, database: LabDatabase, software: Path, user: ServerUser) -> None:
    database.make_credentials(instance)
    for node in instance.all_processes:
        create_and_launch(Place(instance, node, software, user), database)
        instance.write()
        wait_until_others_may_start(instance, node, database)
    for node in instance.nodes:
        wait_until_ready(instance, node, database)
    if isinstance(database, LabCluster):
        database.join(instance, software, user)


def _remove(instance: Instance) -> None:
    """Ends an instance's processes and removes its folder. What it stored is lost, so nothing is waited for."""
    found = {process.pid: process for process in processes.processes_of(instance.folder)}
    for node in instance.all_processes:
        if process := node.find():
            found[process.pid] = process
    processes.end(list(found.values()), signal=LAB_SERVERS[instance.database].stop_signal, patience_s=STOP_WITHIN_S)
    remove_group(instance.limits)
    shutil.rmtree(instance.folder, ignore_errors=True)


def _remove_folder(folder: Path) -> None:
    """A folder without a sound record: its processes are known by their environment alone."""
    processes.end(processes.processes_of(folder), signal=15, patience_s=STOP_WITHIN_S)
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
    """The main process of each node, and the coordinator, by a name for reports."""
    found = {}
    for node in instance.all_processes:
        if process := node.find():
            found[process_name(instance, node)] = process
    return found


def instance_at(url: str) -> Instance | None:
    """The instance whose server a target's URL names by an address of its own; None when it is no server of the lab."""
    hosts = set(url.partition("://")[2].partition("?")[0].partition("/")[0].split(","))
    # Instances that started with the data of a kept one have its addresses.
    others = (instance for instance in _sound_instances() if instance.state != "kept")
    return next((instance for instance in others if hosts & {f"{node.host}:{node.port}" for node in instance.nodes}), None)


def process_ids(instance: Instance) -> list[int]:
    """The processes of an instance that are in this machine's process table, whatever its record says."""
    return sorted(process.pid for process in processes.processes_of(instance.folder))


def process_name(instance: Instance, node: Node) -> str:
    """What the main process of a node is called in reports."""
    if node.is_coordinator:
        return f"{instance.name}:coordinator"
    return f"{instance.name}:{node.number}" if len(instance.nodes) > 1 else instance.name
