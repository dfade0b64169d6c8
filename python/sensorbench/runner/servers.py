"""Servers of a comparison: those that the lab starts for it, and those of the lab that it uses."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import psutil

from sensorbench import lab
from sensorbench.errors import EngineError, FailedError, UsageError, message_of
from sensorbench.progress import ProgressReporter
from sensorbench.results import ServerResources
from sensorbench.results.described import DescribedServer
from sensorbench.runner.memory import min_available
from sensorbench.runner.variants import TargetSpec, Variant


@dataclass(frozen=True)
class Servers:
    """Instances of the lab by the server that targets name."""

    instances: dict[str, lab.Instance]

    def at_their_urls(self, variants: list[Variant]) -> list[Variant]:
        """The variants, each knowing where its server is."""
        return [
            variant.at(lab.url_of(self.instances[variant.target.server])) if variant.target.server in self.instances else variant
            for variant in variants
        ]

    def processes(self) -> dict[str, psutil.Process]:
        """The processes of all servers that are up, by name."""
        return {name: process for instance in self.instances.values() for name, process in lab.server_processes(instance).items()}

    def restart(self) -> None:
        """Ends all servers that were started here or are the lab's, and starts them again with their data."""
        for text, instance in self.instances.items():
            lab.restart(instance.name)
            self.instances[text] = lab.find_instance(instance.name)

    def empty_caches(self) -> None:
        """Empties their caches while they run. Raises FailedError for a database that cannot do that."""
        for instance in self.instances.values():
            lab.empty_caches(instance.name)

    def described(self) -> dict[str, DescribedServer]:
        """What results say of each: version, nodes, variants, and how its limits are kept."""
        return {
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
            }
            for text, instance in self.instances.items()
        }


@contextmanager
def running_servers(
    variants: list[Variant], reporter: ProgressReporter, *, pin: bool, resources: ServerResources = ServerResources()
) -> Iterator[Servers]:
    """All servers of a comparison, up at the same time. Those that were started here end with it, whatever happens. Raises FailedError
    when one that is not started here does not answer: nothing of the results is written by then.

    With `pin`, they share the upper half of the CPUs, and the client keeps to the lower half. `resources` says what each of them may use,
    and how many CPUs they share.
    """
    instances: dict[str, lab.Instance] = {}
    targets = list({variant.target.server: variant.target for variant in variants}.values())
    started = [target for target in targets if target.place == "started"]
    client_cpus, server_cpus = _shares(resources.cpus) if started and (pin or resources.cpus) else (None, None)
    with ExitStack() as stack:
        for target in targets:
            if target.place == "lab":
                instances[target.server] = lab.find_instance(target.label)
        _check_answers(Servers(instances).at_their_urls([variant for variant in variants if variant.target.is_url]))
        specs = {target.server: _server_spec(target, resources, server_cpus) for target in started}
        _check_memory(specs)
        for target in started:
            with reporter.task(f"starting {target.server}") as task:
                instances[target.server] = instance = stack.enter_context(lab.borrowed(specs[target.server]))
                task.end(f"{instance.version} at {instance.nodes[0].host}")
        if client_cpus:
            stack.enter_context(_on(client_cpus))
        yield Servers(instances)


def _server_spec(target: TargetSpec, resources: ServerResources, cpus: list[int] | None) -> lab.ServerSpec:
    return lab.ServerSpec(
        target.database.name,
        nodes=target.nodes,
        settings=dict(target.server_settings),
        cpus=cpus,
        memory_bytes=resources.memory_bytes,
        fits_memory=True,
        stays=False,
    )


def _check_memory(specs: Mapping[str, lab.ServerSpec]) -> None:
    """Raises UsageError where servers would not fit into the memory of this machine, even without data."""
    needed = {server: of_server for server, spec in specs.items() if (of_server := lab.min_memory(spec)) is not None}
    room = psutil.virtual_memory().available - min_available()
    if sum(needed.values()) > room:
        listed = ", ".join(f"{server}: {of_server / 1e9:,.1f} GB" for server, of_server in needed.items())
        raise UsageError(
            f"the servers do not fit into memory: they take {sum(needed.values()) / 1e9:,.1f} GB before there are any data ({listed}), and this "
            f"machine has {max(0, room) / 1e9:,.1f} GB for them; use fewer --nodes, fewer --target, or a smaller --server-memory"
        )


def _check_answers(variants: list[Variant]) -> None:
    """Raises FailedError unless the server of each answers."""
    for variant in variants:
        if not variant.target.database.embedded:
            target = variant.engine_target()
            try:
                target.describe()
            except EngineError as error:
                raise FailedError(f"{target.url} does not answer, so nothing is done: {message_of(error)}") from None


def check_resources(resources: ServerResources, targets: Iterable[TargetSpec]) -> None:
    """Raises UsageError where a target cannot be given resources, because it is not a server that the lab starts for this work."""
    flag = "--server-memory" if resources.memory_bytes else "--server-cpus"
    for target in targets if resources != ServerResources() else ():
        if target.place == "folder":
            raise UsageError(f"{flag}: {target.label} runs within the client, and has no resources of its own; leave it out")
        if target.place != "started":
            raise UsageError(
                f"{flag}: {target.label} is a server that already runs, so its resources are not changed; leave it out, "
                f"or name a database that is started for this work, such as {target.database.name}"
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
