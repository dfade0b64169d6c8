"""Telling people how far long work is: bars on a terminal, plain lines elsewhere. All of it goes to standard error."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from sensorbench.terminal import TERMINAL, console, error_console

__all__ = ["ProgressReporter", "Task", "console", "error_console", "print_labelled"]

if TYPE_CHECKING:
    from rich.progress import Progress

SECONDS_BETWEEN_LINES = 10.0


class Task:
    """One piece of work whose progress is reported."""

    def __init__(self, name: str, total: float | None, console: Console, bars: "Progress | None") -> None:
        self._name = name
        self._total = total
        self._console = console
        self._bars = bars
        self._bar = bars.add_task(name, total=total, detail="") if bars else None
        self._start_s = self._last_line_s = time.monotonic()

    def advance_to(self, done: float, detail: str = "") -> None:
        """Says that `done` of the total is done."""
        if self._bars is not None and self._bar is not None:
            self._bars.update(self._bar, completed=done, detail=detail)
        elif time.monotonic() - self._last_line_s >= SECONDS_BETWEEN_LINES:
            self._last_line_s = time.monotonic()
            share = f"{done / self._total:.0%}" if self._total else ""
            how_far = ", ".join(filter(None, (share, detail)))
            self._console.print(f"  {self._name}: {how_far}" if how_far else f"  {self._name}", highlight=False)

    def end(self, detail: str) -> None:
        """Says how it ended."""
        if self._bars is not None and self._bar is not None:
            self._bars.update(self._bar, completed=self._total or 1, total=self._total or 1, detail=detail)
        else:
            self._console.print(f"  {self._name}: {detail}", highlight=False)


class ProgressReporter:
    """Reports progress."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.console = error_console()
        self.console.quiet = quiet or TERMINAL.quiet
        # What --quiet leaves out are steps, not warnings.
        self._warnings = error_console() if TERMINAL.quiet and not quiet else self.console
        self._bars: Progress | None = None

    def say(self, text: str) -> None:
        """One line that stays."""
        self.console.print(text, highlight=False)

    def warn(self, text: str) -> None:
        """One line that should not be overlooked."""
        print_labelled(self._warnings, "warning", text)

    @contextmanager
    def task(self, name: str, total: float | None = None) -> Iterator[Task]:
        """Reports the progress of one piece of work."""
        # Steps that are logged would be printed into a bar.
        if not self.console.is_terminal or self.console.quiet or TERMINAL.verbose:
            yield Task(name, total, self.console, None)
            return
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

        columns = (
            TextColumn("  {task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[detail]}", markup=False),
        )
        with Progress(*columns, console=self.console) as bars:
            yield Task(name, total, self.console, bars)


def print_labelled(screen: Console, label: str, text: str, style: str = "yellow") -> None:
    """Prints a line that begins with a word in a colour: `note: …`."""
    screen.print(Text.assemble((f"{label}:", style), " ", text), highlight=False)
