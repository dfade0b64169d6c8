"""Steps: rates that are held for a time, one after the other, each reached by a ramp."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from sensorbench.errors import UsageError
from sensorbench.results.engine_plan import HeldStep, PlannedPhase, PlannedSegment
from sensorbench.runner import WARMUP

EXPECTED = (
    "expected FROM:TO:BY, for example 5000:30000:5000, or rates separated by commas; all in operations per second, above zero"
)
MAX_STEPS = 1000


def parse_rates(text: str) -> list[float]:
    """The rates, in operations per second, in the order in which they are held. Raises UsageError."""
    parts = text.split(":")
    if len(parts) not in (1, 3):
        raise _wrong(text)
    if len(parts) == 1:
        return [_rate(part, text) for part in text.split(",")]
    first, last, step = (_rate(part, text) for part in parts)
    count = int(abs(last - first) / step + 1e-9) + 1
    if count > MAX_STEPS:
        raise UsageError(f"--rates {text}: {count:,} steps; expected at most {MAX_STEPS:,}")
    return [first + number * step * (1.0 if last >= first else -1.0) for number in range(count)]


def _rate(text: str, whole: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        raise _wrong(whole) from None
    if not 0.0 < rate < float("inf"):
        raise _wrong(whole)
    return rate


def _wrong(text: str) -> UsageError:
    return UsageError(f"--rates {text}: {EXPECTED}")


Arrival = Literal["constant", "poisson"]


@dataclass(frozen=True)
class Step:
    """A rate in operations per second, for how long it is held, and how long the rate climbs (or falls) to it before; both in s."""

    name: str
    rate_per_s: float
    held_s: float
    ramp_s: float = 0.0

    def described(self) -> HeldStep:
        """What the manifest of its run says of it."""
        return {"name": self.name, "rate_per_s": self.rate_per_s, "held_s": self.held_s, "ramp_s": self.ramp_s}

    @property
    def length_s(self) -> float:
        """How long it takes in all."""
        return self.ramp_s + self.held_s


def steps_of(rates: Sequence[float], held_s: float, ramp_s: float) -> list[Step]:
    """A step for each rate."""
    return [Step(f"step_{number}", rate, held_s, ramp_s) for number, rate in enumerate(rates, start=1)]


def phases_of(steps: Sequence[Step], arrival: Arrival, warmup_s: float = 0.0) -> list[PlannedPhase]:
    """The phases of a run for the engine. What comes on a ramp, or while the first rate warms up what is cold (s), is in phases of their
    own, which no figure is of.
    """
    phases: list[PlannedPhase] = []
    if warmup_s:
        phases.append(_phase(WARMUP, warmup_s, {"from_per_s": steps[0].rate_per_s}, arrival))
    for before, step in pairwise([Step("", steps[0].rate_per_s if warmup_s else 0.0, 0.0), *steps]):
        if step.ramp_s and step.rate_per_s != before.rate_per_s:
            climb: PlannedSegment = {"from_per_s": before.rate_per_s, "to_per_s": step.rate_per_s, "length_s": step.ramp_s}
            phases.append(_phase(f"ramp_to_{step.name}", step.ramp_s, climb, arrival))
        phases.append(_phase(step.name, step.held_s, {"from_per_s": step.rate_per_s}, arrival))
    return phases


def _phase(name: str, duration_s: float, segment: PlannedSegment, arrival: Arrival) -> PlannedPhase:
    return {"name": name, "duration_s": duration_s, "pace": {"arrival": arrival, "segments": [segment]}}
