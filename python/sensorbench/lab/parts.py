"""The parts of an instance that are on hosts: each is prepared before a node comes, has a record in the lab there, and is removed with its last
node.
"""

import logging
import re
from collections.abc import Sequence

import psutil

from sensorbench.errors import FailedError, LostHostError, UsageError
from sensorbench.hosts.host import Host
from sensorbench.lab import addresses
from sensorbench.lab.database import LabDatabase
from sensorbench.lab.instance import Instance, Node, Part
from sensorbench.lab.limits import limits, with_memory
from sensorbench.lab.locks import locked
from sensorbench.lab.placement import host_named, hosts_of, is_running, places_of
from sensorbench.lab.processes import ProcessId
from sensorbench.lab.registry import require_server
from sensorbench.lab.removal import remove_part, sweep
from sensorbench.lab.state_dirs import instances_folder

# What names of cgroups have none of.
_NO_NAME = re.compile(r"[^\w.-]")
_log = logging.getLogger(__name__)


class Guard:
    """Removes the part of an instance that belongs to one process alone when nobody has heard of that process for a while. It is kept on the host."""

    def __init__(self, name: str, identity: str) -> None:
        self._name, self._identity = name, identity

    def close(self) -> None:
        """Removes it, if it is still there."""
        remove_part(self._name, self._identity)


# Those that were set up from here: hosts keep them as long as this process does.
_guards: list[Guard] = []


def prepare(instance: Instance, host: str, memory_bytes: int | None, min_bytes: int | None, credentials: str | None) -> Part:
    """Gets the software, and makes the record and the limits of a part.

    Args:
        instance: with the nodes that are to be here.
        host: what this machine is called among the hosts.
        memory_bytes: what its nodes may use.
        min_bytes: what its nodes take before there are any data, where that is known.
        credentials: the file with user and password, if there is one.

    Returns:
        The part, of which there is a record from now on.

    Raises:
        UsageError: if the lab has such an instance already, or the nodes do not fit into memory.
        FailedError: if the software cannot be had.

    """
    database = require_server(instance.database)
    source = database.source(instance.version)
    if source is None:
        raise FailedError(f"host {host}: its sensorbench does not know {database.name} {instance.version}")
    sweep()
    source.get()
    available = psutil.virtual_memory().available
    if min_bytes is not None and min_bytes > available:
        raise UsageError(
            f"host {host}: its nodes of {database.name} take {min_bytes / 1e9:,.1f} GB before there are any data, and it has "
            f"{available / 1e9:,.1f} GB; use more hosts or a smaller --server-memory"
        )
    with locked(instances_folder() / "lock"):
        if instance.folder.exists():
            raise UsageError(
                f"host {host}: the lab there has an instance {instance.name} already ({instance.folder}); choose another name, or give each "
                "host a lab folder of its own"
            )
        part = Part(
            folder=instance.folder,
            owner=ProcessId.this(),
            limits=limits(_NO_NAME.sub("-", f"{instance.name}-{host}"), None, memory_bytes),
        )
        own = instance.as_part(host, part)
        own.write()
    if credentials is not None:
        own.credentials.touch(mode=0o600)
        own.credentials.write_text(credentials, encoding="utf-8")
    return part


def next_nodes(
    numbers: Sequence[int], database: LabDatabase, hosts: Sequence[Host], others: Sequence[Node], cluster: int, port: int
) -> list[Node]:
    """Nodes that are to be started, each on the host that has the fewest: round robin.

    Args:
        numbers: theirs.
        database: what they are.
        hosts: where they may be.
        others: the nodes that the cluster has already.
        cluster: its number, which is in loopback addresses.
        port: the one that nodes have at addresses of their own.

    Raises:
        UsageError: if there are too few hosts for them.
        FailedError: if an address is taken.

    """
    nodes = list(others)
    for number in numbers:
        host = min(hosts, key=lambda candidate: sum(node.placed_on == candidate.name for node in nodes))
        if addresses.is_loopback(host.address):
            nodes.append(_on_this_machine(number, database, host, cluster, port))
            continue
        taken = [node.port for node in nodes if node.placed_on == host.name]
        if taken and database.other_ports:
            raise UsageError(
                f"--hosts: {len(others) + len(numbers)} nodes of {database.name} need as many hosts, since each has its ports at the address "
                f"of its host; there are {len(hosts)} that may have nodes"
            )
        free = host.call(addresses.free_port, host.address, database.port, database.other_ports, taken)
        nodes.append(Node(number=number, host=host.address, port=free, placed_on=host.name))
    return nodes[len(others) :]


def _on_this_machine(number: int, database: LabDatabase, host: Host, cluster: int, port: int) -> Node:
    """A node with a loopback address of its own, which several can have on one host. Raises FailedError if that is taken."""
    node = Node(number=number, host=addresses.address(cluster, number), port=port, placed_on=host.name)
    for used in (port, *database.other_ports):
        if not addresses.is_free(cluster, number, used):
            raise FailedError(f"{node.host}:{used} is in use by another program")
    return node


def provide(instance: Instance, database: LabDatabase) -> None:
    """Has a part on each host that has nodes, with the memory of those."""
    if instance.hosts is None:
        return
    memory_bytes, idle_bytes = instance.limits.memory_bytes, database.min_memory(instance.settings)
    for host in places_of(instance):
        count = sum(node.placed_on == host.name for node in instance.nodes)
        wanted = None if memory_bytes is None else memory_bytes * count // len(instance.nodes)
        part = instance.parts.get(host.name)
        if part is None:
            _log.info("prepare host %s for %s", host.name, instance.name)
            credentials = instance.credentials.read_text(encoding="utf-8") if instance.credentials.exists() else None
            needed = None if idle_bytes is None else idle_bytes * count
            instance.parts[host.name] = host.call(prepare, instance, host.name, wanted, needed, credentials)
            if not instance.stays:
                _guards.append(host.keep(Guard, instance.name, instance.identity))
        elif wanted is not None and part.limits.memory_bytes != wanted:
            changed = host.call(with_memory, part.limits, wanted)
            instance.parts[host.name] = part.model_copy(update={"limits": changed})
        instance.write()
    kept_by = dict.fromkeys(part.limits.memory_by for part in instance.parts.values())
    instance.limits = instance.limits.model_copy(update={"memory_by": ", ".join(kept_by)})


def record_everywhere(instance: Instance) -> None:
    """Writes down how an instance is now, here and on its hosts."""
    instance.write()
    for host in hosts_of(instance):
        host.call(Instance.write, instance.part_on(host.name))


def drop_empty_parts(instance: Instance) -> None:
    """Removes the parts of hosts that have no node any more. A host that is gone keeps its own."""
    used = {node.placed_on for node in instance.nodes}
    for name in [name for name in instance.parts if name not in used]:
        try:
            host_named(instance, name).call(remove_part, instance.name, instance.identity)
        except LostHostError as error:
            _log.warning("%s: its folder stays on host %s: %s", instance.name, name, error)
        del instance.parts[name]


def require_hosts(instance: Instance) -> None:
    """Raises LostHostError unless all hosts of an instance answer: what is done to a cluster needs to know which of its nodes are running."""
    for host in hosts_of(instance):
        host.call(is_running, None)
