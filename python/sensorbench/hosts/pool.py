"""The hosts of a command: reached while it is running, and left as they were."""

import logging
import os
import re
import socket
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

from sensorbench.errors import FailedError, LostHostError, UsageError
from sensorbench.hosts.build import Build, this_build
from sensorbench.hosts.chosen import ChosenHosts
from sensorbench.hosts.dask_host import DaskHost
from sensorbench.hosts.dask_parts import configured, new_credentials, security_of, security_of_client
from sensorbench.hosts.hosts_file import LOCAL, HostEntry, Role
from sensorbench.hosts.hosts_file import Scheduler as RunningScheduler
from sensorbench.hosts.launched import Launched, local_command, ssh_command
from sensorbench.hosts.messages import BeHost, BeScheduler, Credentials, Hello
from sensorbench.hosts.piped import ANSWERS_NO_MORE
from sensorbench.progress import ProgressReporter

if TYPE_CHECKING:
    from distributed import Client, Security

# Local hosts have addresses of their own, so that they can have servers at the usual ports: 127.78.<command>.<host>.
_LOCAL_NET, _COMMANDS, _SCHEDULER_NODE, _SCHEDULER_PORT = "127.78", 250, 254, 8786
# Folders of this user that local hosts share, below the home if their variables are not set.
_USER_FOLDERS = {"XDG_CACHE_HOME": ".cache", "XDG_STATE_HOME": ".local/state"}
_CONNECT_S = "30s"
_LOGGERS = ("distributed", "tornado", "asyncio")


