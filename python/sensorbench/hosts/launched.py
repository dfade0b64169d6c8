"""Processes that the controller starts for hosts, here or by SSH, and what they say."""

import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import IO

from sensorbench.errors import FailedError
from sensorbench.hosts.hosts_file import HostEntry
from sensorbench.hosts.messages import BeHost, BeScheduler, Hello, Listening, Message, Refused, receive, send
from sensorbench.hosts.piped import PipedProcess

_MODULE = ("-P", "-m", "sensorbench.hosts.process")
# Python with its libraries is there by then, also over a slow network.
_HELLO_S, _LISTENING_S = 60.0, 60.0
# This long a process has to end by itself.
_CLOSE_S = 5.0
# A connection that says nothing for this many intervals of this many seconds is gone.
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
        """Starts it. Raises FailedError."""
        self.name = name
        try:
            self._process: PipedProcess[Message] = PipedProcess(
                command, _received, thread=f"messages of {name}", environment=environment
            )
        except OSError as error:
            raise FailedError(f"{name}: {command[0]} cannot be started: {error.strerror}") from None

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
        """How the process ended, if it does within a time; else ANSWERS_NO_MORE."""
        return self._process.how_it_ended(within_s)

    @property
    def pid(self) -> int:
        """The number of the process here: of ssh, if the host is reached by it."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether it is over."""
        return self._process.has_ended

    def kill(self) -> None:
        """Ends the process here by SIGKILL."""
        self._process.kill()

    def close(self) -> None:
        """Ends the process, which ends by itself when its standard input is closed, unless it hangs."""
        self._process.close(_CLOSE_S)

    def _next(self, within_s: float) -> Message:
        try:
            found = self._process.next(within_s)
        except TimeoutError as error:
            raise FailedError(f"{self.name}: {error}") from None
        if found is None:
            raise FailedError(f"{self.name}: {self.how_it_ended()}")
        return found


def _received(stream: IO[bytes]) -> Message | None:
    """The next message. What is none, as what a login script prints before our process does, is a refusal with that text."""
    try:
        return receive(stream)
    except ValueError as error:
        return Refused(why=f"it printed something other than its answers: {error}")
