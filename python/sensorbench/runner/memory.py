"""Loading is stopped before the machine would swap or its disk would be full: then it would measure something else, and take everything else
down with it.
"""

import shutil
from pathlib import Path

import psutil

from sensorbench import lab
from sensorbench.errors import FailedError
from sensorbench.runner.variants import Variant

# This much must stay available: of all memory, and at least.
MIN_SHARE = 0.05
MIN_BYTES = 512_000_000
# This much of the disk must stay free, for logs and results.
MIN_FREE_DISK_BYTES = 1_000_000_000
# What a load will need in the end is estimated only from this much of it on.
WARNING_SHARE = 0.05
WARNING_BYTES = 256_000_000


def min_available() -> int:
    """Bytes of memory that must stay available on this machine."""
    return max(MIN_BYTES, int(psutil.virtual_memory().total * MIN_SHARE))


class MemoryGuard:
    """Watches memory and disk of this machine while a variant is loaded, and what its rows will need in the end. Of data that come to lie on hosts,
    that is not known.
    """

    def __init__(self, variant: Variant, rows: int) -> None:
        self._variant = variant
        self._rows = rows
        self._before = psutil.virtual_memory().available
        instance = lab.instance_at(variant.url) if variant.target.place in {"started", "lab"} and variant.url else None
        is_of_lab = instance is not None and instance.hosts is None
        in_memory = variant.target.database.in_memory
        self._lies_in_memory = in_memory and is_of_lab
        self._disk = lab.instances_folder() if is_of_lab and not in_memory else None
        self._disk_before = _free(self._disk)

    def check(self, loaded: int) -> None:
        """Raises FailedError when the rest of the rows will not fit, or when too little memory is left."""
        available = psutil.virtual_memory().available
        needed = self._needed(loaded, self._before - available) if self._lies_in_memory else None
        if needed is not None:
            self._check_room(loaded, needed, self._before - min_available(), "into memory", "a machine with more memory")
        if available < min_available():
            raise FailedError(
                f"{self._variant.id}: only {available / 1e9:,.1f} GB of memory are left on this machine; stopped after {loaded:,} of {self._rows:,} "
                "rows, before it would swap. Use a smaller --scale or fewer targets at a time"
            )
        if self._disk is not None:
            needed = self._needed(loaded, self._disk_before - _free(self._disk))
            if needed is not None:
                self._check_room(loaded, needed, self._disk_before - MIN_FREE_DISK_BYTES, "onto the disk", "a larger disk")

    def _check_room(self, loaded: int, needed: float, room: int, where: str, instead: str) -> None:
        if needed <= room:
            return
        raise FailedError(
            f"{self._variant.id}: {self._rows:,} rows do not fit {where}: they would need about {needed / 1e9:,.1f} GB ({needed / self._rows:,.0f} bytes "
            f"each), and this machine has {max(0, room) / 1e9:,.1f} GB for them; stopped after {loaded:,} rows. Use a smaller --scale, or {instead}"
        )

    def _needed(self, loaded: int, used: int) -> float | None:
        """Bytes that all rows will need, as far as can be known."""
        is_warned = loaded >= self._rows * WARNING_SHARE and used >= WARNING_BYTES
        return used / loaded * self._rows if is_warned else None


def _free(folder: Path | None) -> int:
    return shutil.disk_usage(folder).free if folder is not None else 0
