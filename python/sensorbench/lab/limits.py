"""CPUs and memory of servers: by a cgroup where that is permitted. Version 2 keeps both, version 1 the memory, and affinity the CPUs."""

import os
import re
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from sensorbench.errors import FailedError, UsageError

CGROUPS = Path("/sys/fs/cgroup")
# The memory controller of version 1, which older systems and some virtual machines have instead.
_VERSION_1 = CGROUPS / "memory"
_SIZE = re.compile(r"(?P<number>\d+(\.\d+)?)\s*(?P<unit>[kKmMgGtT]?)i?[bB]?")
# Where a cgroup of either version has its limit of memory, by how limits say that they are kept.
_MEMORY_FILES = {"cgroup v2": "memory.max", "cgroup v1": "memory.limit_in_bytes"}
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class Limits(BaseModel):
    """What was asked for, and how it is kept here. `memory_by` and `cpus_by` say it in words for reports."""

    model_config = ConfigDict(extra="forbid")

    cpus: list[int] | None = None
    memory_bytes: int | None = None
    cpus_by: str = "not limited"
    memory_by: str = "not limited"
    group: str | None = None


def parse_cpus(text: str) -> list[int]:
    """`0`, `0,2` or `1-3`: processors that there are."""
    allowed = sorted(os.sched_getaffinity(0))
    try:
        cpus = sorted({cpu for part in text.split(",") for cpu in _range(part)})
    except ValueError:
        raise UsageError(f"--cpus {text}: expected CPUs such as 1, 0,2 or 1-3") from None
    unknown = [cpu for cpu in cpus if cpu not in allowed]
    if unknown:
        raise UsageError(f"--cpus {text}: there is no CPU {unknown[0]}; this process may use {', '.join(map(str, allowed))}")
    return cpus


def _range(part: str) -> range:
    first, dash, last = part.partition("-")
    return range(int(first), int(last) + 1) if dash else range(int(first), int(first) + 1)


def parse_memory(text: str, flag: str = "--memory") -> int:
    """`512M`, `2G`: bytes. Raises UsageError that names the flag."""
    found = _SIZE.fullmatch(text.strip())
    if not found or float(found["number"]) <= 0:
        raise UsageError(f"{flag} {text}: expected a size such as 512M or 2G")
    return int(float(found["number"]) * _UNITS[found["unit"].lower()])


def limits(name: str, cpus: list[int] | None, memory_bytes: int | None) -> Limits:
    """How limits can be kept here: makes a cgroup for an instance when one is wanted and permitted."""
    if cpus is None and memory_bytes is None:
        return Limits()
    wanted = [*(["cpuset"] if cpus else []), *(["memory"] if memory_bytes else [])]
    group, why_not = _make_group(f"sensorbench-{name}", wanted)
    if group is None and memory_bytes and (of_version_1 := _make_group_of_version_1(f"sensorbench-{name}", memory_bytes)):
        return Limits(
            cpus=cpus,
            memory_bytes=memory_bytes,
            cpus_by="affinity" if cpus else "not limited",
            memory_by="cgroup v1",
            group=str(of_version_1),
        )
    if group is None:
        return Limits(
            cpus=cpus,
            memory_bytes=memory_bytes,
            cpus_by="affinity" if cpus else "not limited",
            memory_by=f"not available here ({why_not})" if memory_bytes else "not limited",
        )
    if memory_bytes:
        (group / "memory.max").write_text(str(memory_bytes))
    if cpus:
        (group / "cpuset.cpus").write_text(",".join(map(str, cpus)))
    return Limits(
        cpus=cpus,
        memory_bytes=memory_bytes,
        cpus_by="cgroup v2" if cpus else "not limited",
        memory_by="cgroup v2" if memory_bytes else "not limited",
        group=str(group),
    )


def _make_group(name: str, controllers: list[str]) -> tuple[Path | None, str]:
    """A cgroup below the root's; None and the reason when that cannot be."""
    try:
        available = (CGROUPS / "cgroup.controllers").read_text().split()
    except FileNotFoundError:
        return None, "the machine has no unified cgroup v2"
    lacking = [controller for controller in controllers if controller not in available]
    if lacking:
        return None, f"cgroup v2 has no controller {lacking[0]} here"
    group = CGROUPS / name
    try:
        (CGROUPS / "cgroup.subtree_control").write_text(" ".join(f"+{controller}" for controller in controllers))
        group.mkdir(exist_ok=True)
    except OSError as error:
        return None, f"cgroup v2 is not permitted: {error.strerror}"
    return group, ""


def _make_group_of_version_1(name: str, memory_bytes: int) -> Path | None:
    """A cgroup of version 1 with this limit of memory, page cache included; None if that cannot be."""
    group = _VERSION_1 / name
    try:
        group.mkdir(exist_ok=True)
    except OSError:
        return None
    try:
        (group / "memory.limit_in_bytes").write_text(str(memory_bytes))
    except OSError:
        group.rmdir()
        return None
    return group


def of_more_nodes(limits_: Limits, before: int, nodes: int) -> Limits:
    """The limits of a cluster that has another number of nodes: what one may use stays the same. Raises FailedError if the kernel refuses."""
    if limits_.memory_bytes is None or before == nodes:
        return limits_
    return with_memory(limits_, limits_.memory_bytes * nodes // before)


def with_memory(limits_: Limits, memory_bytes: int) -> Limits:
    """The limits with another memory, which is kept from now on. Raises FailedError if the kernel refuses."""
    changed = limits_.model_copy(update={"memory_bytes": memory_bytes})
    apply_memory(changed)
    return changed


def apply_memory(limits_: Limits) -> None:
    """Has the cgroup keep the memory of limits, if there is one. Raises FailedError if the kernel refuses."""
    file = _MEMORY_FILES.get(limits_.memory_by)
    if limits_.group is None or file is None:
        return
    try:
        (Path(limits_.group) / file).write_text(str(limits_.memory_bytes))
    except OSError as error:
        raise FailedError(
            f"the memory of {limits_.group} cannot become {limits_.memory_bytes:,} bytes: {error.strerror}"
        ) from None


def enter_group(limits_: Limits, pid: int) -> None:
    """Puts a process that was just started into the cgroup, if there is one. The process itself may not do that: it is no longer root's."""
    if limits_.group is not None:
        (Path(limits_.group) / "cgroup.procs").write_text(str(pid))


def ended_by_memory_limit(limits_: Limits) -> bool:
    """Whether the kernel has ended a process because what the cgroup may use was used up."""
    if limits_.group is None:
        return False
    counts = [Path(limits_.group) / name for name in ("memory.events", "memory.oom_control")]
    lines = [line for file in counts if file.exists() for line in file.read_text(encoding="ascii").splitlines()]
    return any(name == "oom_kill" and int(count) > 0 for name, _, count in (line.partition(" ") for line in lines))


def remove_group(limits_: Limits) -> None:
    """Removes the cgroup, whose processes have ended."""
    if limits_.group is not None and Path(limits_.group).exists():
        Path(limits_.group).rmdir()
