"""Loading parts of tables in the process of a load generator."""

import tempfile
import time
from pathlib import Path
from typing import IO

import pyarrow as pa

from sensorbench._engine import Load, Target
from sensorbench.runner.generators.load_part import LoadPart, rows_of
from sensorbench.runner.generators.messages import (
    Join,
    LoadState,
    OpenPart,
    PollLoad,
    Put,
    Ready,
    StartLoad,
    StopLoad,
    Taken,
)


class PartLoad:
    """One part after the other, each of them once."""

    def __init__(self) -> None:
        self._target: Target | None = None
        # Of the part that was sent, where the controller's files are elsewhere.
        self._sent: IO[bytes] | None = None
        self._opened: tuple[LoadPart, pa.RecordBatchReader, int | None] | None = None
        self._load: Load | None = None
        self._start_ns = 0

    def answer(
        self, request: Join | Put | OpenPart | StartLoad | PollLoad | StopLoad, parts: list[bytes]
    ) -> Ready | Taken | LoadState:
        """Does what is requested. Raises EngineError."""
        match request:
            case Join():
                self._target = Target(request.url)
                self._target.take_part(request.driver_schema)
                return Ready()
            case Put():
                self._put(parts)
                return Taken()
            case OpenPart():
                self._open(request)
                return Ready()
            case StartLoad():
                self._start(request.at_ns)
                return Taken(late_ns=max(0, self._start_ns - request.at_ns))
            case PollLoad():
                load = self._going_on
                is_over = load.wait(request.wait_s)
                return LoadState(rows=load.rows, start_ns=self._start_ns, result=load.result() if is_over else None)
            case StopLoad():
                if self._load is not None:
                    self._load.stop()
                return Taken()

    def _put(self, parts: list[bytes]) -> None:
        if self._sent is None:
            # Without a name: it is gone with this process, however that ends.
            self._sent = tempfile.TemporaryFile()  # noqa: SIM115 - it is closed when the part is opened
        for part in parts:
            self._sent.write(part)

    def _open(self, request: OpenPart) -> None:
        if request.part.file is not None:
            file = Path(request.part.file)
        elif self._sent is not None:
            self._sent.flush()
            file = Path(f"/proc/self/fd/{self._sent.fileno()}")
        else:
            raise AssertionError("nothing was sent")
        self._opened = (request.part, rows_of(request.part, file), request.batch_rows)
        if self._sent is not None:
            # The rows have it open for themselves.
            self._sent.close()
            self._sent = None

    def _start(self, at_ns: int) -> None:
        if self._target is None or self._opened is None:
            raise AssertionError("no part was opened")
        # A part that is loaded is not there to be loaded again.
        (part, rows, batch_rows), self._opened = self._opened, None
        time.sleep(max(0, at_ns - time.monotonic_ns()) / 1e9)
        self._start_ns = time.monotonic_ns()
        self._load = self._target.load(part.table, rows, batch_rows=batch_rows)

    @property
    def _going_on(self) -> Load:
        if self._load is None:
            raise AssertionError("no load has started")
        return self._load
