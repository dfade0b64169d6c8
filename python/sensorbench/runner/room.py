"""Room on this machine: bytes that are free on the disk and in memory."""

import shutil
from pathlib import Path

import psutil

from sensorbench.paths import cache_folder
from sensorbench.runner.memory import min_available


def free_room(out: Path) -> tuple[int, int]:
    """Bytes that are free on the disk of results, or of the cache if that is less, and of memory, before the machine would swap."""
    above = next(folder for folder in [out.absolute(), *out.absolute().parents] if folder.exists())
    disk = min(shutil.disk_usage(folder).free for folder in (above, cache_folder("prepared")))
    return disk, max(0, psutil.virtual_memory().available - min_available())
