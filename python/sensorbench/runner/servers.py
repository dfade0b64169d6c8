"""Servers of a comparison: those that the lab starts for it, and those of the lab that it uses."""

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field

import psutil

from sensorbench import lab
from sensorbench.errors import EngineError, EngineUsageError, FailedError, UsageError, message_of
from sensorbench.progress import ProgressReporter
from sensorbench.results import ServerResources
from sensorbench.results.described import DescribedServer
from sensorbench.runner.memory import min_available
from sensorbench.runner.user_cluster.cluster import UserCluster
from sensorbench.runner.variants import TargetSpec, Variant
from sensorbench.wording import counted


@dataclass(frozen=True)
class Servers:
    """Instances of the lab by the server that targets name, and how long those took to start that were started here."""

    instances: dict[str, lab.Instance]
    # Clusters of users, which are set and restarted as their files say.
    clusters: dict[str, UserCluster] = field(default_factory=dict, kw_only=True)
    start_s: dict[str, float] = field(default_factory=dict, kw_only=True)

    def at_their_urls(self, variants: list[Variant]) -> list[Variant]:
        """The variants, each knowing where its server is."""
        return [
            variant.at(lab.url_of(self.instances[variant.target.server])) if variant.target.server in self.instances else variant
            for variant in variants
        ]

    def processes(self) -> dict[str, lab.WatchedProcess]:
        """The processes of all servers that are up, by name."""
        return {name: process for instance in self.instances.values() for name, process in lab.server_processes(instance).items()}

    def memory_bytes(self) -> int:
        """Bytes that the processes of all servers have in memory."""
        return sum(used.memory_bytes for process in self.processes().values() if (used := process.usage()))

    def restart(self) -> None:
        """Ends all servers that were started here or are the lab's, and starts them again with their data."""
        for text, instance in self.instances.items():
            lab.restart(instance.name)
            self.instances[text] = lab.find_instance(instance.name)
        for cluster in self.clusters.values():
            cluster.restart()

    def empty_caches(self) -> None:
        """Empties their caches while they run. Raises FailedError for a database that cannot do that."""
        for instance in self.instances.values():
            lab.empty_caches(instance.name)
        for cluster in self.clusters.values():
            cluster.empty_caches()

    def insight(self) -> dict[str, float]:
        """What nodes of users say of themselves; what the lab knows of its own servers, it is asked for them one by one."""
        return {name: value for cluster in self.clusters.values() for name, value in cluster.insight().items()}

    def described(self) -> dict[str, DescribedServer]:
        """What results say of each: version, nodes, variants, and how its limits are kept."""
        of_lab: dict[str, DescribedServer] = {
            text: {
                "instance": instance.name,
                "database": instance.database,
                "version": instance.version,
                "nodes": len(instance.nodes),
                "replicas": instance.replicas,
                "settings": instance.shown_settings,
                "cpus": instance.limits.cpus,
                "cpus_by": instance.limits.cpus_by,
                "memory_bytes": instance.limits.memory_bytes,
                "memory_by": instance.limits.memory_by,
                "server_user": instance.server_user,
                "data_of": instance.data_of,
                "hosts": [node.placed_on for node in instance.nodes if node.placed_on],
            }
            for text, instance in self.instances.items()
        }
        return of_lab | {text: cluster.described() for text, cluster in self.clusters.items()}


@contextmanager
def running_servers(
    variants: list[Variant], reporter: ProgressReporter, *, pin: bool, resources: ServerResources = ServerResources()
) -> Iterator[Servers]:
    """All servers of a comparison, up at the same time. Those that were started here end with it, whatever happens. Raises FailedError
    when one that is not started here does not answer: nothing of the results is written by then.

    With `pin`, they share the upper half of the CPUs, and the client keeps to the lower half. `resources` says what each of them may use,
    and how many CPUs they share.
    """
    cpus = ServerCpus.of(variants, pin=pin, resources=resources)
    servers = standing_servers(variants)
    with ExitStack() as stack:
        started = [target for target in targets_of(variants) if target.place == "started"]
        specs = {target.server: spec_of(target, cpus, resources) for target in started}
        check_memory(specs)
        for target in started:
            started_s = time.monotonic()
            with reporter.task(f"starting {target.server}") as task:
                instance = stack.enter_context(lab.borrowed(specs[target.server]))
                task.end(f"{instance.version} at {instance.nodes[0].host}")
            servers.instances[target.server] = instance
            servers.start_s[target.server] = time.monotonic() - started_s
        for target in targets_of(variants):
            if target.cluster is not None:
                servers.clusters[target.server] = _configured(target, target.cluster, reporter)
        stack.enter_context(cpus.client())
        yield servers


def _configured(target: TargetSpec, cluster: UserCluster, reporter: ProgressReporter) -> UserCluster:
    """A cluster of the user's with a target's settings. Whoever took it puts it back."""
    with reporter.task(f"setting and restarting {cluster.path.name}") as task:
        cluster.configure(dict(target.server_settings))
        task.end(counted(len(cluster.nodes), "node"))
    return cluster


@contextmanager
def borrowed_cluster(target: TargetSpec, reporter: ProgressReporter) -> Iterator[Servers]:
    """Has a cluster of the user's for a benchmark that sets it many times, and puts it back at the end; nothing if the lab starts the servers."""
    if target.cluster is None:
        yield Servers({})
        return
    with target.cluster.taken(reporter):
        yield Servers({})


