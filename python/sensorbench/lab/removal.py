"""What there is of the lab, and how it is ended and removed, here and on hosts: by its record, by its folder, and by what runs for it."""

import contextlib
import logging
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from sensorbench.errors import FailedError, LostHostError, UsageError
from sensorbench.hosts.host import Host
from sensorbench.lab import processes
from sensorbench.lab.instance import RECORD_FILE, Instance, find_instance
from sensorbench.lab.limits import remove_group
from sensorbench.lab.nodes import STOP_WITHIN_S
from sensorbench.lab.placement import absolute, hosts_of
from sensorbench.lab.registry import LAB_SERVERS
from sensorbench.lab.state_dirs import instances_folder

_log = logging.getLogger(__name__)


def folders() -> list[Path]:
    """The folders that lie among the instances."""
    return [folder for folder in sorted(instances_folder().iterdir()) if folder.is_dir()]


def sound_instances() -> list[Instance]:
    """The instances whose records can be read."""
    sound = []
    for folder in folders():
        with contextlib.suppress(FailedError, UsageError):
            if (folder / RECORD_FILE).exists():
                sound.append(find_instance(folder.name))
    return sound


def is_of_lab(folder: Path) -> bool:
    """Whether a folder is that of an instance: it has a record, sound or not, or its processes run."""
    return (folder / RECORD_FILE).exists() or processes.is_anything_started_for(folder)


def end_processes(instance: Instance) -> None:
    """Ends what runs of an instance. What it stored is lost, so nothing is waited for."""
    found = {process.pid: process for process in processes.processes_of(instance.folder)}
    for node in instance.processes_here:
        if process := node.find():
            found[process.pid] = process
    processes.end(list(found.values()), signal=LAB_SERVERS[instance.database].stop_signal, patience_s=STOP_WITHIN_S)


def remove_here(instance: Instance) -> None:
    """Ends an instance's processes and removes its folder."""
    end_processes(instance)
    remove_group(instance.limits)
    shutil.rmtree(instance.folder, ignore_errors=True)


def remove_part(name: str, identity: str) -> None:
    """Removes the part of an instance that is on this machine, which is one of its hosts. What has this name and is not part of it stays."""
    part = next((instance for instance in sound_instances() if instance.name == name), None)
    if part is not None and part.identity == identity:
        remove_here(part)


def remove(instance: Instance) -> None:
    """Ends an instance's processes and removes its folder, here and on its hosts.

    Raises LostHostError, when all else is removed, where a host cannot be reached: what is on it stays in the record.
    """
    now = next((known for known in sound_instances() if known.name == instance.name), instance)
    if now.identity != instance.identity:
        # Somebody has ended it already, and this is another one.
        return
    lost: dict[str, str] = {}
    for host in hosts_of(now):
        try:
            host.call(remove_part, now.name, now.identity)
        except LostHostError as error:
            lost[host.name] = str(error)
    if not lost:
        remove_here(now)
        return
    end_processes(now)
    left = [node for node in now.nodes if node.placed_on in lost]
    kept = {name: part for name, part in now.parts.items() if name in lost}
    now.model_copy(update={"state": "being removed", "nodes": left, "parts": kept}).write()
    numbers = ", ".join(str(node.number) for node in left)
    raise LostHostError(
        f"{now.name}: what is on {', '.join(lost)} cannot be removed, and may still run (node {numbers}): {'; '.join(lost.values())}. All else "
        f"is removed; when the host is back: sensorbench lab down {now.name}"
    )


def remove_after_failure(instance: Instance) -> None:
    """The same, where something else has failed already, which is what is said; `lab list` has what could not be removed."""
    try:
        remove(instance)
    except LostHostError as error:
        _log.warning("%s", error)


def sweep() -> list[str]:
    """Ends what belongs to nobody: instances whose owner is gone, with their parts on hosts. One of which a host cannot be reached is listed from
    then on as being removed.
    """
    swept = []
    for instance in sound_instances():
        if instance.is_abandoned:
            remove_after_failure(instance)
            swept.append(instance.name)
    return swept


def sweep_hosts(text: str, hosts: Sequence[Host]) -> None:
    """Ends on hosts what belongs to nobody there, and removes what could not be removed when one of them was lost. Whoever works there afterwards finds neither
    nodes at the addresses that are wanted nor old records.

    Args:
        text: what `--hosts` says.
        hosts: those that it names, which are connected.

    Raises:
        LostHostError: if one of them is lost again.

    """
    for host in hosts:
        host.call(sweep)
    for instance in sound_instances():
        if instance.state == "being removed" and instance.hosts == absolute(text):
            remove_after_failure(instance)


def remove_folder(folder: Path) -> None:
    """A folder without a sound record: its processes are known by their environment alone."""
    processes.end(processes.processes_of(folder), signal=15, patience_s=STOP_WITHIN_S)
    shutil.rmtree(folder, ignore_errors=True)


def size_of(folder: Path) -> int:
    """Bytes of the files in a folder. Servers make and remove some of them meanwhile."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += (Path(place) / name).lstat().st_size
    return total


def size_of_instance(name: str) -> int:
    """Bytes of the files of an instance, or a part of one, on this machine."""
    return size_of(instances_folder() / name)


def process_ids_here(name: str) -> list[int]:
    """The processes of an instance, or a part of one, that are in this machine's process table, whatever its record says."""
    return sorted(process.pid for process in processes.processes_of(instances_folder() / name))
