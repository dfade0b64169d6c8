"""Clocks of hosts beside the controller's: how far each is ahead, and how well that is known."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

# How often the offset of a clock is sampled while a host is there, and by how many round trips.
SAMPLED_EVERY_S = 10.0
ROUND_TRIPS = 16
_BOOT, _NAMESPACE = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/time")


class ClockReading(NamedTuple):
    """Both clocks of a machine at one moment, in ns: CLOCK_MONOTONIC, and the time of day."""

    monotonic_ns: int
    wall_ns: int


def read_clocks() -> ClockReading:
    """The clocks of this machine now."""
    return ClockReading(time.monotonic_ns(), time.time_ns())


def clock_identity() -> str:
    """Which CLOCK_MONOTONIC this process has: that of a boot of a kernel, in a time namespace. Processes of one identity read the same clock."""
    try:
        return f"{_BOOT.read_text(encoding='ascii').strip()} {_NAMESPACE.stat().st_ino}"
    except OSError:
        # A kernel that does not report it: no other process is known to have the same.
        return uuid4().hex


def same_clock() -> "ClockSample":
    """The sample of a host that reads the clock of the controller: nothing is to be corrected, or unknown."""
    return ClockSample(at_ns=time.monotonic_ns(), offset_ns=0, wall_offset_ns=0, bound_ns=0)


@dataclass(frozen=True)
class ClockSample:
    """How far a host's clocks were ahead of the controller's, in ns.

    `at_ns` is when that was, on CLOCK_MONOTONIC of the controller. Neither offset is wrong by more than `bound_ns`, half of the round trip:
    the host read its clocks at some moment within it.
    """

    at_ns: int
    offset_ns: int
    wall_offset_ns: int
    bound_ns: int


def sampled(ask: Callable[[], ClockReading], round_trips: int = ROUND_TRIPS) -> ClockSample:
    """The offset by the shortest of several round trips to `ask`."""
    return min((_by_one_round_trip(ask) for _ in range(round_trips)), key=lambda sample: sample.bound_ns)


def _by_one_round_trip(ask: Callable[[], ClockReading]) -> ClockSample:
    before = read_clocks()
    there = ask()
    length_ns = time.monotonic_ns() - before.monotonic_ns
    half_ns = length_ns // 2
    return ClockSample(
        at_ns=before.monotonic_ns + half_ns,
        offset_ns=there.monotonic_ns - before.monotonic_ns - half_ns,
        wall_offset_ns=there.wall_ns - before.wall_ns - half_ns,
        bound_ns=length_ns - half_ns,
    )


class OffsetSpan(NamedTuple):
    """Of samples of a clock over a while, in ns: the offset by which times were corrected, that of the time of day at first, and how far the offset was
    from the corrected one at last. No corrected time is wrong by more than `bound_ns`, as far as was sampled.
    """

    offset_ns: int
    wall_offset_ns: int
    drift_ns: int
    bound_ns: int
    samples: int


def span_of(samples: list[ClockSample], offset_ns: int) -> OffsetSpan:
    """What samples, of which there is at least one, say of times that were corrected by an offset."""
    bound_ns = max(abs(sample.offset_ns - offset_ns) + sample.bound_ns for sample in samples)
    return OffsetSpan(offset_ns, samples[0].wall_offset_ns, samples[-1].offset_ns - offset_ns, bound_ns, len(samples))
