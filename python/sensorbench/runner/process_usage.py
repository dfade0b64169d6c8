"""What a process uses: CPU time, memory, threads and disk, its children's included."""

from typing import NamedTuple

import psutil


class ProcessUsage(NamedTuple):
    """What a process has used by now: CPU time in s since it began; memory and threads as they are now; bytes of the disk where they are known."""

    cpu_s: float
    memory_bytes: int
    threads: int
    read_bytes: int | None
    written_bytes: int | None


def usage_of(process: psutil.Process, *, with_children: bool) -> ProcessUsage | None:
    """What a process uses, with its children and those that have ended; None once it is gone."""
    try:
        family = [process, *process.children(recursive=True)] if with_children else [process]
        read_bytes, written_bytes = _disk(family)
        return ProcessUsage(
            cpu_s=cpu_s(process, with_children=with_children),
            memory_bytes=_memory_bytes(family),
            threads=sum(item.num_threads() for item in family),
            read_bytes=read_bytes,
            written_bytes=written_bytes,
        )
    except psutil.NoSuchProcess:
        return None


def cpu_s(process: psutil.Process, *, with_children: bool) -> float:
    """CPU time of a process, with its children and those that have ended, or its own; 0 once it is gone."""
    try:
        times = process.cpu_times()
        if not with_children:
            return float(times.user + times.system)
        own = times.user + times.system + times.children_user + times.children_system
        return float(own + sum(sum(child.cpu_times()[:2]) for child in process.children(recursive=True)))
    except psutil.NoSuchProcess:
        return 0.0


def _memory_bytes(family: list[psutil.Process]) -> int:
    """Memory of a server: what its processes share is counted once, where the system tells it apart."""
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
