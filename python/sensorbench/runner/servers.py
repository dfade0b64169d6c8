"""Servers of a comparison: those that the lab starts for it, and those of the lab that it uses."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import psutil

from sensorbench import lab
from sensorbench.errors import EngineError, FailedError, message_of
from sensorbench.progress import ProgressReporter
from sensorbench.results.described import DescribedServer
from sensorbench.runner.variants import Variant


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
def running_servers(variants: list[Variant], reporter: ProgressReporter, *, pin: bool) -> Iterator[Servers]:
    """All servers of a comparison, up at the same time. Those that were started here end with it, whatever happens. Raises FailedError
    when one that is not started here does not answer: nothing of the results is written by then.

    With `pin`, they share the upper half of the processors, and the client keeps to the lower half.
    """
    instances: dict[str, lab.Instance] = {}
    targets = list({variant.target.server: variant.target for variant in variants}.values())
    started = [target for target in targets if target.place == "started"]
    client_cpus, server_cpus = _halves() if pin and started else (None, None)
    with ExitStack() as stack:
        for target in targets:
            if target.place == "lab":
                instances[target.server] = lab.find_instance(target.label)
        _check_answers(Servers(instances).at_their_urls([variant for variant in variants if variant.target.is_url]))
        for target in started:
            with reporter.task(f"starting {target.server}") as task:
                spec = lab.ServerSpec(
                    target.database.name,
                    nodes=target.nodes,
                    settings=dict(target.server_settings),
                    cpus=server_cpus,
                    stays=False,
                )
                instances[target.server] = instance = stack.enter_context(lab.borrowed(spec))
                task.end(f"{instance.version} at {instance.nodes[0].host}")
        if client_cpus:
            stack.enter_context(_on(client_cpus))
        yield Servers(instances)


def _check_answers(variants: list[Variant]) -> None:
    """Raises FailedError unless the server of each answers."""
    for variant in variants:
        if not variant.target.database.embedded:
            target = variant.engine_target()
            try:
                target.describe()
            except EngineError as error:
                raise FailedError(f"{target.url} does not answer, so nothing is done: {message_of(error)}") from None


def _halves() -> tuple[list[int] | None, list[int] | None]:
    cpus = sorted(os.sched_getaffinity(0))
    half = len(cpus) // 2
    return (cpus[:half], cpus[half:]) if half else (None, None)


@contextmanager
def _on(cpus: list[int]) -> Iterator[None]:
    """Keeps this thread, and all that it starts, on these processors."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
