"""Load generators on hosts: each is a process there, kept by its host and called through it."""

from collections.abc import Callable
from contextlib import suppress
from typing import Protocol, TypeVar

from sensorbench.errors import EngineError, LostGeneratorError, LostHostError
from sensorbench.hosts.clocks import ClockSample
from sensorbench.hosts.host import Host
from sensorbench.lab.process_usage import ProcessUsage
from sensorbench.runner.generators.load_generator import EndedShare, ShareWork
from sensorbench.runner.generators.load_part import LoadPart
from sensorbench.runner.generators.local import LocalGenerator
from sensorbench.runner.generators.messages import LoadState
from sensorbench.runner.generators.segments import SegmentParts

Result = TypeVar("Result")


class ClockedHost(Host, Protocol):
    """A host whose clock is sampled."""

    def sample_clock(self) -> ClockSample:
        """Samples its clock now. Raises LostHostError."""

    def samples_since(self, at_ns: int) -> list[ClockSample]:
        """Samples of its clock from a time on (CLOCK_MONOTONIC, here), with the last one before it."""

    def hurry(self) -> None:
        """From now on it is lost after a few seconds in which it does not answer: the user interrupts."""


class HostedGenerator:
    """A load generator of a host. It ends with the host's process, and when the host hears nothing from this process any more."""

    def __init__(self, number: int, host: ClockedHost) -> None:
        self._number = number
        self._host = host
        self._there = self._reached(lambda: host.keep(LocalGenerator, number))
        self._pid = self._reached(lambda: self._there.pid)

    @property
    def number(self) -> int:
        """Its number, from 1."""
        return self._number

    @property
    def host(self) -> str:
        """Where it runs: the name of the host."""
        return self._host.name

    @property
    def pid(self) -> int:
        """The number of its process there."""
        return self._pid

    def sample_clock(self) -> ClockSample | None:
        """How far the clock of its host is ahead of this machine's now."""
        return self._reached(self._host.sample_clock)

    def clock_samples(self, since_ns: int) -> list[ClockSample]:
        """The samples from a time on (CLOCK_MONOTONIC, here), and the last one before it."""
        return self._host.samples_since(since_ns)

    def usage(self) -> ProcessUsage | None:
        """What its process uses; None once it is gone, or its host."""
        try:
            return self._reached(lambda: self._there.usage())
        except LostGeneratorError:
            return None

    def prepare(self, work: ShareWork) -> None:
        """Has it connect."""
        self._reached(lambda: self._there.prepare(work))

    def start_at(self, at_ns: int) -> int:
        """Has it begin at a time on the common clock; returns how late it was (ns), 0 where it was ready."""
        return self._reached(lambda: self._there.start_at(at_ns))

    def poll(self, wait_s: float) -> tuple[bool, str]:
        """Waits until it is over, but not longer; whether it is, and its snapshot (JSON)."""
        return self._reached(lambda: self._there.poll(wait_s))

    def take(self) -> tuple[str, SegmentParts]:
        """Its snapshot (JSON), and what it has recorded since the last time."""
        return self._reached(lambda: self._there.take())

    def set_rate(self, per_s: float, at_ns: int) -> int:
        """Has it change its rate at a time on the common clock; returns how late it was (ns)."""
        return self._reached(lambda: self._there.set_rate(per_s, at_ns))

    def stop(self, *, cancels: bool) -> None:
        """Has it start no more operations; with `cancels`, end those in flight, too."""
        self._reached(lambda: self._there.stop(cancels=cancels))

    def end(self) -> EndedShare:
        """Waits until all of it is over, and what it came to."""
        return self._reached(lambda: self._there.end())

    def join(self, url: str, driver_schema: str) -> None:
        """Has it connect for loading."""
        self._reached(lambda: self._there.join(url, driver_schema))

    def put(self, content: bytes) -> None:
        """Hands over bytes of the part that it opens next."""
        self._reached(lambda: self._there.put(content))

    def open_part(self, part: LoadPart, batch_rows: int | None) -> None:
        """Has it get ready to load a part."""
        self._reached(lambda: self._there.open_part(part, batch_rows))

    def start_load_at(self, at_ns: int) -> int:
        """Has it begin to load at a time on the common clock; returns how late it was (ns)."""
        return self._reached(lambda: self._there.start_load_at(at_ns))

    def poll_load(self, wait_s: float) -> LoadState:
        """Waits until its part is loaded, but not longer; how far it is."""
        return self._reached(lambda: self._there.poll_load(wait_s))

    def stop_load(self) -> None:
        """Has it load no more."""
        self._reached(lambda: self._there.stop_load())

    def give_up(self, after_s: float) -> None:
        """Ends it at once: it has not answered for this long."""
        # With its host it has ended, too.
        with suppress(LostGeneratorError):
            self._reached(lambda: self._there.give_up(after_s))

    def close(self) -> None:
        """Ends it, whatever it does."""
        # With its host it has ended, too.
        with suppress(LostGeneratorError):
            self._reached(lambda: self._there.close())

    def _reached(self, call: Callable[[], Result]) -> Result:
        """What a call comes to; errors name the host."""
        try:
            return call()
        except LostHostError as error:
            raise LostGeneratorError(f"load generator {self._number} is gone: {error}") from None
        except LostGeneratorError as error:
            raise LostGeneratorError(f"host {self.host}: {error}") from None
        except EngineError as error:
            *where, text = error.args or ("",)
            raise type(error)(*where, f"host {self.host}: {text}") from None
