"""What the client and the servers use while a run goes on, and what the server says of itself, on the run's clock."""

import json
import threading
from collections.abc import Mapping
from typing import Any

import psutil

from sensorbench._engine import Run, Target
from sensorbench.errors import EngineError

EVERY_S = 1.0
CLIENT = "client"


class Watcher:
    """Looks once a second, on a thread of its own, because a busy server answers late. A context manager."""

    def __init__(self, run: Run, target: Target, servers: Mapping[str, psutil.Process]) -> None:
        self._run = run
        self._target = target
        self._processes = {CLIENT: psutil.Process(), **servers}
        self._start_cpu_s = {name: _cpu_s(process) for name, process in self._processes.items()}
        self._asks = True
        self._resources: list[dict[str, Any]] = []
        self._status: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watcher", daemon=True)

    def __enter__(self) -> "Watcher":
        self._look()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(timeout=5.0)

    def take(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """What was seen since the last time: rows of `resources` and of `status`."""
        with self._lock:
            taken = self._resources, self._status
            self._resources, self._status = [], []
        return taken

    def look_once_more(self) -> None:
        """The use of processors and memory at the end."""
        self._look()

    def _watch(self) -> None:
        while not self._ended.wait(EVERY_S):
            self._look()
            self._ask()

    def _look(self) -> None:
        time_ns = self._run.now_ns()
        rows = [row for name, process in self._processes.items() if (row := self._used(name, process, time_ns))]
        with self._lock:
            self._resources += rows

    def _used(self, name: str, process: psutil.Process, time_ns: int) -> dict[str, Any] | None:
        try:
            family = [process] if name == CLIENT else [process, *process.children(recursive=True)]
            return {
                "time_ns": time_ns,
                "process": name,
                "cpu_s": _cpu_s(process) - self._start_cpu_s[name],
                "memory_bytes": _memory_bytes(family),
                "threads": sum(one.num_threads() for one in family),
                **_disk(family),
            }
        except psutil.NoSuchProcess:
            return None

    def _ask(self) -> None:
        """What the server counts. One that does not answer any more is not asked again; the run itself tells what is wrong."""
        if not self._asks:
            return
        try:
            status: dict[str, float] = json.loads(self._target.status())
        except EngineError:
            self._asks = False
            return
        time_ns = self._run.now_ns()
        with self._lock:
            self._status += [{"time_ns": time_ns, "name": name, "value": value} for name, value in status.items()]


def _cpu_s(process: psutil.Process) -> float:
    """Processor time of a process, of its children, and of those that have ended."""
    try:
        times = process.cpu_times()
        own = times.user + times.system + times.children_user + times.children_system
        return float(own + sum(sum(child.cpu_times()[:2]) for child in process.children(recursive=True)))
    except psutil.NoSuchProcess:
        return 0.0


def _memory_bytes(family: list[psutil.Process]) -> int:
    """Memory of a server: what its processes share is counted once, where the system tells it apart."""
    if len(family) == 1:
        return int(family[0].memory_info().rss)
    return int(
        sum(one.memory_info().rss - one.memory_info().shared for one in family) + max(one.memory_info().shared for one in family)
    )


def _disk(family: list[psutil.Process]) -> dict[str, int | None]:
    try:
        counters = [one.io_counters() for one in family]
    except (psutil.AccessDenied, AttributeError):
        return {"read_bytes": None, "written_bytes": None}
    return {"read_bytes": sum(one.read_bytes for one in counters), "written_bytes": sum(one.write_bytes for one in counters)}
