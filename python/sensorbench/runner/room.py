"""Room on this machine: bytes that are free on the disk and in memory."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import psutil

from sensorbench import lab
from sensorbench.paths import cache_folder
from sensorbench.results.estimate import Estimate, PartEstimate, Room
from sensorbench.runner.memory import min_available


def free_room(out: Path) -> tuple[int, int]:
    """Bytes that are free on the disk of results, or of the cache or of the lab's servers where that is less, and of memory, before the machine
    would swap.
    """
    above = next(folder for folder in [out.absolute(), *out.absolute().parents] if folder.exists())
    disk = min(shutil.disk_usage(folder).free for folder in (above, cache_folder("prepared"), lab.instances_folder()))
    return disk, max(0, psutil.virtual_memory().available - min_available())


def arithmetic_estimate(
    title: str,
    kind: str,
    parts: Sequence[PartEstimate],
    out: Path,
    *,
    steps: Sequence[str] = (),
    scale: float | None = None,
    time_s: float | None = None,
    notes: Sequence[str] = (),
) -> Estimate:
    """What a benchmark would do, by arithmetic alone: without a pilot, what it takes of disk and memory is not known."""
    disk_free, memory_free = free_room(out)
    return Estimate(
        title=title,
        kind=kind,
        scale=scale,
        parts=list(parts),
        steps=list(steps),
        disk=Room(needed=None, free=disk_free),
        memory=Room(needed=None, free=memory_free),
        time_s=time_s,
        notes=list(notes),
    )
