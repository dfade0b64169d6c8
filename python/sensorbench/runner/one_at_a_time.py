"""Servers of which those of one variant are up at a time: each variant whose server the lab starts has one of its own."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Literal

from sensorbench import lab
from sensorbench.errors import UsageError
from sensorbench.progress import ProgressReporter
from sensorbench.results import ServerResources
from sensorbench.runner.servers import ServerCpus, Servers, spec_of, standing_servers
from sensorbench.runner.variants import Variant

ServerKind = Literal["started", "embedded", "kept up"]


def server_kind(variant: Variant) -> ServerKind:
    """Whether a variant's server is started and stopped for its blocks, is none, or is one that stays up: yours, or one of the lab that stays."""
    if variant.target.database.embedded:
        return "embedded"
    return "started" if variant.target.place == "started" else "kept up"


def keeps_on_disk(variant: Variant) -> bool:
    """Whether data of a variant outlast a stop of its server; those of a server that is not stopped always do."""
    return server_kind(variant) == "kept up" or not variant.target.database.in_memory


def check_can_stop(variants: list[Variant]) -> None:
    """Raises UsageError if no server of a comparison can be stopped, so that nothing would be measured one at a time."""
    if all(server_kind(variant) == "kept up" for variant in variants):
        named = ", ".join(dict.fromkeys(variant.target.label for variant in variants))
        example = variants[0].target.database.name
        raise UsageError(
            f"--one-at-a-time: {named}: these servers are already running, and sensorbench does not stop servers that it did not start. "
            f"Name databases that are started for this run, such as --target {example}; or measure each server in a run of its own"
        )


@dataclass(frozen=True)
class RunningServer:
    """The server of one variant: `servers` has no other. It was started within `start_s`, again with its data or, where it `is_new`, without."""

    kind: ServerKind
    servers: Servers
    start_s: float | None = None
    is_new: bool = False

    @property
    def instance(self) -> str | None:
        """The lab's name of it."""
        return next((instance.name for instance in self.servers.instances.values()), None)


class SeparateServers:
    """The servers of a comparison, by variant: those that the lab starts run while `up` says so, and are stopped with their data."""

    def __init__(self, standing: Servers, cpus: ServerCpus, resources: ServerResources, reporter: ProgressReporter) -> None:
        self.standing = standing
        self._cpus = cpus
        self._resources = resources
        self._reporter = reporter
        self._started: dict[str, tuple[str, ExitStack]] = {}

    @classmethod
    @contextmanager
    def of(
        cls, variants: list[Variant], reporter: ProgressReporter, *, pin: bool, resources: ServerResources
    ) -> Iterator["SeparateServers"]:
        """The servers of variants, none of which is started yet. Those that were started end with it, whatever happens."""
        cpus = ServerCpus.of(variants, pin=pin, resources=resources)
        servers = cls(standing_servers(variants), cpus, resources, reporter)
        try:
            yield servers
        finally:
            with ExitStack() as stack:
                for _, started in servers._started.values():
                    stack.push(started)

    @contextmanager
    def up(self, variant: Variant) -> Iterator[RunningServer]:
        """The server of a variant, up; it is stopped when its block is over. Raises FailedError if it does not start."""
        kind = server_kind(variant)
        if kind != "started":
            own = self.standing.instances.get(variant.target.server)
            yield RunningServer(kind, Servers({variant.target.server: own} if own else {}))
            return
        is_new, start_s = variant.id not in self._started, time.monotonic()
        with self._reporter.task(f"starting {variant.target.server} for {variant.id}") as task:
            instance = self._new(variant) if is_new else lab.start(self._started[variant.id][0])
            start_s = time.monotonic() - start_s
            task.end(f"{instance.version} at {instance.nodes[0].host}, {'new' if is_new else 'with its data'}")
        with self._cpus.client():
            yield RunningServer(kind, Servers({variant.target.server: instance}), start_s, is_new)
        # Who fails or is interrupted ends it with its data.
        if variant.id in self._started:
            lab.stop(instance.name)

    def _new(self, variant: Variant) -> lab.Instance:
        stack = ExitStack()
        instance = stack.enter_context(lab.borrowed(spec_of(variant.target, self._cpus, self._resources)))
        self._started[variant.id] = instance.name, stack
        return instance

    def discard(self, variant: Variant) -> bool:
        """Ends the server that was started for a variant, and removes its data. Returns whether there was one."""
        _, stack = self._started.pop(variant.id, ("", None))
        if stack is not None:
            stack.close()
        return stack is not None

    def processes(self) -> dict[str, list[int]]:
        """Which servers of this comparison are in the process table, by the lab's name: their process ids."""
        started = [lab.find_instance(name) for name, _ in self._started.values()]
        found = {instance.name: lab.process_ids(instance) for instance in (*self.standing.instances.values(), *started)}
        return {name: pids for name, pids in found.items() if pids}
