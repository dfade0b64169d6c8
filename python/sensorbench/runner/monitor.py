"""What the client and the servers use during a run, and what the server says of itself, on the run's clock."""

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import NamedTuple

from sensorbench import lab
from sensorbench._engine import Target
from sensorbench.errors import EngineError, FailedError, LostHostError, UsageError
from sensorbench.results.engine_report import EngineRun
from sensorbench.results.writer import ResourceRow, StatusRow
from sensorbench.runner.generators.shared_run import SharedRun

EVERY_S, ELSEWHERE_EVERY_S = 1.0, 5.0
CLIENT = "client"
# What the table `status` has of a server's processes, by the columns of `resources`.
_OF_PROCESSES = ("cpu_s", "memory_bytes", "read_bytes", "written_bytes")


class _Known(NamedTuple):
    """A node of the measured server: how its process is called, and what the names of its figures begin with."""

    name: str
    prefix: str
    instance: lab.Instance
    node: lab.Node


class Watcher:
    """Asks the servers before the run, which is its time 0, and once a second while it is `watching` one, on threads of its own,
    because a busy server answers late: a short run may be over before the first of those answers.

    Of a target that is one of these servers, which are the lab's, the table `status` has also what the lab knows of it. `insight` is what else
    there is to know of servers; it is asked less often, since that may take a connection to each node.

    A host that is lost meanwhile is not asked again: nothing more is known of its nodes, which is an event of the run.
    """

    def __init__(
        self, target: Target, servers: Mapping[str, lab.WatchedProcess], insight: Callable[[], Mapping[str, float]] | None = None
    ) -> None:
        self._run: EngineRun | None = None
        self._target = target
        self._insight = insight
        self._measured = lab.instance_at(target.url) if servers else None
        # What the names of a node's figures begin with, by the name of its process.
        self._prefixes = {known.name: known.prefix for known in self._nodes_now()}
        self._processes = {CLIENT: this_process(), **servers}
        self._lost_hosts: set[str] = set()
        self._asks = True
        self._resources: list[ResourceRow] = []
        self._status: list[StatusRow] = []
        self._lock = threading.Lock()
        self._ended = threading.Event()
        watches = (self._watch, self._watch_in_lab, *([self._watch_elsewhere] if insight else []))
        self._threads = [threading.Thread(target=watch, name="watcher", daemon=True) for watch in watches]
        self._ask()
        self._ask_lab()
        self._ask_elsewhere()
        self._used_cpu_s: dict[str, float] = {}
        self._start_cpu_s = {
            name: used.cpu_s if (used := self._usage(process)) else 0.0 for name, process in self._processes.items()
        }

    @contextmanager
    def watching(self, run: EngineRun) -> Iterator[None]:
        """Watches a run that has just begun."""
        self._run = run
        self._read()
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._stop()

    def take(self) -> tuple[list[ResourceRow], list[StatusRow]]:
        """What was seen since the last time: rows of `resources` and of `status`."""
        with self._lock:
            taken = self._resources, self._status
            self._resources, self._status = [], []
        return taken

    def read_once_more(self, *, asks: bool) -> None:
        """What is used at the end, and what the server says then, if it is asked: counters of short runs need both ends."""
        self._stop()
        self._read()
        if asks:
            self._ask()
            self._ask_lab()
            self._ask_elsewhere()

    def _stop(self) -> None:
        self._ended.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(timeout=5.0)

    def _watch(self) -> None:
        while not self._ended.wait(EVERY_S):
            self._read()
            self._ask()

    def _watch_in_lab(self) -> None:
        while not self._ended.wait(EVERY_S):
            self._ask_lab()

    def _watch_elsewhere(self) -> None:
        while not self._ended.wait(ELSEWHERE_EVERY_S):
            self._ask_elsewhere()

    def _ask_elsewhere(self) -> None:
        if self._insight is not None:
            self._report(self._insight())

    def _ask_lab(self) -> None:
        reported: dict[str, float] = {}
        for known in self._nodes_now():
            reported |= {f"{known.prefix}{name}": value for name, value in self._insight_of(known).items()}
        self._report(reported)

    def _insight_of(self, known: _Known) -> Mapping[str, float]:
        if known.node.placed_on in self._lost_hosts:
            return {}
        try:
            return lab.insight(known.instance, known.node)
        except LostHostError as error:
            self._lose(known.node.placed_on, error)
            return {}

    def _usage(self, process: lab.WatchedProcess) -> lab.ProcessUsage | None:
        if process.host.name in self._lost_hosts:
            return None
        try:
            return process.usage()
        except LostHostError as error:
            self._lose(process.host.name, error)
            return None

    def _lose(self, host: str, error: LostHostError) -> None:
        """Two threads ask hosts; the first that finds one lost says so."""
        with self._lock:
            if host in self._lost_hosts:
                return
            self._lost_hosts.add(host)
        if self._run is not None:
            self._run.annotate(f"host {host} is lost: nothing more is known of its nodes ({error})")

    def _nodes_now(self) -> list[_Known]:
        """The nodes that the measured server has by now. Those that it had at the beginning keep their names, also if one was alone then."""
        if self._measured is None:
            return []
        now = _as_it_is_now(self._measured)
        first = {node.number for node in self._measured.all_processes}
        return [
            _Known(lab.process_name(namer, node), lab.node_prefix(namer, node), now, node)
            for node in now.all_processes
            for namer in (self._measured if node.number in first else now,)
        ]

    def _meet_newcomers(self) -> None:
        """Nodes that have joined since the beginning, or were started again, are watched, too. Processor time continues where that of the
        process before has ended.
        """
        for known in self._nodes_now():
            process = lab.server_process(known.instance, known.node)
            if process is not None and process.process != self._process_of(known.name):
                self._prefixes[known.name] = known.prefix
                self._processes[known.name] = process
                self._start_cpu_s[known.name] = -self._used_cpu_s.get(known.name, 0.0)

    def _process_of(self, name: str) -> object:
        return self._processes[name].process if name in self._processes else None

    def _read(self) -> None:
        self._meet_newcomers()
        time_ns = self._now_ns()
        rows = [row for name, usage in self._usages() if (row := self._row(name, usage, time_ns))]
        self._used_cpu_s |= {row.process: row.cpu_s for row in rows}
        with self._lock:
            self._resources += rows
            self._status += _status_rows(time_ns, self._of_measured(rows))
            if isinstance(self._run, SharedRun):
                self._status += self._run.take_clock_rows()

    def _of_measured(self, rows: list[ResourceRow]) -> dict[str, float]:
        """What the processes of the measured server use, by names as `lab.insight` has them."""
        return {
            f"{self._prefixes[row.process]}lab.{column}": value
            for row in rows
            for column in _OF_PROCESSES
            if row.process in self._prefixes and (value := getattr(row, column)) is not None
        }

    def _usages(self) -> Iterator[tuple[str, lab.ProcessUsage | None]]:
        """What processes use, and load generators, wherever they are, by their names."""
        for name, process in self._processes.items():
            yield name, self._usage(process)
        if isinstance(self._run, SharedRun):
            yield from self._run.usages().items()

    def _row(self, name: str, usage: lab.ProcessUsage | None, time_ns: int) -> ResourceRow | None:
        if usage is None:
            return None
        # A load generator is met when its run begins.
        start_cpu_s = self._start_cpu_s.setdefault(name, usage.cpu_s)
        return ResourceRow(time_ns=time_ns, process=name, **usage._replace(cpu_s=usage.cpu_s - start_cpu_s)._asdict())

    def _ask(self) -> None:
        """What the server counts. One that does not answer any more is not asked again; the run itself shows what is wrong."""
        if not self._asks:
            return
        try:
            status: dict[str, float] = json.loads(self._target.status())
        except EngineError:
            self._asks = False
            return
        self._report(status)

    def _report(self, status: Mapping[str, float]) -> None:
        with self._lock:
            self._status += _status_rows(self._now_ns(), status)

    def _now_ns(self) -> int:
        return self._run.now_ns() if self._run else 0


def _as_it_is_now(instance: lab.Instance) -> lab.Instance:
    """With the nodes that it has by now; as it was once nothing is left of it."""
    with suppress(UsageError, FailedError):
        return lab.find_instance(instance.name)
    return instance


def _status_rows(time_ns: int, status: Mapping[str, float]) -> list[StatusRow]:
    return [StatusRow(time_ns, name, value) for name, value in status.items()]


def this_process() -> lab.WatchedProcess:
    """The client. Servers that it started are its children, and what they use is theirs."""
    return replace(lab.WatchedProcess.of(os.getpid()), with_children=False)
