"""Where the nodes of an instance are: on this machine, or on hosts. Whoever does something to a node has it done there (`host_of`), and needs not
know which it is.
"""

import atexit
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from sensorbench.errors import FailedError, LostHostError, UsageError
from sensorbench.hosts.host import Host
from sensorbench.lab.instance import HERE_NAME, Instance, Node
from sensorbench.lab.processes import ProcessId
from sensorbench.lab.state_dirs import instances_folder
from sensorbench.progress import ProgressReporter

if TYPE_CHECKING:
    from sensorbench.hosts.chosen import ChosenHosts
    from sensorbench.hosts.hosts_file import Role
    from sensorbench.hosts.pool import HostPool

_NODE: "Role" = "node"
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


class _Here:
    """The machine that the lab is used on, as a host."""

    name = HERE_NAME
    # Each node has a loopback address of its own.
    address = ""

    def call(self, function: Callable[_Arguments, _Result], *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        """What a function returns."""
        return function(*args, **kwargs)

    def keep(self, kind: Callable[_Arguments, _Result], *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        """An object."""
        return kind(*args, **kwargs)


HERE: Host = _Here()


class _Gone:
    """A host that an instance has nodes on, and that is not among those that can be reached."""

    address = ""

    def __init__(self, name: str, why: str) -> None:
        self.name = name
        self._why = why

    def call(self, function: Callable[_Arguments, _Result], *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        """Raises LostHostError."""
        raise LostHostError(self._why)

    def keep(self, kind: Callable[_Arguments, _Result], *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        """Raises LostHostError."""
        raise LostHostError(self._why)


@dataclass(frozen=True)
class Reached:
    """Hosts that may have nodes, in the order in which they are named; and of those that could not be reached why not, by name."""

    hosts: Sequence[Host]
    failures: Mapping[str, str] = field(default_factory=dict)


# By what `--hosts` said: the hosts that are connected until `disconnect` is called, or why they all cannot be.
_connected: dict[str, Reached | FailedError] = {}
_connections = ExitStack()


def chosen_hosts(text: str) -> "ChosenHosts":
    """The hosts that a text names, which are not reached. Processes of this machine that stand for hosts have lab folders of their own, which other
    commands find again. Raises UsageError.
    """
    from sensorbench.hosts.chosen import choose_hosts

    chosen = choose_hosts(text)
    entries = [
        entry if entry.is_ssh or entry.lab_folder else entry.model_copy(update={"lab_folder": str(_lab_of(entry.name))})
        for entry in chosen.file.host
    ]
    return replace(chosen, file=chosen.file.model_copy(update={"host": entries}))


def host_names(text: str | None) -> list[str]:
    """The hosts that a text names, for manifests; none of None. Raises UsageError."""
    return [] if text is None else chosen_hosts(text).names


def _lab_of(host: str) -> Path:
    return instances_folder().parent / "hosts" / host


def may_have_nodes(text: str) -> bool:
    """Whether one of the hosts that a text names has the role for nodes. Raises UsageError."""
    entries = chosen_hosts(text).file.host
    return not entries or any(_NODE in entry.roles for entry in entries)


def connected_hosts(text: str) -> Sequence[Host]:
    """The hosts that nodes may be placed on, in the order in which they are named.

    Args:
        text: what `--hosts` says.

    Returns:
        Hosts; they stay connected until `disconnect` is called, or this process ends.

    Raises:
        UsageError: for what names no host.
        FailedError: if one of them cannot be reached.

    """
    reached = _connection(text)
    for name, why in reached.failures.items():
        raise FailedError(f"--hosts {text}: host {name} cannot be reached: {why}")
    if not reached.hosts:
        raise UsageError(f'--hosts {text}: no host has the role "{_NODE}"; add it to the roles of one')
    return reached.hosts


def _connection(text: str) -> Reached:
    key = absolute(text)
    if key not in _connected:
        try:
            _connected[key] = _connections.enter_context(_reached(text))
        except FailedError as error:
            _connected[key] = error
        atexit.register(disconnect)
    found = _connected[key]
    if isinstance(found, FailedError):
        raise found
    return found


def absolute(text: str) -> str:
    """What `--hosts` says, for a record that is read in any folder: a file by its whole path."""
    return str(Path(text).resolve()) if Path(text).is_file() else text


def disconnect() -> None:
    """Leaves all hosts that were connected; what runs there keeps running."""
    _connected.clear()
    _connections.close()


@contextmanager
def lent(pool: "HostPool | None") -> Iterator[None]:
    """Has the hosts that a benchmark has reached be those of the lab meanwhile, so that each has one process."""
    if pool is None:
        yield
        return
    key = absolute(pool.chosen.text)
    _connected[key] = Reached(pool.of_role(_NODE))
    try:
        yield
    finally:
        _connected.pop(key, None)


@contextmanager
def _reached(text: str) -> Iterator[Reached]:
    """The hosts that may have nodes, while the context lasts."""
    from sensorbench.hosts.pool import HostPool

    with HostPool(chosen_hosts(text), ProgressReporter(quiet=True), demands_all=False) as pool:
        others = {entry.name for entry in pool.chosen.file.host if _NODE not in entry.roles}
        failures = {name: why for name, why in pool.failures.items() if name not in others}
        yield Reached(pool.of_role(_NODE), failures)


def host_of(instance: Instance, node: Node) -> Host:
    """Where a node is. Asking a host that cannot be reached raises LostHostError, when it is asked."""
    return host_named(instance, node.placed_on)


def host_named(instance: Instance, name: str) -> Host:
    """One of the hosts of an instance. Asking one that cannot be reached raises LostHostError, when it is asked."""
    if name == HERE_NAME:
        return HERE
    if instance.hosts is None:
        raise AssertionError(f"{instance.name} has a node on {name} and no hosts")
    try:
        reached = _connection(instance.hosts)
    except (FailedError, UsageError) as error:
        return _Gone(name, f"host {name} cannot be reached: {error}")
    if name in reached.failures:
        return _Gone(name, f"host {name} cannot be reached: {reached.failures[name]}")
    unnamed = _Gone(name, f"host {name} is not among those that --hosts {instance.hosts} names any more")
    return next((host for host in reached.hosts if host.name == name), unnamed)


def hosts_of(instance: Instance) -> list[Host]:
    """The hosts that have a part of an instance; none of one whose nodes are all on this machine."""
    return [host_named(instance, name) for name in instance.parts]


def places_of(instance: Instance) -> list[Host]:
    """Where its nodes are, this machine among them if it has one."""
    return [host_named(instance, name) for name in dict.fromkeys(node.placed_on for node in instance.all_processes)]


def runs(instance: Instance, node: Node) -> bool:
    """Whether the process of a node runs. Raises LostHostError if that cannot be known."""
    return host_of(instance, node).call(is_running, node.process)


def is_running(process: ProcessId | None) -> bool:
    """Whether a process runs on this machine."""
    return process is not None and process.find() is not None


def living(instance: Instance) -> list[Node]:
    """The nodes that are known to run: not those on hosts that are gone."""
    return list(_living(instance))


def _living(instance: Instance) -> Iterator[Node]:
    for node in instance.nodes:
        try:
            if runs(instance, node):
                yield node
        except LostHostError:
            continue
