"""The process of a load generator: it does what the controller says on its standard input, and ends when that is gone.

`python -m sensorbench.runner.generators.worker` is started by the controller alone.
"""

import os
import queue
import signal
import threading
from typing import BinaryIO

from sensorbench._engine import EngineError, Prepared, Run, Target
from sensorbench.runner.generators.messages import (
    End,
    Ended,
    Join,
    Message,
    OpenPart,
    Poll,
    PollLoad,
    Prepare,
    Progress,
    Put,
    Ready,
    Refused,
    SetRate,
    Start,
    StartLoad,
    Stop,
    StopLoad,
    Take,
    Taken,
    receive,
    send,
)
from sensorbench.runner.generators.part_load import PartLoad
from sensorbench.runner.generators.segments import table_from_bytes, to_parts


class Share:
    """What one load generator executes, from connecting to the end; or what it loads."""

    def __init__(self) -> None:
        # Sessions end with their target.
        self._target: Target | None = None
        self._prepared: Prepared | None = None
        self._running: Run | None = None
        self._loading = PartLoad()

    def answer(self, request: Message, parts: list[bytes]) -> tuple[Message, list[bytes]]:
        """Does what is requested. Raises EngineError."""
        match request:
            case Prepare():
                self._target = Target(request.url)
                self._target.take_part(request.driver_schema)
                tables = [table_from_bytes(part).to_reader() for part in parts]
                self._prepared = self._target.prepare(request.plan, tables)
                return Ready(), []
            case Start() if self._prepared is not None:
                self._running = self._prepared.start_at(request.at_ns)
                return Taken(late_ns=max(0, self._run.now_ns() - request.at_ns)), []
            case Poll():
                is_over = self._run.wait(request.wait_s)
                return Progress(is_over=is_over, snapshot=self._run.snapshot()), []
            case Take():
                # Time first: all intervals that are over by then are taken.
                snapshot = self._run.snapshot()
                return Progress(is_over=False, snapshot=snapshot), to_parts(self._run.take())
            case SetRate():
                self._run.set_rate_at(request.per_s, request.at_ns)
                return Taken(late_ns=max(0, self._run.now_ns() - request.at_ns)), []
            case Stop():
                if self._running is not None:
                    (self._running.cancel if request.cancels else self._running.stop)()
                return Taken(), []
            case End():
                snapshot = self._run.snapshot()
                segment, whole = self._run.end()
                return Ended(snapshot=snapshot, whole=whole, timer_lag=self._run.timer_lag()), to_parts(segment)
            case Join() | Put() | OpenPart() | StartLoad() | PollLoad() | StopLoad():
                return self._loading.answer(request, parts), []
            case _:
                raise AssertionError(f"not a request to a load generator: {request.kind}")

    @property
    def _run(self) -> Run:
        if self._running is None:
            raise AssertionError("the share has not started")
        return self._running


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answers requests until there are no more. Whatever is still running then ends with the process: nobody would hear of it."""
    received: queue.SimpleQueue[tuple[Message, list[bytes]]] = queue.SimpleQueue()

    def read() -> None:
        while (request := receive(requests)) is not None:
            received.put(request)
        os._exit(0)

    threading.Thread(target=read, name="requests", daemon=True).start()
    share = Share()
    while True:
        request, parts = received.get()
        try:
            answer, content = share.answer(request, parts)
        except EngineError as error:
            answer, content = Refused(error=type(error).__name__, texts=tuple(map(str, error.args))), []
        send(answers, answer, content)


def main() -> None:
    """Serves the controller on the standard streams."""
    # Ctrl-C is the controller's: it ends the share, which then hands over what it has recorded.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "wb")
    # What a library prints is not an answer.
    os.dup2(2, 1)
    serve(os.fdopen(0, "rb"), answers)


if __name__ == "__main__":
    main()
