"""Load generators that are processes of this machine."""

import sys
from collections.abc import Sequence
from typing import TypeVar, cast

import psutil

from sensorbench import errors
from sensorbench.errors import EngineError, LostGeneratorError
from sensorbench.hosts.clocks import ClockSample
from sensorbench.hosts.piped import PipedProcess
from sensorbench.lab.process_usage import ProcessUsage, usage_of
from sensorbench.runner.generators.load_generator import EndedShare, ShareWork
from sensorbench.runner.generators.load_part import LoadPart
from sensorbench.runner.generators.messages import (
    End,
    Ended,
    Join,
    LoadState,
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
from sensorbench.runner.generators.segments import SegmentParts, from_parts, table_to_bytes

LOCAL = "local"
# A load generator that does not answer for this long, besides what it was requested to wait, is lost.
HEARTBEAT_S = 30.0
# Connecting, and ending operations that are in flight, may take longer.
PATIENCE_S = 300.0
# This long it has to end by itself.
CLOSE_S = 2.0

Answer = TypeVar("Answer", Ready, Taken, Progress, Ended, LoadState)


class LocalGenerator:
    """A process of this machine, which hears and answers on pipes: what it needs to log in is in no command line."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._given_up: str | None = None
        self._process = PipedProcess(
            [sys.executable, "-P", "-m", "sensorbench.runner.generators.worker"],
            receive,
            thread=f"answers of load generator {number}",
        )

    @property
    def number(self) -> int:
        """Its number, from 1."""
        return self._number

    @property
    def host(self) -> str:
        """Where it runs: here."""
        return LOCAL

    @property
    def pid(self) -> int:
        """The number of its process."""
        return self._process.pid

    def sample_clock(self) -> ClockSample | None:
        """None: it goes by the clock of who started it."""
        return None

    def clock_samples(self, since_ns: int) -> list[ClockSample]:
        """No samples: it goes by the clock of who started it."""
        del since_ns
        return []

    def usage(self) -> ProcessUsage | None:
        """What its process uses; None once it is gone."""
        try:
            return usage_of(psutil.Process(self.pid), with_children=True)
        except psutil.NoSuchProcess:
            return None

    def prepare(self, work: ShareWork) -> None:
        """Has it connect."""
        request = Prepare(url=work.url, driver_schema=work.driver_schema, plan=work.plan)
        self._ask(request, Ready, PATIENCE_S, [table_to_bytes(table) for table in work.tables])

    def start_at(self, at_ns: int) -> int:
        """Has it begin at a time on the common clock; returns how late it was (ns), 0 where it was ready."""
        return self._ask(Start(at_ns=at_ns), Taken)[0].late_ns

    def poll(self, wait_s: float) -> tuple[bool, str]:
        """Waits until it is over, but not longer; whether it is, and its snapshot (JSON)."""
        progress, _ = self._ask(Poll(wait_s=wait_s), Progress, HEARTBEAT_S + wait_s)
        return progress.is_over, progress.snapshot

    def take(self) -> tuple[str, SegmentParts]:
        """Its snapshot (JSON), and what it has recorded since the last time."""
        progress, parts = self._ask(Take(), Progress)
        return progress.snapshot, from_parts(parts)

    def set_rate(self, per_s: float, at_ns: int) -> int:
        """Has it change its rate at a time on the common clock; returns how late it was (ns)."""
        return self._ask(SetRate(per_s=per_s, at_ns=at_ns), Taken)[0].late_ns

    def stop(self, *, cancels: bool) -> None:
        """Has it start no more operations; with `cancels`, end those in flight, too."""
        self._ask(Stop(cancels=cancels), Taken)

    def end(self) -> EndedShare:
        """Waits until all of it is over, and what it came to."""
        ended, parts = self._ask(End(), Ended, PATIENCE_S)
        return EndedShare(ended.snapshot, ended.whole, ended.timer_lag, from_parts(parts))

    def join(self, url: str, driver_schema: str) -> None:
        """Has it connect for loading."""
        self._ask(Join(url=url, driver_schema=driver_schema), Ready, PATIENCE_S)

    def put(self, content: bytes) -> None:
        """Hands over bytes of the part that it opens next."""
        self._ask(Put(), Taken, PATIENCE_S, [content])

    def open_part(self, part: LoadPart, batch_rows: int | None) -> None:
        """Has it get ready to load a part."""
        self._ask(OpenPart(part=part, batch_rows=batch_rows), Ready)

    def start_load_at(self, at_ns: int) -> int:
        """Has it begin to load at a time on the common clock; returns how late it was (ns)."""
        return self._ask(StartLoad(at_ns=at_ns), Taken)[0].late_ns

    def poll_load(self, wait_s: float) -> LoadState:
        """Waits until its part is loaded, but not longer; how far it is."""
        return self._ask(PollLoad(wait_s=wait_s), LoadState, HEARTBEAT_S + wait_s)[0]

    def stop_load(self) -> None:
        """Has it load no more."""
        self._ask(StopLoad(), Taken)

    def give_up(self, after_s: float) -> None:
        """Ends the process at once: it has not answered for this long."""
        self._given_up = f"it did not answer for {after_s:g} s"
        self._process.kill()

    def close(self) -> None:
        """Ends the process, which ends by itself when its standard input is closed, unless it hangs."""
        self._process.close(CLOSE_S)

    def _ask(
        self, request: Message, expected: type[Answer], within_s: float = HEARTBEAT_S, parts: Sequence[bytes] = ()
    ) -> tuple[Answer, list[bytes]]:
        """The answer to a request, and its parts."""
        try:
            send(self._process.stdin, request, parts)
            received = self._process.next(within_s)
        except TimeoutError as error:
            self._process.kill()
            raise LostGeneratorError(f"{self._name}: {error}") from None
        except OSError:
            received = None
        if received is None:
            raise LostGeneratorError(f"{self._name}: {self._given_up or self._process.how_it_ended()}")
        answer, content = received
        if isinstance(answer, Refused):
            raise _refusal(answer, self._name)
        if not isinstance(answer, expected):
            raise AssertionError(f"{self._name} answered {answer.kind} to {request.kind}")
        return answer, content

    @property
    def _name(self) -> str:
        return f"load generator {self._number} (process {self.pid})"


def _refusal(refused: Refused, name: str) -> EngineError:
    """The error of the engine that a load generator met, in the engine's own class."""
    found = getattr(errors, "EngineUsageError" if refused.error == "UsageError" else refused.error, EngineError)
    kind = cast("type[EngineError]", found)
    *where, text = refused.texts or ("",)
    return kind(*where, f"{name}: {text}")
