"""Locks between processes, which end with the process that holds them."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Holds a lock on a file, which is made; waits for whoever holds it."""
    with file.open("a") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield
