"""Waiting for what takes in rows."""

from collections.abc import Callable

from sensorbench._engine import Load
from sensorbench.progress import Task
from sensorbench.runner.memory import MemoryGuard

SLICE_S = 0.2


def _not_noted(_: int) -> None:
    """Nobody notes how many rows are in."""


def wait_for(load: Load, before: int, task: Task, guard: MemoryGuard, note: Callable[[int], None] = _not_noted) -> None:
    """Waits until a load is over, after `before` rows of others, and reports how far it is; one that is cut short is stopped. `note` is
    called some times per second, and at the end, with the number of rows that are in.
    """
    try:
        while not load.wait(SLICE_S):
            guard.check(before + load.rows)
            task.advance_to(before + load.rows, f"{before + load.rows:,} rows")
            note(before + load.rows)
        note(before + load.rows)
    except BaseException:
        load.stop()
        load.wait(60.0)
        raise


def wait_for_file(load: Load, before: int, task: Task) -> None:
    """Waits until rows are written to a file, which loads none of them; one that is cut short is stopped."""
    try:
        while not load.wait(SLICE_S):
            task.advance_to(before, f"writing a file: {load.rows:,} rows")
    except BaseException:
        load.stop()
        load.wait(60.0)
        raise
