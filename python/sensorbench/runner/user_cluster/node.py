"""One node of a cluster of the user's: commands are run there, directly or by ssh. No shell of this machine ever sees a word."""

import shlex
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sensorbench.errors import FailedError
from sensorbench.runner.user_cluster.file import ClusterNode
from sensorbench.runner.user_cluster.words import FilledWords, filled, output_without_secrets

# BatchMode: ssh fails where it would ask somebody who is not there.
_SSH = ("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10")
_MAX_OUTPUT = 500
_CONNECTS_WITHIN_S, ASKS_EVERY_S = 2.0, 0.5


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it printed."""

    code: int
    printed: bytes
    said: str


class Node:
    """A node, and how commands get there."""

    def __init__(self, entry: ClusterNode, ssh_options: Sequence[str], timeout_s: float) -> None:
        self.entry = entry
        self.address = entry.address
        self._ssh_options = tuple(ssh_options)
        self._timeout_s = timeout_s

    @property
    def shown(self) -> str:
        """What messages call it."""
        return f"node {self.address} ({f'ssh {self.entry.ssh}' if self.entry.ssh else 'local'})"

    def filled(self, words: Sequence[str], values: Mapping[str, str] | None = None) -> FilledWords:
        """The words of a command for this node."""
        own = {"host": self.entry.host, "port": str(self.entry.port), "address": self.address}
        return filled(words, {**own, **(values or {})})

    def by_ssh(self, words: Sequence[str]) -> list[str]:
        """The words that are run here: those of the command, or ssh with one text for the shell of the other side, each word quoted."""
        if self.entry.ssh is None:
            return list(words)
        return [*_SSH, *self._ssh_options, self.entry.ssh, "--", shlex.join(words)]

    def planned(self, words: FilledWords) -> str:
        """What would be run, for people."""
        return shlex.join(self.by_ssh(words.shown)) if self.entry.ssh else words.text

    def call(self, words: FilledWords, *, given: bytes | None = None) -> Ended:
        """Runs a command, however it ends. Raises FailedError if it cannot be run, or is not over in time."""
        command = self.by_ssh(words.run)
        try:
            # A session of its own: Ctrl-C at the terminal is for this process, which puts things back by such commands.
            ended = subprocess.run(
                command,
                input=given if given is not None else b"",
                capture_output=True,
                timeout=self._timeout_s,
                check=False,
                start_new_session=True,
            )
        except subprocess.TimeoutExpired:
            raise FailedError(f"{self.shown}: `{words.text}` did not end within {self._timeout_s:g} s") from None
        except (OSError, ValueError) as error:
            raise FailedError(f"{self.shown}: `{words.text}` cannot be run: {error}") from None
        said = output_without_secrets(ended.stderr.decode(errors="replace").strip(), words)
        return Ended(ended.returncode, ended.stdout, _end_of(said))

    def require(self, words: FilledWords, *, given: bytes | None = None, prints_file: bool = False) -> bytes:
        """What a command prints that ended with 0; `prints_file`: that is shown nowhere. Raises FailedError with node, command and output."""
        ended = self.call(words, given=given)
        if ended.code != 0:
            raise FailedError(
                f"{self.shown}: `{words.text}` ended with {ended.code}: {self.output_of(ended, words, prints_file)}"
            )
        return ended.printed

    def output_of(self, ended: Ended, words: FilledWords, prints_file: bool = False) -> str:
        """What a command said: its errors, else what it printed."""
        printed = "" if prints_file else output_without_secrets(ended.printed.decode(errors="replace").strip(), words)
        return ended.said or _end_of(printed) or "it printed nothing"

    def accepts(self) -> bool:
        """Whether something answers at its address."""
        try:
            with socket.create_connection((self.entry.host, self.entry.port), timeout=_CONNECTS_WITHIN_S):
                return True
        except OSError:
            return False

    def wait_until_ready(self, status: Sequence[str] | None, within_s: float, after: FilledWords | None) -> None:
        """Waits until its address answers and `status` ends with 0. Raises FailedError that names what it was restarted by and what was said."""
        give_up_s = time.monotonic() + within_s
        while (why := self._why_not_ready(status)) is not None:
            if time.monotonic() > give_up_s:
                restarted = f"did not come back within {within_s:g} s after `{after.text}`" if after else "is not ready"
                raise FailedError(f"{self.shown} {restarted}: {why}")
            time.sleep(ASKS_EVERY_S)

    def _why_not_ready(self, status: Sequence[str] | None) -> str | None:
        is_open = self.accepts()
        if status is None:
            return None if is_open else f"nothing answers at {self.address}"
        words = self.filled(status)
        ended = self.call(words)
        if ended.code == 0 and is_open:
            return None
        answers = f"{self.address} {'answers' if is_open else 'does not answer'}"
        return f"{answers}, `{words.text}` ended with {ended.code}: {self.output_of(ended, words)}"


def _end_of(text: str) -> str:
    """The end of a long text, from the beginning of a line on."""
    end = text[-_MAX_OUTPUT:]
    return end if end == text else f"… {end.partition(chr(10))[2] or end}"
