"""What a process uses, wherever it runs: CPU time, memory, threads and disk, its children's included."""

from dataclasses import dataclass
from typing import NamedTuple

import psutil

from sensorbench.hosts.host import Host
from sensorbench.lab.placement import HERE
from sensorbench.lab.processes import ProcessId


class ProcessUsage(NamedTuple):
    """What a process has used by now: CPU time in s since it began; memory and threads as they are now; bytes of the disk where they are known."""

    cpu_s: float
    memory_bytes: int
    threads: int
    read_bytes: int | None
    written_bytes: int | None


@dataclass(frozen=True)
class WatchedProcess:
    """A process, and where it runs. One that has processes that are not its own work is read without its children."""

    process: ProcessId
    host: Host = HERE
    with_children: bool = True

    @classmethod
    def of(cls, pid: int) -> "WatchedProcess":
        """A process of this machine. Raises psutil.NoSuchProcess."""
        return cls(ProcessId.of(pid))

    def usage(self) -> ProcessUsage | None:
        """What it uses now; None of one that is gone. Raises LostHostError if its host is gone."""
        return self.host.call(_usage_here, self.process, with_children=self.with_children)


def _usage_here(process: ProcessId, *, with_children: bool) -> ProcessUsage | None:
    found = process.find()
    return usage_of(found, with_children=with_children) if found is not None else None


def usage_of(process: psutil.Process, *, with_children: bool) -> ProcessUsage | None:
    """What a process of this machine uses, with its children and those that have ended; None once it is gone."""
    try:
        family = [process, *process.children(recursive=True)] if with_children else [process]
        read_bytes, written_bytes = _disk(family)
        return ProcessUsage(
            cpu_s=_cpu_s(family, with_children=with_children),
            memory_bytes=_memory_bytes(family),
            threads=sum(item.num_threads() for item in family),
            read_bytes=read_bytes,
            written_bytes=written_bytes,
        )
    except psutil.NoSuchProcess:
        return None


def _cpu_s(family: list[psutil.Process], *, with_children: bool) -> float:
    times = family[0].cpu_times()
    if not with_children:
        return float(times.user + times.system)
    own = times.user + times.system + times.children_user + times.children_system
    return float(own + sum(sum(child.cpu_times()[:2]) for child in family[1:]))


def _memory_bytes(family: list[psutil.Process]) -> int:
    """Memory of a server: what its processes share is counted once, where the system reports it."""
    if len(family) == 1:
        return int(family[0].memory_info().rss)
    return int(
        sum(item.memory_info().rss - item.memory_info().shared for item in family)
        + max(item.memory_info().shared for item in family)
    )


def _disk(family: list[psutil.Process]) -> tuple[int | None, int | None]:
    try:
        counters = [item.io_counters() for item in family]
    except (psutil.AccessDenied, AttributeError):
        return None, None
    return sum(counter.read_bytes for counter in counters), sum(counter.write_bytes for counter in counters)
