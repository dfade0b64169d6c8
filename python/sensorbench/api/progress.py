"""Progress of a run: passed to a callback, printed, or discarded."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from sensorbench.progress import ProgressReporter, Task


@dataclass(frozen=True)
class Progress:
    """A progress event of a run.

    Attributes:
        kind: `message` or `warning`: a text; `task`: the progress of a task; `done`: a task has ended.
        text: the message, or the name of the task.
        detail: details of the task; may be empty.
        completed: how much of the task is done, in the unit of `total`; None for messages.
        total: the size of the task; None if unknown.

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


# False: no progress; True: printed to standard error, as on the command line; a function: called with each event.
ShowProgress = bool | Callable[[Progress], None]


def reporter_for(progress: ShowProgress) -> ProgressReporter:
    """The reporter for a `progress` argument."""
    return ProgressReporter(quiet=not progress) if isinstance(progress, bool) else _CallingReporter(progress)


class _CallingTask(Task):
    """A task whose progress is passed to a callback."""

    def __init__(self, name: str, total: float | None, reporter: ProgressReporter, call: Callable[[Progress], None]) -> None:
        super().__init__(name, total, reporter.console, None)
        self._call = call

    def advance_to(self, done: float, detail: str = "") -> None:
        self._call(Progress("task", self._name, detail, done, self._total))

    def end(self, detail: str) -> None:
        self._call(Progress("done", self._name, detail, self._total, self._total))


class _CallingReporter(ProgressReporter):
    """Passes progress to a callback."""

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
