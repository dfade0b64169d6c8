"""What a load generator is to the controller, wherever it runs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from sensorbench.hosts.clocks import ClockSample
from sensorbench.lab.process_usage import ProcessUsage
from sensorbench.runner.generators.load_part import LoadPart
from sensorbench.runner.generators.messages import LoadState
from sensorbench.runner.generators.segments import SegmentParts


@dataclass(frozen=True)
class ShareWork:
    """What a load generator is to execute: the address with its secrets, the driver's schema, the engine's plan (JSON), and tables of parameters."""

    url: str = field(repr=False)
    driver_schema: str
    plan: str
    tables: Sequence[pa.Table]


@dataclass(frozen=True)
class EndedShare:
    """What a share came to: its last snapshot, the whole (both JSON of the engine), how late it was (an interval log), and its last segment."""

    snapshot: str
    whole: str
    timer_lag: str
    segment: SegmentParts


class LoadGenerator(Protocol):
    """A load generator of a run that several share. Its calls wait for an answer.

    Each raises LostGeneratorError where it is gone or answers no more, and EngineError for what the engine or the database refuses.
    """

    @property
    def number(self) -> int:
        """Its number, from 1."""

    @property
    def host(self) -> str:
        """Where it runs."""

    @property
    def pid(self) -> int:
        """The number of its process there."""

    def sample_clock(self) -> ClockSample | None:
        """How far the clock of its host is ahead of this machine's now; None if it goes by the same clock."""

    def clock_samples(self, since_ns: int) -> list[ClockSample]:
        """The samples from a time on (CLOCK_MONOTONIC, here), and the last one before it."""

    def usage(self) -> ProcessUsage | None:
        """What its process uses; None once it is gone."""

    def prepare(self, work: ShareWork) -> None:
        """Has it connect."""

    def start_at(self, at_ns: int) -> int:
        """Has it begin at a time on the common clock; returns how late it was (ns), 0 where it was ready."""

    def poll(self, wait_s: float) -> tuple[bool, str]:
        """Waits until it is over, but not longer; whether it is, and its snapshot (JSON)."""

    def take(self) -> tuple[str, SegmentParts]:
        """Its snapshot (JSON), and what it has recorded since the last time."""

    def set_rate(self, per_s: float, at_ns: int) -> int:
        """Has it change its rate at a time on the common clock; returns how late it was (ns)."""

    def stop(self, *, cancels: bool) -> None:
        """Has it start no more operations; with `cancels`, end those in flight, too."""

    def end(self) -> EndedShare:
        """Waits until all of it is over, and what it came to."""

    def join(self, url: str, driver_schema: str) -> None:
        """Has it connect for loading: the address with its secrets, and the driver's schema."""

    def put(self, content: bytes) -> None:
        """Hands over bytes of the part that it opens next, where it reads no file of the controller's."""

    def open_part(self, part: LoadPart, batch_rows: int | None) -> None:
        """Has it get ready to load a part, in batches of at most this many rows."""

    def start_load_at(self, at_ns: int) -> int:
        """Has it begin to load at a time on the common clock; returns how late it was (ns)."""

    def poll_load(self, wait_s: float) -> LoadState:
        """Waits until its part is loaded, but not longer; how far it is."""

    def stop_load(self) -> None:
        """Has it load no more."""

    def give_up(self, after_s: float) -> None:
        """Ends it at once: it has not answered for this long. What waits for its answer ends by that."""

    def close(self) -> None:
        """Ends it, whatever it does."""
