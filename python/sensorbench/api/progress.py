"""How far a run is: told to a function, printed, or not at all."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from sensorbench.progress import ProgressReporter, Task


@dataclass(frozen=True)
class Progress:
    """One thing to say about a run that goes on.

    Attributes:
        kind: `message` and `warning` are said once; `task` says how far a piece of work is; `done` says how it ended.
        text: the message, or the name of the piece of work.
        detail: what else there is to say of the piece of work; empty if nothing.
        completed: how much of the work is done, in the unit of `total`; None for messages.
        total: how much there is to do; None where that is not known.

    Examples:
        >>> import sensorbench as sb
        >>> def show(progress: sb.Progress) -> None:
        ...     if progress.kind == "warning":
        ...         print(progress.text)
        >>> results = sb.study("iot", out="results/shown", targets=["sqlite"], scale=0.005, operations=20, progress=show)
        >>> results.status
        'complete'

    """

    kind: Literal["message", "warning", "task", "done"]
    text: str
    detail: str = ""
    completed: float | None = None
    total: float | None = None


# False: nothing is said; True: it is printed to standard error, as the command line does; a function: it is called.
ShowProgress = bool | Callable[[Progress], None]


def reporter_for(progress: ShowProgress) -> ProgressReporter:
    """Who is told how far a run is."""
    return ProgressReporter(quiet=not progress) if isinstance(progress, bool) else _CallingReporter(progress)


class _CallingTask(Task):
    """A piece of work that a function is told about."""

    def __init__(self, name: str, total: float | None, reporter: ProgressReporter, call: Callable[[Progress], None]) -> None:
        super().__init__(name, total, reporter.console, None)
        self._call = call

    def advance_to(self, done: float, detail: str = "") -> None:
        self._call(Progress("task", self._name, detail, done, self._total))

    def end(self, detail: str) -> None:
        self._call(Progress("done", self._name, detail, self._total, self._total))


class _CallingReporter(ProgressReporter):
    """Tells a function."""

    def __init__(self, call: Callable[[Progress], None]) -> None:
        super().__init__(quiet=True)
        self._call = call

    def say(self, text: str) -> None:
        self._call(Progress("message", text))

    def warn(self, text: str) -> None:
        self._call(Progress("warning", text))

    @contextmanager
    def task(self, name: str, total: float | None = None) -> Iterator[Task]:
        yield _CallingTask(name, total, self, self._call)
