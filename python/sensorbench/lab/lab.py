"""Starting and ending real servers: private, on loopback addresses of their own or on hosts, without Docker.

Whatever ends the lab itself, the next call finds what still runs and ends what belongs to nobody (`sweep`).
"""

import logging
import re
import secrets
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from sensorbench.errors import FailedError, LostHostError, UsageError
from sensorbench.hosts.host import Host
from sensorbench.lab import addresses, at_node, isolation
from sensorbench.lab.database import LabCluster, LabDatabase, Snapshot
from sensorbench.lab.instance import Instance, Node, find_instance, read_instances
from sensorbench.lab.kept_data import check_kept
from sensorbench.lab.limits import Limits, apply_memory, limits, of_more_nodes
from sensorbench.lab.locks import locked
from sensorbench.lab.nodes import (
    KEEP_WITHIN_S,
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
from sensorbench.lab.parts import drop_empty_parts, next_nodes, provide, record_everywhere, require_hosts
from sensorbench.lab.placement import HERE, absolute, connected_hosts, host_of, hosts_of, runs
from sensorbench.lab.process_usage import WatchedProcess
from sensorbench.lab.processes import ProcessId
from sensorbench.lab.registry import LAB_SERVERS, databases_on_hosts, require_server
from sensorbench.lab.removal import (
    folders,
    is_of_lab,
    process_ids_here,
    remove,
    remove_after_failure,
    remove_folder,
    size_of_instance,
    sound_instances,
    sweep,
    sweep_hosts,
)
from sensorbench.lab.server_spec import ServerSpec
from sensorbench.lab.software import Source
from sensorbench.lab.state_dirs import ServerUser, instances_folder

_log = logging.getLogger(__name__)
_ENDED_AT_ONCE = 8
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
    hosts: Sequence[Host] = []
    if spec.hosts is not None:
        hosts = connected_hosts(spec.hosts)
        sweep_hosts(spec.hosts, hosts)
    with locked(instances_folder() / "lock"):
        instance = _planned(spec, database, source.version, user, hosts)
        instance.write()
    try:
        _start(instance, database, software, user)
        instance.state = "running"
        record_everywhere(instance)
    except BaseException:
        remove_after_failure(instance)
        raise
    return instance


def min_memory(spec: ServerSpec) -> int | None:
    """Bytes that the processes of all nodes take together, apart from data; None if it is not known. Nothing is started."""
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
    """Ends an instance and removes everything of it. Raises LostHostError with the nodes on hosts that cannot be reached; they stay in its record."""
    sweep()
    remove(find_instance(name))


def down_all() -> list[str]:
    """Ends every instance, whoever started it, and removes what is left of others. Returns the names. Folders that are none of the lab's stay.

    Raises LostHostError, after all else is removed, with the nodes on hosts that cannot be reached.
    """
    instances = sound_instances()
    # Servers take seconds to end, and few of them a processor.
    with ThreadPoolExecutor(_ENDED_AT_ONCE) as at_once:
        problems = list(at_once.map(_removed, instances))
    lost = [problem for problem in problems if problem is not None]
    ended = [instance.name for instance, problem in zip(instances, problems, strict=True) if problem is None]
    sweep()
    left = {instance.name for instance in sound_instances() if instance.state == "being removed"}
    for folder in (folder for folder in folders() if is_of_lab(folder) and folder.name not in left):
        remove_folder(folder)
        ended.append(folder.name)
    if lost:
        raise LostHostError("; ".join(lost))
    return ended


def _removed(instance: Instance) -> str | None:
    """Ends an instance and removes everything of it; what of it is left, because a host cannot be reached."""
    try:
        remove(instance)
    except LostHostError as error:
        return str(error)
    return None


def sizes() -> dict[str, int]:
    """What `down_all` would end and remove, by name: bytes on disk, those on hosts that can be reached among them."""
    found = {folder.name: size_of_instance(folder.name) for folder in folders() if is_of_lab(folder)}
    for instance in sound_instances():
        for host in hosts_of(instance):
            try:
                found[instance.name] += host.call(size_of_instance, instance.name)
            except LostHostError as error:
                _log.warning("%s: %s", instance.name, error)
    return found


def foreign() -> list[Path]:
    """Folders that lie among the instances and are none of the lab's: nobody removes them."""
    return [folder for folder in folders() if not is_of_lab(folder)]


@contextmanager
def borrowed(spec: ServerSpec) -> Iterator[Instance]:
    """A server for this process alone, ended whatever happens. Raises LostHostError if something of it may be left on a host."""
    instance = up(spec)
    try:
        yield instance
    except BaseException:
        remove_after_failure(instance)
        raise
    remove(instance)


def used_as(instance: Instance) -> str:
    """The option and value by which commands use an instance."""
    return f"{LAB_SERVERS[instance.database].used_as} lab:{instance.name}"


def url_of(instance: Instance) -> str:
    """The target's URL; it names the file of credentials instead of showing them."""
    return LAB_SERVERS[instance.database].url(instance)


def add_node(name: str, report: Report | None = None, *, hosts: str | None = None) -> Node:
    """Starts one more node and makes it part of the cluster; reports progress if that takes long. `hosts`: as of `add_nodes`."""
    return add_nodes(name, 1, report, hosts=hosts)[0]


def add_nodes(name: str, count: int, report: Report | None = None, *, hosts: str | None = None) -> list[Node]:
    """Starts more nodes, all at once, and makes them part of the cluster; what that costs, `at_once_costs` says.

    Args:
        name: that of the instance.
        count: how many nodes.
        report: called with the progress of joining, in words, if that takes long.
        hosts: where its nodes may be from now on, in the words of `--hosts`, where that is not as it was started; those that have nodes among them.

    Returns:
        The new nodes. Where one does not come up, none of them is left; those of a host that was lost meanwhile stay in the record.

    Raises:
        UsageError: for what is not a cluster.
        FailedError: if an address is taken, or a node does not come up.
        LostHostError: if a host of the cluster cannot be reached.

    """
    instance, database, software, user = _cluster(name)
    if hosts is not None:
        instance = instance.model_copy(update={"hosts": _more_hosts(instance, hosts)})
    require_hosts(instance)
    nodes = _next_nodes(instance, count, database)
    more = of_more_nodes(instance.limits, len(instance.nodes), len(instance.nodes) + count)
    update = {"nodes": [*instance.nodes, *nodes], "limits": more, "parts": dict(instance.parts)}
    started = instance.model_copy(update=update)
    started.write()
    try:
        provide(started, database)
        start_coordinator_again(started, database)
        for node in nodes:
            create_and_launch(started, node, nodes)
            started.write()
        for node in nodes:
            wait_until_ready(started, node, database, report)
        database.add_nodes(instance, nodes, software, user)
        record_everywhere(started)
    except BaseException:
        _take_back(started, nodes, instance)
        apply_memory(instance.limits)
        raise
    return nodes


def _next_nodes(instance: Instance, count: int, database: LabDatabase) -> list[Node]:
    """The nodes that come next. Raises FailedError if an address is taken."""
    hosts = [HERE] if instance.hosts is None else connected_hosts(instance.hosts)
    last = max(node.number for node in instance.nodes)
    numbers = range(last + 1, last + count + 1)
    return next_nodes(numbers, database, hosts, instance.nodes, instance.cluster, instance.nodes[0].port)


def _take_back(started: Instance, nodes: Sequence[Node], before: Instance) -> None:
    """Ends nodes that did not become part of a cluster. Those on hosts that are gone stay in its record, since nobody knows whether they run."""
    left = []
    for node in nodes:
        try:
            end_and_remove_node(started, node)
        except LostHostError as error:
            _log.warning("%s: node %d may still run: %s", started.name, node.number, error)
            left.append(node)
    after = started.model_copy(update={"nodes": [*before.nodes, *left], "limits": before.limits})
    drop_empty_parts(after)
    after.write()


def _more_hosts(instance: Instance, hosts: str) -> str:
    """Where nodes may be from now on. Raises UsageError if those that there are would be elsewhere."""
    if instance.hosts is None:
        raise UsageError(
            f"--hosts {hosts}: the nodes of {instance.name} are on this machine; start an instance with: lab up --hosts"
        )
    missing = set(instance.parts) - {host.name for host in connected_hosts(hosts)}
    if missing:
        raise UsageError(f"--hosts {hosts}: {instance.name} has nodes on {', '.join(sorted(missing))}; name these hosts, too")
    return absolute(hosts)


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
    down = [node for node in _named(instance, number) if not runs(instance, node)]
    if not down:
        up_ = f"node {number} is running" if number is not None else "all of its nodes are running"
        raise UsageError(f"{name}: {up_}; only one that is down can be started")
    node = down[0]
    try:
        start_coordinator_again(instance, database)
        launch(instance, node)
        record_everywhere(instance)
        wait_until_ready(instance, node, database)
        if isinstance(database, LabCluster):
            database.rejoin(instance, software, user)
    except LostHostError:
        raise
    except BaseException:
        end_process(instance, node)
        raise
    return node


def stop_node(name: str, number: int) -> Node:
    """Ends a node, gracefully, whose data stay on disk: `start_node` brings it back."""
    instance, _, _, _ = _known(name)
    node = _named(instance, number)[0]
    end_process(instance, node)
    return node


def signal_node(name: str, number: int, wanted: signal.Signals) -> None:
    """Sends a signal to a node and all its processes, where it is. Raises FailedError if it is not running."""
    instance = find_instance(name)
    node = _named(instance, number)[0]
    if node.process is None or not host_of(instance, node).call(at_node.send_signal, node.process, wanted):
        raise FailedError(f"{name}: node {number} is not running")


def knows_is_down(name: str, number: int) -> bool:
    """Whether the other nodes of a cluster have noticed that a node does not answer."""
    instance, database, software, user = _cluster(name)
    return database.knows_is_down(instance, _named(instance, number)[0], software, user)


def restart(name: str) -> None:
    """Ends all nodes and starts them again, at the same time, with the data that they have on disk."""
    instance, database, software, user = _known(name)
    for node in instance.nodes:
        end_process(instance, node)
    _launch_all(instance, database, software, user)


def stop(name: str) -> None:
    """Ends all processes of an instance, gracefully: their data stay on disk, and `start` brings them back."""
    instance, _, _, _ = _known(name)
    for node in [*instance.nodes, *([instance.coordinator] if instance.coordinator else [])]:
        end_process(instance, node, patience_s=KEEP_WITHIN_S)


def keep(name: str) -> None:
    """Ends an instance for good whose nodes write everything before: others start with their data (`data_of`). Raises FailedError."""
    instance, database, _, user = _known(name)
    for node in instance.nodes:
        database.write_all(instance, node, user)
    for node in instance.nodes:
        end_process(instance, node)
    instance.state = "kept"
    record_everywhere(instance)


def start(name: str) -> Instance:
    """Starts an instance again that was stopped, with the data that it has on disk, and returns when it answers."""
    instance, database, software, user = _known(name)
    _launch_all(instance, database, software, user)
    return instance


def _launch_all(instance: Instance, database: LabDatabase, software: Path, user: ServerUser) -> None:
    """Starts all nodes of an instance, none of which runs."""
    start_coordinator_again(instance, database)
    for node in instance.nodes:
        launch(instance, node)
        instance.write()
    record_everywhere(instance)
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
    instance, _, _, _ = _known(name)
    taken = [
        host_of(instance, node).call(at_node.snapshot, instance.part_on(node.placed_on), node.number) for node in instance.nodes
    ]
    known = [snapshot for snapshot in taken if snapshot is not None]
    return Snapshot(sum(of_node.total_bytes for of_node in known), sum(of_node.took_s for of_node in known)) if known else None


def remove_node(name: str, number: int | None = None) -> Node:
    """Takes a node out of the cluster (the last one if none is named) and ends it."""
    instance, database, software, user = _cluster(name)
    node = _named(instance, number)[-1]
    if len(instance.nodes) <= database.nodes:
        raise UsageError(f"{name} has {len(instance.nodes)} nodes, the fewest that {database.name} can have")
    require_hosts(instance)
    database.remove_node(instance, node, software, user)
    end_and_remove_node(instance, node)
    left = instance.model_copy(update={"nodes": [other for other in instance.nodes if other is not node]})
    drop_empty_parts(left)
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
        raise FailedError(f"{name}: this sensorbench does not know {database.name} {instance.version}")
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
    if spec.hosts is not None:
        _check_hosts(spec, database)
    if spec.name is not None and not _NAME.fullmatch(spec.name):
        raise UsageError(f"--name {spec.name}: expected small letters, digits and hyphens, a letter first")
    if spec.nodes is not None and not isinstance(database, LabCluster) and spec.nodes != 1:
        raise UsageError(f"--nodes {spec.nodes}: {database.name} is one server")
    if spec.nodes is not None and isinstance(database, LabCluster) and spec.nodes < database.nodes:
        raise UsageError(f"--nodes {spec.nodes}: {database.name} needs at least {database.nodes} masters")
    if spec.replicas and not database.has_replicas:
        raise UsageError(f"--replicas {spec.replicas}: nodes of {database.name} have no replicas of their own")


def _check_hosts(spec: ServerSpec, database: LabDatabase) -> None:
    if not database.runs_on_hosts:
        can = ", ".join(databases_on_hosts())
        raise UsageError(f"--hosts: the lab starts {database.name} on this machine alone; expected one of {can}")
    if spec.beside is not None or spec.data_of is not None:
        raise UsageError("--hosts: nodes that share addresses or data with those of another instance are on this machine")
    if spec.cpus is not None:
        raise UsageError("--cpus names CPUs of this machine; leave it out, and limit CPUs with `cpus` in the file of --hosts")


def _planned(spec: ServerSpec, database: LabDatabase, version: str, user: ServerUser, hosts: Sequence[Host]) -> Instance:
    """The record of what is about to be started. The lab's lock is held."""
    taken = {folder.name for folder in folders()}
    base = database.name.replace("+", "-")
    name = spec.name or next(name for name in (base, *(f"{base}-{n}" for n in range(2, len(taken) + 3))) if name not in taken)
    if name in taken:
        raise UsageError(
            f"--name {name}: the lab has an instance of this name; choose another, or stop it: sensorbench lab down {name}"
        )
    masters = spec.nodes or database.nodes
    count = masters * (1 + spec.replicas)
    if hosts:
        cluster, port = _leased(database, count)
        nodes = next_nodes(range(1, count + 1), database, hosts, [], cluster, port)
        kept_by = Limits(memory_bytes=spec.memory_bytes)
    else:
        cluster, nodes = _nodes_here(spec, database, version, count)
        kept_by = limits(name, spec.cpus, spec.memory_bytes)
    return Instance(
        name=name,
        database=database.name,
        version=version,
        created=datetime.now(UTC).replace(microsecond=0),
        owner=ProcessId.this(),
        stays=spec.stays,
        cluster=cluster,
        replicas=spec.replicas,
        nodes=nodes,
        coordinator=planned_coordinator(cluster, database),
        settings=spec.settings,
        limits=kept_by,
        server_user=user.name,
        data_of=spec.data_of,
        hosts=absolute(spec.hosts) if spec.hosts is not None else None,
        identity=secrets.token_hex(16),
    )


def _nodes_here(spec: ServerSpec, database: LabDatabase, version: str, count: int) -> tuple[int, list[Node]]:
    """The nodes of an instance on this machine, and the number of the cluster, which is in their addresses."""
    if spec.data_of is not None:
        kept = find_instance(spec.data_of)
        check_kept(kept, database, version, count)
        cluster, port = addresses.share(kept.cluster, count, (database.port, *database.other_ports))
    elif spec.beside is not None:
        cluster, port = addresses.share(find_instance(spec.beside).cluster, count, (database.port, *database.other_ports))
    else:
        cluster, port = _leased(database, count)
    host = isolation.address(cluster) if database.is_isolated else None
    return cluster, [
        Node(number=number, host=host or addresses.address(cluster, number), port=port) for number in range(1, count + 1)
    ]


def _leased(database: LabDatabase, count: int) -> tuple[int, int]:
    """The number of a cluster that nobody has, and a port that is free at its addresses."""
    others = {instance.cluster for instance in read_instances()} | isolation.taken_clusters()
    return addresses.lease(count, database.port, database.other_ports, others)


def _start(instance: Instance, database: LabDatabase, software: Path, user: ServerUser) -> None:
    database.make_credentials(instance)
    database.write_tools(instance, software)
    provide(instance, database)
    for node in instance.all_processes:
        create_and_launch(instance, node)
        instance.write()
        wait_until_others_may_start(instance, node, database)
    for node in instance.nodes:
        wait_until_ready(instance, node, database)
    if isinstance(database, LabCluster):
        database.join(instance, software, user)


def server_processes(instance: Instance) -> dict[str, WatchedProcess]:
    """The main process of each node that is running, and the coordinator, by a name for reports. Raises LostHostError."""
    return {
        process_name(instance, node): WatchedProcess(node.process, host_of(instance, node))
        for node in instance.all_processes
        if node.process is not None and runs(instance, node)
    }


def server_process(instance: Instance, node: Node) -> WatchedProcess | None:
    """The main process of a node as the record has it, whether it runs or not; None of one that was never started."""
    return WatchedProcess(node.process, host_of(instance, node)) if node.process else None


def instance_at(url: str) -> Instance | None:
    """The instance whose server a target's URL names by an address of its own; None when it is not a server of the lab."""
    named = set(url.partition("://")[2].partition("?")[0].partition("/")[0].split(","))
    # Instances that started with the data of a kept one have its addresses.
    others = (instance for instance in sound_instances() if instance.state != "kept")
    return next((instance for instance in others if named & {f"{node.host}:{node.port}" for node in instance.nodes}), None)


def process_ids(instance: Instance) -> list[int]:
    """The processes of an instance that are in the process tables of its machines, whatever its record says. Raises LostHostError."""
    return [pid for place in (HERE, *hosts_of(instance)) for pid in place.call(process_ids_here, instance.name)]


def process_name(instance: Instance, node: Node) -> str:
    """What the main process of a node is called in reports."""
    if node.is_coordinator:
        return f"{instance.name}:coordinator"
    return f"{instance.name}:{node.number}" if len(instance.nodes) > 1 else instance.name
