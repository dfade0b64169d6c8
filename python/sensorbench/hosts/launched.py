"""Processes that the controller starts for hosts, here or by SSH, and what they say."""

import os
import queue
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress

from sensorbench.errors import FailedError
from sensorbench.hosts.hosts_file import HostEntry
from sensorbench.hosts.messages import BeHost, BeScheduler, Hello, Listening, Message, Refused, receive, send

_MODULE = ("-P", "-m", "sensorbench.hosts.process")
# Python with its libraries is there by then, also over a slow network.
_HELLO_S, _LISTENING_S = 60.0, 60.0
# What is shown of what a process printed before it ended.
_LOG_BYTES = 1500
# A connection that says nothing for so many intervals of so many seconds is gone.
_ALIVE = ("ServerAliveInterval=5", "ServerAliveCountMax=3")


def local_command(python: str | None = None) -> list[str]:
    """What starts the process here, by the Python of this process or another one."""
    return [python or sys.executable, *_MODULE]


def ssh_command(entry: HostEntry) -> list[str]:
    """What starts the process by SSH. Nothing secret is in it, and no shell here reads it; the one there reads what is quoted for it."""
    target, port = entry.ssh_target
    options = ["BatchMode=yes", "ConnectTimeout=10", *_ALIVE, *entry.ssh_options]
    words = ["ssh", "-T", *(word for option in options for word in ("-o", option))]
    if entry.identity_file is not None:
        words += ["-i", str(entry.identity_file.expanduser()), "-o", "IdentitiesOnly=yes"]
    if port is not None:
        words += ["-p", port]
    return [*words, "--", target, shlex.join([entry.python or "python3", *_MODULE])]


class Launched:
    """A process of a host or of the scheduler. Its standard input is what keeps it: when that is closed, it ends."""

    def __init__(self, name: str, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self.name = name
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - it is closed with the process
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
        except OSError as error:
            self._log.close()
            raise FailedError(f"{name}: {command[0]} cannot be started: {error.strerror}") from None
        self._messages: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, name=f"messages of {name}", daemon=True)
        self._reader.start()

    def hello(self) -> Hello:
        """What it says of itself once it is there. Raises FailedError."""
        match self._next(_HELLO_S):
            case Hello() as hello:
                return hello
            case Refused(why=why):
                raise FailedError(f"{self.name}: {why}")
            case answer:
                raise AssertionError(f"{self.name} said {answer.kind} first")

    def order(self, order: BeScheduler | BeHost) -> None:
        """Says what it is to be; `listening` has the answer. Raises FailedError."""
        if self._process.stdin is None:
            raise AssertionError("it has a standard input")
        try:
            send(self._process.stdin, order)
        except OSError:
            raise FailedError(f"{self.name}: {self.how_it_ended()}") from None

    def listening(self) -> str:
        """Where it listens. Raises FailedError."""
        match self._next(_LISTENING_S):
            case Listening(address=address):
                return address
            case Refused(why=why):
                raise FailedError(f"{self.name}: {why}")
            case answer:
                raise AssertionError(f"{self.name} answered {answer.kind}")

    def how_it_ended(self, within_s: float = 5.0) -> str:
        """How the process ended, if it does within a time."""
        try:
            code = self._process.wait(timeout=within_s)
        except subprocess.TimeoutExpired:
            return "it answers no more"
        if code < 0:
            return f"it was ended by {signal.Signals(-code).name}"
        self._log.seek(0)
        printed = self._log.read().decode(errors="replace")[-_LOG_BYTES:].strip()
        return f"it ended with exit code {code}" + (f": {printed}" if printed else "")

    @property
    def pid(self) -> int:
        """The number of the process here: of ssh, if the host is reached by it."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether it is over."""
        return self._process.poll() is not None

    def close(self) -> None:
        """Ends the process, which ends by itself when its standard input is closed, unless it hangs."""
        if self._process.stdin is not None:
            # It may be gone without having read everything.
            with suppress(OSError):
                self._process.stdin.close()
        try:
            self._process.wait(timeout=5.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._log.close()

    def _next(self, within_s: float) -> Message:
        try:
            found = self._messages.get(timeout=within_s)
        except queue.Empty:
            raise FailedError(f"{self.name}: it did not answer for {within_s:g} s") from None
        if found is None:
            raise FailedError(f"{self.name}: {self.how_it_ended()}")
        return found

    def _read(self) -> None:
        stream = self._process.stdout
        # A login script that prints before our process is no message, and is told as what it is.
        try:
            while stream is not None and (message := receive(stream)) is not None:
                self._messages.put(message)
        except ValueError as error:
            self._messages.put(Refused(why=f"it printed something else than its answers: {error}"))
        self._messages.put(None)
