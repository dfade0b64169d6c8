"""Loading is stopped before the machine would swap: then it would measure the disk, and take everything else down with it."""

import psutil

from sensorbench.errors import FailedError
from sensorbench.runner.variants import Variant

# So much must stay available: of all memory, and at least.
MIN_SHARE = 0.05
MIN_BYTES = 512_000_000
# What a load will need in the end is told only from so much of it on.
WARNING_SHARE = 0.05
WARNING_BYTES = 256_000_000


def min_available() -> int:
    """Bytes of memory that must stay available on this machine."""
    return max(MIN_BYTES, int(psutil.virtual_memory().total * MIN_SHARE))


class MemoryGuard:
    """Watches the memory of this machine while a variant is loaded, and what a database that keeps all data in memory will need."""

    def __init__(self, variant: Variant, rows: int) -> None:
        self._variant = variant
        self._rows = rows
        self._before = psutil.virtual_memory().available
        self._lies_in_memory = variant.target.database.in_memory and variant.target.place in {"started", "lab"}

    def check(self, loaded: int) -> None:
        """Raises FailedError when the rest of the rows will not fit, or when too little memory is left."""
        available = psutil.virtual_memory().available
        needed = self._needed(loaded, self._before - available)
        room = self._before - min_available()
        if needed is not None and needed > room:
            raise FailedError(
                f"{self._variant.id}: {self._rows:,} rows do not fit into memory: they would need about {needed / 1e9:,.1f} GB, and this machine "
                f"has {max(0, room) / 1e9:,.1f} GB for them; stopped after {loaded:,} rows. Use a smaller --scale, or a machine with more memory"
            )
        if available < min_available():
            raise FailedError(
                f"{self._variant.id}: only {available / 1e9:,.1f} GB of memory are left on this machine; stopped after {loaded:,} of {self._rows:,} "
                "rows, before it swaps. Use a smaller --scale or fewer targets at a time"
            )

    def _needed(self, loaded: int, used: int) -> float | None:
        """Bytes that all rows will need, as far as can be told."""
        is_warned = loaded >= self._rows * WARNING_SHARE and used >= WARNING_BYTES
        return used / loaded * self._rows if self._lies_in_memory and is_warned else None
