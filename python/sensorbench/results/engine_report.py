"""What the engine reports of a run, as its JSON has it: during the run, and at its end. Times are in ns on the run's clock."""

import json
from typing import TYPE_CHECKING, Annotated, Protocol, TypedDict

from sensorbench.results.as_written import AsWritten

if TYPE_CHECKING:
    from sensorbench._engine import Segment


class EngineRun(Protocol):
    """A run in progress: of the engine in this process, or of load generators that share it."""

    def wait(self, timeout_s: float) -> bool:
        """Waits until it is over, but not longer; True when it is over."""

    def failure(self) -> str | None:
        """What kept a replay from reading its trace to the end."""

    def now_ns(self) -> int:
        """Time on the run's clock, which all its results are on."""

    def snapshot(self) -> str:
        """How far it is: now_ns, current_phase, phases with figures (JSON)."""

    def take(self) -> "Segment":
        """What was recorded since the last time, without intervals that are still open."""

    def annotate(self, name: str) -> None:
        """Puts down that something happened now."""

    def set_rate(self, per_s: float) -> None:
        """From now on operations come at this rate; raises UsageError in a closed loop."""

    def stop(self) -> None:
        """Starts no more operations."""

    def cancel(self) -> None:
        """Ends the operations in flight, too."""

    def end(self) -> "tuple[Segment, str]":
        """Waits until it is over; the last segment, and the run as a whole (JSON)."""


class LatencyReport(TypedDict):
    """Mean, quantiles and maximum of latencies, in ns, and of how many."""

    count: int
    mean: float
    p50: int
    p90: int
    p95: int
    p99: int
    p999: int
    max: int


class OperationReport(TypedDict):
    """What became of one kind of operation in a phase: how many ended how (`OUTCOMES`); latencies are null if nothing ended that has one."""

    counts: dict[str, int]
    late: int
    rows: int
    response_ns: LatencyReport | None
    service_ns: LatencyReport | None
    schedule_lag_ns: LatencyReport | None
    failed_ns: LatencyReport | None


class PhaseReport(TypedDict):
    """How far a phase is; it has no start before it begins, and no end before it is over."""

    name: str
    start_ns: int | None
    end_ns: int | None
    started: int
    dropped: int
    operations: dict[str, OperationReport]


class Snapshot(TypedDict):
    """How far a run is."""

    now_ns: int
    current_phase: int
    phases: list[PhaseReport]


class ErrorReport(TypedDict):
    """Operations of one kind that failed alike in a phase."""

    phase: str
    operation: str
    kind: str
    count: int
    first_message: str


# In manifests, which earlier versions wrote with fewer keys.
OperationTotals = Annotated[OperationReport, AsWritten]
LatencyTotals = Annotated[LatencyReport, AsWritten]
ErrorTotals = Annotated[ErrorReport, AsWritten]


def elapsed_s(snapshot: Snapshot) -> float:
    """For how long its present phase has gone on by now (s)."""
    start_ns = snapshot["phases"][snapshot["current_phase"]]["start_ns"]
    return 0.0 if start_ns is None else max(0.0, (snapshot["now_ns"] - start_ns) / 1e9)


def in_flight(snapshot: Snapshot) -> int:
    """How many operations have started and not ended."""
    ended = sum(sum(report["counts"].values()) for phase in snapshot["phases"] for report in phase["operations"].values())
    return max(0, sum(phase["started"] for phase in snapshot["phases"]) - ended)


def snapshot_of(run: EngineRun) -> Snapshot:
    """How far a run is by now."""
    snapshot: Snapshot = json.loads(run.snapshot())
    return snapshot