def addresses_of(target: TargetSpec) -> list[str] | None:
    """The nodes of a cluster of the user's; None if servers are the lab's."""
    return target.cluster.addresses if target.cluster else None


def targets_of(variants: list[Variant]) -> list[TargetSpec]:
    """Their targets, of those that share a server one."""
    return list({variant.target.server: variant.target for variant in variants}.values())


def standing_servers(variants: list[Variant]) -> Servers:
    """The instances of the lab that variants use and that nobody starts for them. Raises FailedError when a server of a user's does not answer."""
    standing = [target for target in targets_of(variants) if target.place == "lab"]
    servers = Servers({target.server: lab.find_instance(target.label) for target in standing})
    _check_answers(servers.at_their_urls([variant for variant in variants if variant.target.is_url]))
    return servers


def spec_of(target: TargetSpec, cpus: "ServerCpus", resources: ServerResources) -> lab.ServerSpec:
    """What is started for a target: it ends with this process."""
    return lab.ServerSpec(
        target.database.name,
        nodes=target.nodes,
        settings=dict(target.server_settings),
        cpus=cpus.of_servers if target.hosts is None else None,
        memory_bytes=resources.memory_bytes,
        fits_memory=True,
        stays=False,
        data_of=target.data_of,
        hosts=target.hosts,
    )


@dataclass(frozen=True)
class ServerCpus:
    """The CPUs that the client keeps to while servers that were started share the others; None if nothing is divided."""

    of_client: list[int] | None
    of_servers: list[int] | None

    @classmethod
    def of(cls, variants: list[Variant], *, pin: bool, resources: ServerResources) -> "ServerCpus":
        """How the CPUs are divided: not where no server is started on this machine, and nothing is said."""
        starts = any(variant.target.place == "started" and variant.target.hosts is None for variant in variants)
        return cls(*_shares(resources.cpus)) if starts and (pin or resources.cpus) else cls(None, None)

    def client(self) -> AbstractContextManager[None]:
        """Keeps the client to its CPUs; servers are started before, because they would inherit that."""
        return _on(self.of_client) if self.of_client else nullcontext()


def check_memory(specs: Mapping[str, lab.ServerSpec]) -> None:
    """Raises UsageError if servers would not fit into the memory of this machine, even without data. Hosts say that of their own nodes."""
    here = {server: spec for server, spec in specs.items() if spec.hosts is None}
    needed = {server: of_server for server, spec in here.items() if (of_server := lab.min_memory(spec)) is not None}
    room = psutil.virtual_memory().available - min_available()
    if sum(needed.values()) > room:
        listed = ", ".join(f"{server}: {of_server / 1e9:,.1f} GB" for server, of_server in needed.items())
        raise UsageError(
            f"the servers do not fit into memory: they take {sum(needed.values()) / 1e9:,.1f} GB before there are any data ({listed}), and this "
            f"machine has {max(0, room) / 1e9:,.1f} GB for them; use fewer --nodes, fewer --target, or a smaller --server-memory"
        )


def _check_answers(variants: list[Variant]) -> None:
    """Raises FailedError unless the server of each answers, and UsageError where it is none that the URL can mean."""
    for variant in variants:
        if not variant.target.database.embedded:
            target = variant.engine_target()
            try:
                target.describe()
            except EngineUsageError as error:
                raise UsageError(message_of(error)) from None
            except EngineError as error:
                raise FailedError(f"{target.url} does not answer, so nothing is done: {message_of(error)}") from None


def check_resources(resources: ServerResources, targets: Iterable[TargetSpec]) -> None:
    """Raises UsageError if a target cannot be given resources, because it is not a server that the lab starts for this run."""
    flag = "--server-memory" if resources.memory_bytes else "--server-cpus"
    for target in targets if resources != ServerResources() else ():
        if target.hosts is not None and resources.cpus is not None:
            raise UsageError(
                "--server-cpus divides the CPUs of this machine; leave it out, and limit CPUs with `cpus` in the file of --hosts"
            )
        if target.place == "folder":
            raise UsageError(f"{flag}: {target.label} runs within the client, and has no resources of its own; leave it out")
        if target.place != "started":
            raise UsageError(
                f"{flag}: {target.label} is a server that is already running, so its resources are not changed; leave it out, "
                f"or name a database that is started for this run, such as {target.database.name}"
            )
    allowed = len(os.sched_getaffinity(0))
    if resources.cpus and resources.cpus >= allowed:
        raise UsageError(
            f"--server-cpus {resources.cpus}: this process may use {allowed} CPUs, and the client needs at least one of them; "
            f"give at most {allowed - 1}"
        )


def _shares(of_servers: int | None) -> tuple[list[int] | None, list[int] | None]:
    """The CPUs of the client and those of the servers: half each, unless it is said how many the servers have."""
    cpus = sorted(os.sched_getaffinity(0))
    of_client = len(cpus) - (of_servers or (len(cpus) + 1) // 2)
    return (cpus[:of_client], cpus[of_client:]) if of_client > 0 else (None, None)


@contextmanager
def _on(cpus: list[int]) -> Iterator[None]:
    """Keeps this thread, and all that it starts, on these processors."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
