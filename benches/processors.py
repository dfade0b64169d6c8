"""Clients on one processor and servers on another: neither takes the other's time."""

import contextlib
import os
from collections.abc import Iterator


@contextlib.contextmanager
def on_processor(number: int) -> Iterator[None]:
    """Keeps this thread, and whatever it starts, to one processor."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {number})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