class HostPool:
    """Hosts that a command uses: none is reached before the context begins, and nothing of it is left there when it ends.

    Where they are not workers of a cluster that is already running, a scheduler is started here and a process on each host. These know one another by a certificate
    that is made for this command.
    """

    def __init__(self, chosen: ChosenHosts, progress: ProgressReporter, *, demands_all: bool = True) -> None:
        """Hosts that are not reached yet; where not all are demanded, `failures` has those that cannot be."""
        self.chosen = chosen
        self.failures: dict[str, str] = {}
        self._demands_all = demands_all
        self._progress = progress
        self._stack = ExitStack()
        self._hosts: list[DaskHost] | None = None

    def __enter__(self) -> "HostPool":
        """Reaches them. Raises FailedError for one that cannot be reached, and UsageError for one of another build."""
        self.failures.clear()
        with ExitStack() as stack, self._progress.task(f"reaching the hosts {self.chosen.text}") as task:
            stack.enter_context(configured())
            _quieten(stack)
            self._hosts = self._reached(stack)
            task.end(", ".join(f"{host.name} ({host.address})" for host in self._hosts) or "none")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._stack.__exit__(kind, error, traceback)
        self._hosts = None

    @property
    def hosts(self) -> Sequence[DaskHost]:
        """Those that were reached: all, if all are demanded."""
        if self._hosts is None:
            raise AssertionError("hosts are reached when the context begins")
        return self._hosts

    def of_role(self, role: Role) -> list[DaskHost]:
        """The hosts of a role."""
        return [host for host in self.hosts if role in host.entry.roles]

    def _reached(self, stack: ExitStack) -> list[DaskHost]:
        scheduler = self.chosen.file.scheduler
        return self._workers(scheduler, stack) if scheduler is not None else self._started(stack)

    def _workers(self, scheduler: RunningScheduler, stack: ExitStack) -> list[DaskHost]:
        """The workers of a cluster that is already running, or those of them that the file names. Raises FailedError and UsageError."""
        if scheduler.url.startswith("tcp://"):
            self._progress.warn(
                f"{scheduler.url} is not encrypted: what load generators need to log in goes over the network as it is; use tls://"
            )
        client = _connected(scheduler.url, security_of_client(scheduler), stack, direct=None)
        workers = client.scheduler_info(n_workers=-1)["workers"]
        addresses = {_name_of(str(about["name"])): address for address, about in workers.items()}
        entries = self.chosen.file.host or [HostEntry(name=name) for name in sorted(addresses)]
        if unknown := [entry.name for entry in entries if entry.name not in addresses]:
            raise UsageError(
                f"--hosts {self.chosen.text}: {scheduler.url} has no worker {unknown[0]}; it has {', '.join(addresses) or 'none'}"
            )
        if not entries:
            raise FailedError(f"--hosts {self.chosen.text}: {scheduler.url} has no worker; start some, each with a name")
        hosts = []
        for entry in entries:
            with self._attempted(entry.name):
                worker = addresses[entry.name]
                host = DaskHost(entry, entry.address or _host_of(worker), client, worker, lambda: None)
                stack.callback(host.close)
                _check_build(entry.name, host.about.build)
                hosts.append(host)
        return hosts

    def _started(self, stack: ExitStack) -> list[DaskHost]:
        """Processes on all hosts, and their scheduler. Raises FailedError and UsageError."""
        credentials = new_credentials()
        homes = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sensorbench-hosts-", ignore_cleanup_errors=True)))
        scheduler = _closed_with(Launched("the scheduler of the hosts", local_command()), stack)
        # All of them start at the same time.
        begun: list[_Begun] = []
        for entry in self.chosen.file.host:
            with self._attempted(entry.name):
                command = ssh_command(entry) if entry.is_ssh else local_command(entry.python)
                begun.append(_Begun(entry, _closed_with(Launched(f"host {entry.name}", command), stack)))
        there = []
        for each in begun:
            with self._attempted(each.entry.name):
                hello = each.process.hello()
                _check_build(each.entry.name, Build(hello.version, hello.engine))
                there.append((each, hello))
        net = _local_net()
        at, port = self._scheduler_place([hello for _, hello in there], net)
        scheduler.hello()
        scheduler.order(BeScheduler(folder=str(homes), address=at, port=port, credentials=credentials))
        url = scheduler.listening()
        ordered = []
        for number, (each, hello) in enumerate(there, start=1):
            with self._attempted(each.entry.name):
                each.process.order(
                    _order(each.entry, each.entry.address or hello.here or f"{net}.{number}", url, credentials, homes)
                )
                ordered.append(each)
        client = _connected(url, security_of(credentials), stack, direct=True)
        hosts = []
        for each in ordered:
            with self._attempted(each.entry.name):
                worker = each.process.listening()
                address = each.entry.address or _host_of(worker)
                host = DaskHost(each.entry, address, client, worker, _Endings(each.process, scheduler))
                stack.callback(_leave, host, each.process)
                hosts.append(host)
        return hosts

    @contextmanager
    def _attempted(self, name: str) -> Iterator[None]:
        """Reaching a host: what fails is kept, unless all hosts are demanded."""
        try:
            yield
        except (FailedError, LostHostError, UsageError) as error:
            if self._demands_all:
                raise
            self.failures[name] = str(error)

    def _scheduler_place(self, hellos: Sequence[Hello], net: str) -> tuple[str, int]:
        """Where the scheduler listens: as hosts reach this machine."""
        controller = self.chosen.file.controller
        seen = next((hello.controller for hello in hellos if hello.controller), None)
        if found := controller.address or seen:
            return found, controller.port
        return f"{net}.{_SCHEDULER_NODE}", controller.port or _SCHEDULER_PORT


class _Begun(NamedTuple):
    """A host whose process was started."""

    entry: HostEntry
    process: Launched


class _Endings:
    """What became of a host's process, or of the scheduler without which it ends."""

    def __init__(self, process: Launched, scheduler: Launched) -> None:
        self._process = process
        self._scheduler = scheduler

    def __call__(self) -> str | None:
        """In words; None if both are there."""
        # Where the scheduler is gone, a host ends because of that, so that it is looked at first.
        if self._scheduler.has_ended:
            return f"{self._scheduler.name} (process {self._scheduler.pid}) is gone: {self._scheduler.how_it_ended()}"
        return f"its process {self._process.pid} is gone: {self._process.how_it_ended()}" if _ends(self._process) else None


def _ends(process: Launched) -> bool:
    """Whether a process is over, or is within a moment: its connection breaks a little before."""
    return process.has_ended or process.how_it_ended(1.0) != ANSWERS_NO_MORE


def _leave(host: DaskHost, process: Launched) -> None:
    """Has a host end. One that is lost does not hear of that."""
    host.close()
    if host.is_lost:
        process.kill()


def _closed_with(process: Launched, stack: ExitStack) -> Launched:
    stack.callback(process.close)
    return process


def _order(entry: HostEntry, address: str, scheduler: str, credentials: Credentials, homes: Path) -> BeHost:
    environment, folder = {}, None
    if entry.reach == LOCAL:
        folder = str(homes)
        home = homes / entry.name
        home.mkdir()
        # What can be made again, and what knows of running servers, is the machine's.
        environment = {
            "HOME": str(home),
            **{variable: _user_folder(variable, below) for variable, below in _USER_FOLDERS.items()},
        }
    if entry.lab_folder is not None:
        environment["SENSORBENCH_LAB"] = entry.lab_folder
    return BeHost(
        folder=folder,
        scheduler=scheduler,
        name=entry.name,
        address=address,
        port=entry.port,
        cpus=entry.cpus,
        environment=environment,
        credentials=credentials,
    )


def _user_folder(variable: str, below: str) -> str:
    return os.environ.get(variable) or str(Path.home() / below)


def _check_build(name: str, found: Build) -> None:
    """Raises UsageError if a host has another build: both sides would not understand each other."""
    if different := found.difference_from(this_build()):
        raise UsageError(
            f"host {name}: {different}; install the same wheel on both, for example the one that `make wheel` builds"
        )


def _connected(url: str, security: "Security", stack: ExitStack, *, direct: bool | None) -> "Client":
    """A client of a scheduler. Raises FailedError."""
    from distributed import Client

    try:
        # Actors find their client as the default one alone.
        client = Client(url, security=security, timeout=_CONNECT_S, set_as_default=True, direct_to_workers=direct)
    except (OSError, TimeoutError, ValueError, TypeError) as error:
        raise FailedError(f"the scheduler {url} cannot be reached: {' '.join(str(error).split())}") from None
    stack.enter_context(closing(client))
    return client


def _quieten(stack: ExitStack) -> None:
    """Dask's own words about lost connections are said better by what is raised."""
    # It sets the levels of its loggers when it is imported.
    import distributed  # noqa: F401

    for name in [name for name in logging.root.manager.loggerDict if name.partition(".")[0] in _LOGGERS]:
        logger = logging.getLogger(name)
        stack.callback(logger.setLevel, logger.level)
        logger.setLevel(logging.CRITICAL)


def _local_net() -> str:
    """A net of loopback addresses that no other command has."""
    first = os.getpid() % _COMMANDS
    for number in (*range(first, _COMMANDS), *range(first)):
        net = f"{_LOCAL_NET}.{number + 1}"
        with socket.socket() as probe:
            try:
                probe.bind((f"{net}.{_SCHEDULER_NODE}", _SCHEDULER_PORT))
            except OSError:
                continue
            return net
    raise FailedError(f"no loopback address below {_LOCAL_NET} is free; end other commands with --hosts local:N")


def _host_of(address: str) -> str:
    """The host of an address as dask writes it, tls://10.0.0.1:4321."""
    return address.rpartition("://")[2].rpartition(":")[0].strip("[]")


def _name_of(worker: str) -> str:
    """The name of a worker; one without a name of its own has its address, of which the characters are kept that names may have."""
    return re.sub(r"[^A-Za-z0-9_.-]", "-", worker.rpartition("://")[2]).lstrip("-._") or "worker"
