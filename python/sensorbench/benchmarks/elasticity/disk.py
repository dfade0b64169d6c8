"""A slow disk for processes: how much they read and write there a second, by a cgroup of the first or the second version, where one is
permitted. The first version slows down what a process waits for (reads, and writes until they are on disk), and not what the kernel writes
back later by itself.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from sensorbench.errors import FailedError

_NAME = "sensorbench-slow-disk"
_FIRST, _SECOND = Path("/sys/fs/cgroup/blkio"), Path("/sys/fs/cgroup")
_MEMBERS = "cgroup.procs"


@contextmanager
def slowed(processes: Sequence[psutil.Process], folder: Path, bytes_per_s: int) -> Iterator[None]:
    """Processes that together read, and write, at most this much a second on the disk of a folder. Raises FailedError if that is not
    permitted.
    """
    hierarchy, device = _hierarchy(), _device(folder)
    group, home = hierarchy / _NAME, _home(hierarchy, processes)
    with _said_of(group):
        group.mkdir()
    try:
        with _said_of(group):
            _limit(group, device, bytes_per_s)
            for process in processes:
                _move(process.pid, group)
        yield
    finally:
        _remove(group, home)


def recover() -> None:
    """Takes away what work that was killed has left behind."""
    for hierarchy in (_FIRST, _SECOND):
        _remove(hierarchy / _NAME, hierarchy)


@contextmanager
def _said_of(group: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise FailedError(f"the cgroup {group}: {error.strerror}") from None


def _hierarchy() -> Path:
    """Where cgroups for disks are."""
    if _FIRST.is_dir():
        return _FIRST
    controllers = _SECOND / "cgroup.controllers"
    if not controllers.exists() or "io" not in controllers.read_text().split():
        raise FailedError("no cgroup limits what is read and written here (neither blkio of version 1 nor io of version 2)")
    return _SECOND


def _home(hierarchy: Path, processes: Sequence[psutil.Process]) -> Path:
    """The cgroup that processes come from: they go back there."""
    prefix = "0::" if hierarchy == _SECOND else ":blkio:"
    for process in processes:
        lines = Path(f"/proc/{process.pid}/cgroup").read_text().splitlines()
        (path,) = (line.partition(prefix)[2] for line in lines if prefix in line)
        home = hierarchy / path.lstrip("/")
        if hierarchy == _SECOND and (home / "memory.max").exists():
            # A process is in one cgroup of version 2 alone.
            raise FailedError(f"process {process.pid} would lose the limits of the cgroup that it is in, {home}")
        return home
    return hierarchy


def _device(folder: Path) -> str:
    """The disk that a folder is on, as its two numbers: of a partition, the whole disk."""
    number = folder.stat().st_dev
    device = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if not device.exists():
        raise FailedError(f"{folder} is on no disk of its own (a file system in memory, or laid over another one)")
    disk = device.resolve()
    return ((disk.parent if (disk / "partition").exists() else disk) / "dev").read_text().strip()


def _limit(group: Path, device: str, bytes_per_s: int) -> None:
    if group.parent == _SECOND:
        (_SECOND / "cgroup.subtree_control").write_text("+io")
        (group / "io.max").write_text(f"{device} rbps={bytes_per_s} wbps={bytes_per_s}")
        return
    for what in ("read", "write"):
        (group / f"blkio.throttle.{what}_bps_device").write_text(f"{device} {bytes_per_s}")


def _move(pid: int, group: Path) -> None:
    # One that has just ended needs no place.
    with suppress(ProcessLookupError):
        (group / _MEMBERS).write_text(str(pid))


def _remove(group: Path, home: Path) -> None:
    """Takes a cgroup away; its processes go home."""
    with suppress(FileNotFoundError):
        for pid in (group / _MEMBERS).read_text().split():
            _move(int(pid), home)
        group.rmdir()
