"""The course of a transition: by the sets that are done so far it is decided when the cluster is changed, and when the run is over."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from sensorbench.analysis.elasticity import Sets, stability
from sensorbench.benchmarks.elasticity.changes import Annotate
from sensorbench.errors import SensorbenchError, message_of
from sensorbench.interrupts import SLICE_S
from sensorbench.results.engine_report import EngineRun, Snapshot

# Events on the run's time axis, besides those of the change itself.
STABLE, NEVER_STABLE, FAILED = "seen to be stable", "not stable in time", "change failed"


@dataclass(frozen=True)
class Lengths:
    """How long the parts of a transition are: how long (s) measurements begin that do not count, how many come before the change, how many
    were stable when it ends; and how long (s) stability is waited for when the change is done.
    """

    warmup_s: float
    before: int
    after: int
    max_s: float


@dataclass
class Scenario:
    """Steers a run: to be called with it and its snapshots. `change` does what is to be done to the cluster, in a thread of its own."""

    lengths: Lengths
    # How many operations, of all kinds, make a measurement, and how many sets that is.
    operations: float
    executions: int
    change: Callable[[Annotate], None]
    report: Callable[[str], None]
    problem: str | None = None
    _ends_s: list[float] = field(default_factory=list)
    _seen: tuple[float, float] = (0.0, 0.0)
    _thread: threading.Thread | None = None
    _begun_at_s: float | None = None
    _done_at_s: float | None = None
    _is_over: bool = False

    def on_snapshot(self, run: EngineRun, snapshot: Snapshot) -> None:
        """Does what is next."""
        self._note(snapshot)
        if self._thread is None:
            self._begin_when_ready(run)
        elif self._done_at_s is None:
            self.report(f"changing, measurements so far: {len(self._ends_s)}")
            self._note_end(run)
        elif not self._is_over:
            self.report(f"changed, measurements so far: {len(self._ends_s)}")
            self._wait_for_stability(run)

    def wait(self) -> None:
        """Waits until the change is over, also when the run has ended before it."""
        while self._thread is not None and self._thread.is_alive():
            self._thread.join(SLICE_S)

    def _note(self, snapshot: Snapshot) -> None:
        """Puts down when measurements ended: between two snapshots operations came evenly."""
        now_s, started = snapshot["now_ns"] / 1e9, float(sum(phase["started"] for phase in snapshot["phases"]))
        before_s, before = self._seen
        while started >= (len(self._ends_s) + 1) * self.operations:
            share = ((len(self._ends_s) + 1) * self.operations - before) / (started - before)
            self._ends_s.append(before_s + share * (now_s - before_s))
        self._seen = (now_s, started)

    def _begin_when_ready(self, run: EngineRun) -> None:
        counted = len(self._sets())
        self.report(
            f"before the change, measurement {counted} of {self.lengths.before}"
            if self._seen[0] >= self.lengths.warmup_s
            else "warm-up"
        )
        if counted >= self.lengths.before:
            self._begun_at_s = run.now_ns() / 1e9
            self._thread = threading.Thread(target=self._carry_out, args=[run], name="change", daemon=True)
            self._thread.start()

    def _carry_out(self, run: EngineRun) -> None:
        try:
            self.change(run.annotate)
        except SensorbenchError as error:
            self.problem = message_of(error)
            run.annotate(f"{FAILED}: {self.problem}")

    def _note_end(self, run: EngineRun) -> None:
        if self._thread is not None and not self._thread.is_alive():
            self._done_at_s = run.now_ns() / 1e9

    def _wait_for_stability(self, run: EngineRun) -> None:
        """Ends the run when all has been stable for long enough: what is stable now may turn out to have been a step on the way."""
        if self._begun_at_s is None or self._done_at_s is None:
            return
        sets = self._sets()
        at_s = stability(sets, self._begun_at_s, self._done_at_s).by_band_at_s
        if self.problem is None and at_s is not None and len(sets.between(at_s, np.inf)) >= self.lengths.after:
            self._end(run, STABLE)
        elif self.problem is not None or run.now_ns() / 1e9 > self._done_at_s + self.lengths.max_s:
            self._end(run, NEVER_STABLE)

    def _end(self, run: EngineRun, why: str) -> None:
        self._is_over = True
        run.annotate(why)
        run.stop()

    def _sets(self) -> Sets:
        """The measurements so far, without those that do not count."""
        ends_s = np.array([0.0, *self._ends_s])
        durations_s = np.diff(ends_s) / self.executions
        return Sets(ends_s[:-1], durations_s, np.zeros_like(durations_s)).between(self.lengths.warmup_s, np.inf)
