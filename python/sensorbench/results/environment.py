"""The machine that figures come from."""

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import psutil

from sensorbench import __version__
from sensorbench.results.described import Environment

_load_before: ContextVar[list[float] | None] = ContextVar("load_before", default=None)


@contextmanager
def one_work() -> Iterator[None]:
    """What begins within has the load of now as the load before it: a pilot and earlier parts of the same work are nobody else's load."""
    token = _load_before.set(_load())
    try:
        yield
    finally:
        _load_before.reset(token)


def environment(out: Path) -> Environment:
    """What could change a figure and is not in the plan: machine, kernel, limits, the disk that results are on."""
    return {
        "sensorbench": __version__,
        "python": platform.python_version(),
        "system": platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
        if platform.system() == "Linux"
        else platform.system(),
        "kernel": platform.release(),
        "processor": _processor(),
        "processors": os.cpu_count(),
        "processors_allowed": len(os.sched_getaffinity(0)),
        "memory_bytes": psutil.virtual_memory().total,
        "memory_limit_bytes": _memory_limit(),
        "clock_source": _first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "frequency_governor": _first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "virtual_machine": "hypervisor" in _flags(),
        "load_before": _load_before.get() or _load(),
        "file_system": _file_system(out),
        "disk_free_bytes": psutil.disk_usage(str(_existing(out))).free,
    }


def _load() -> list[float]:
    return [round(load, 2) for load in os.getloadavg()]


def _first_line(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()[0].strip()
    except (OSError, IndexError):
        return None


def _cpuinfo(key: str) -> str | None:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(key)), None)


def _processor() -> str:
    return _cpuinfo("model name") or platform.processor() or platform.machine()


def _flags() -> list[str]:
    return (_cpuinfo("flags") or "").split()


def _memory_limit() -> int | None:
    """The limit of the control group, if it has one."""
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        text = _first_line(path)
        if text and text.isdigit() and int(text) < psutil.virtual_memory().total:
            return int(text)
    return None


def _existing(path: Path) -> Path:
    path = path.resolve()
    while not path.exists():
        path = path.parent
    return path


def _file_system(path: Path) -> str | None:
    """Type of the file system that holds the path."""
    resolved = _existing(path)
    mounts = [mount for mount in psutil.disk_partitions(all=True) if resolved.is_relative_to(mount.mountpoint)]
    return max(mounts, key=lambda mount: len(mount.mountpoint)).fstype if mounts else None
