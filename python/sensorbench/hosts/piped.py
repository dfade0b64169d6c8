"""A process that is spoken to on its standard streams: what it needs to log in is in no command line."""

import os
import queue
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import IO, Generic, TypeVar

Message = TypeVar("Message")

# What `how_it_ended` says of one that has not.
ANSWERS_NO_MORE = "it answers no more"
# What is shown of what it printed before it ended.
_LOG_BYTES = 2000


class PipedProcess(Generic[Message]):
    """A process whose standard input is what keeps it: when that is closed, it ends. What it says is read on a thread, message by message."""

    def __init__(
        self,
        command: Sequence[str],
        receive: Callable[[IO[bytes]], Message | None],
        *,
        thread: str,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Starts it.

        Args:
            command: its program and arguments.
            receive: reads the next message of a stream; None if the other side is gone.
            thread: the name of the thread that reads.
            environment: variables besides those of this process.

        Raises:
            OSError: it cannot be started.

        """
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - it is closed with the process
        # It may be closed while another thread, which waited for its answer, reads why there is none.
        self._log_lock = threading.Lock()
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                env=None if environment is None else {**os.environ, **environment},
                # Ctrl-C in a terminal is for the controller.
                start_new_session=True,
            )
        except OSError:
            self._log.close()
            raise
        if self._process.stdin is None or self._process.stdout is None:
            raise AssertionError("both are pipes")
        self.stdin, self._stdout = self._process.stdin, self._process.stdout
        self._messages: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, args=(receive,), name=thread, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether it is over."""
        return self._process.poll() is not None

    def next(self, within_s: float) -> Message | None:
        """Its next message; None if it says no more. Raises TimeoutError."""
        try:
            return self._messages.get(timeout=within_s)
        except queue.Empty:
            raise TimeoutError(f"it did not answer for {within_s:g} s") from None

    def how_it_ended(self, within_s: float = 5.0) -> str:
        """How it ended, if it does within a time; else ANSWERS_NO_MORE."""
        try:
            code = self._process.wait(timeout=within_s)
        except subprocess.TimeoutExpired:
            return ANSWERS_NO_MORE
        if code < 0:
            return f"it was ended by {signal.Signals(-code).name}"
        with self._log_lock:
            if self._log.closed:
                return "it was closed"
            self._log.seek(0)
            printed = self._log.read().decode(errors="replace")[-_LOG_BYTES:].strip()
        return f"it ended with exit code {code}" + (f": {printed}" if printed else "")

    def kill(self) -> None:
        """Ends it by SIGKILL."""
        self._process.kill()

    def close(self, patience_s: float) -> None:
        """Ends it: it does so by itself when its standard input is closed, and is killed where it hangs."""
        # It may be gone without having read everything.
        with suppress(OSError):
            self.stdin.close()
        try:
            self._process.wait(timeout=patience_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        self._stdout.close()
        with self._log_lock:
            self._log.close()

    def _read(self, receive: Callable[[IO[bytes]], Message | None]) -> None:
        while (message := receive(self._stdout)) is not None:
            self._messages.put(message)
        self._messages.put(None)
