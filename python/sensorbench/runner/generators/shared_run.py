"""A run that load generators share, with the handle of a run: started, looked at, steered and ended as if it was in this process."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from sensorbench._engine import Merge, Target
from sensorbench.errors import LostGeneratorError
from sensorbench.hosts.clocks import span_of
from sensorbench.lab.process_usage import ProcessUsage
from sensorbench.results.engine_plan import EnginePlan, SharedPlan
from sensorbench.results.engine_report import EngineRun, ErrorReport, OperationReport, PhaseReport, Snapshot
from sensorbench.results.manifest import OUTCOMES, GeneratorClock, GeneratorTotals, RunTotals
from sensorbench.results.writer import StatusRow
from sensorbench.runner.generators.hosted import ClockedHost
from sensorbench.runner.generators.load_generator import EndedShare, LoadGenerator, ShareWork
from sensorbench.runner.generators.segments import SegmentParts, whole_batch
from sensorbench.runner.generators.snapshots import Figures, merged_phases, merged_snapshot
from sensorbench.runner.generators.started import LEAD_NS, GeneratorThreads, offsets_ns, started_generators
from sensorbench.runner.plan import as_json

if TYPE_CHECKING:
    from sensorbench._engine import Segment

Result = TypeVar("Result")

# The engine's interval of figures, where the plan says nothing.
INTERVAL_NS = 1_000_000_000
# How processes of load generators are called beside the client and the servers.
GENERATOR = "generator"


class SharedRun(EngineRun):
    """A run that load generators share. Its clock is CLOCK_MONOTONIC of this machine since `origin_ns`, for all of them: where a host has another
    clock, the zero of its load generators is shifted by the offset. Once the user interrupts, `hosts` that do not answer are not waited for long.
    """

    def __init__(
        self, generators: Sequence[LoadGenerator], plan: EnginePlan, origin_ns: int, hosts: Sequence[ClockedHost]
    ) -> None:
        self._generators = generators
        self._phases = [phase["name"] for phase in plan["phases"]]
        self._operations = [operation["operation"]["name"] for operation in plan["operations"]]
        self._origin_ns = origin_ns
        self._merge = Merge(self._phases, self._operations, INTERVAL_NS)
        self._threads = GeneratorThreads(generators, hosts)
        self._snapshots: dict[int, Snapshot] = {}
        self._start_lags_ns: dict[int, int] = {}
        self._ended: dict[int, EndedShare] = {}
        self._lost: dict[int, str] = {}
        # What each has handed over, by phase, operation and what is counted.
        self._received: dict[int, Counter[tuple[int, int, str]]] = {generator.number: Counter() for generator in generators}
        # Without rows: what a segment is of when no load generator is left.
        self._empty: SegmentParts | None = None
        self._events: list[tuple[int, str]] = []
        # The offsets of hosts by which the zero of each load generator was shifted, and until when samples were taken.
        self._offsets_ns: dict[int, int] = {}
        self._clocks_to_ns = origin_ns

    def usages(self) -> dict[str, ProcessUsage | None]:
        """What the processes of load generators use, by name, wherever they are."""
        return {
            f"{GENERATOR} {generator.number}": generator.usage()
            for generator in self._generators
            if generator.number not in self._lost
        }

    def take_clock_rows(self) -> list[StatusRow]:
        """How far the clocks of hosts were ahead of this machine's, as sampled since the last time, and how well that is known."""
        since_ns, self._clocks_to_ns = self._clocks_to_ns, time.monotonic_ns()
        of_hosts = {generator.host: generator.clock_samples(since_ns) for generator in self._generators}
        return [
            StatusRow(sample.at_ns - self._origin_ns, f"host.{host}.{name}", value)
            for host, samples in of_hosts.items()
            for sample in samples
            if sample.at_ns >= since_ns
            for name, value in (
                ("clock_offset_ns", sample.offset_ns),
                ("wall_clock_offset_ns", sample.wall_offset_ns),
                ("clock_bound_ns", sample.bound_ns),
            )
        ]

    def prepare(self, work: Callable[[int, int], ShareWork]) -> None:
        """Has all of them connect; `work` of a number, from 0, and of the zero of the run's clock on the clock there.

        Raises KeyboardInterrupt, also if interruptions are held back: connecting may take long, and nothing is recorded yet.
        """
        samples = self._each(lambda generator: generator.sample_clock())
        self._offsets_ns = offsets_ns(samples)
        self._each(
            lambda generator: generator.prepare(work(generator.number - 1, self._origin_ns + self._offsets_ns[generator.number])),
            can_interrupt=True,
        )

    def start(self) -> None:
        """Has all of them begin at the same time."""
        at_ns = self.now_ns() + LEAD_NS
        self._start_lags_ns = self._each(lambda generator: generator.start_at(at_ns))
        for number, late_ns in self._start_lags_ns.items():
            if late_ns:
                self.annotate(f"load generator {number} began {late_ns / 1e6:.3g} ms late")

    def wait(self, timeout_s: float) -> bool:
        """Waits until it is over, but not longer; True when it is over. Raises LostGeneratorError."""
        polled = self._each(lambda generator: generator.poll(timeout_s))
        self._snapshots |= {number: json.loads(snapshot) for number, (_, snapshot) in polled.items()}
        return all(is_over for is_over, _ in polled.values())

    def failure(self) -> str | None:
        """Nothing that a trace would lack: none is replayed."""
        return None

    def now_ns(self) -> int:
        """Time on the run's clock."""
        return time.monotonic_ns() - self._origin_ns

    def snapshot(self) -> str:
        """How far it is (JSON)."""
        if any(generator.number not in {*self._snapshots, *self._lost} for generator in self._generators):
            polled = self._each(lambda generator: generator.poll(0.0))
            self._snapshots |= {number: json.loads(snapshot) for number, (_, snapshot) in polled.items()}
        snapshots = [self._snapshots[number] for number in sorted(self._snapshots)]
        return json.dumps(merged_snapshot(snapshots, self._figures(), self.now_ns()))

    def take(self) -> "Segment":
        """What was recorded since the last time, without intervals that are still open at one of them. Raises LostGeneratorError."""
        taken = self._each(lambda generator: generator.take())
        for number, (snapshot, parts) in taken.items():
            self._snapshots[number] = json.loads(snapshot)
            self._add(number, parts)
        open_from_ns = min(self._snapshots[number]["now_ns"] for number in taken) - INTERVAL_NS
        return self._segment({number: parts for number, (_, parts) in taken.items()}, max(0, open_from_ns))

    def annotate(self, name: str) -> None:
        """Puts down that something happened now."""
        self._events.append((self.now_ns(), name))

    def set_rate(self, per_s: float) -> None:
        """From an agreed moment on, which is near, operations come at this rate."""
        at_ns = self.now_ns() + LEAD_NS
        late_ns = self._each(lambda generator: generator.set_rate(per_s, at_ns))
        self._events.append((at_ns, f"rate set to {per_s:g}/s"))
        for number, by_ns in late_ns.items():
            if by_ns:
                self.annotate(f"load generator {number} changed its rate {by_ns / 1e6:.3g} ms late")

    def stop(self) -> None:
        """Starts no more operations."""
        self._each(lambda generator: generator.stop(cancels=False))

    def cancel(self) -> None:
        """Ends the operations in flight, too; what is lost does not matter then."""
        self._each(lambda generator: generator.stop(cancels=True), raises=False)

    def end(self) -> "tuple[Segment, str]":
        """Waits until it is over; the last segment, and the run as a whole (JSON), of those that are left."""
        self._each(lambda generator: generator.sample_clock(), raises=False)
        self._ended |= self._each(lambda generator: generator.end(), raises=False, may_take_long=True)
        for number, share in self._ended.items():
            self._snapshots[number] = json.loads(share.snapshot)
            self._add(number, share.segment)
            self._merge.add_timer_lag(share.timer_lag)
        segment = self._segment({number: share.segment for number, share in self._ended.items()}, None)
        return segment, self._whole().model_dump_json()

    def close(self) -> None:
        """Ends all processes."""
        self._threads.close()

    def _each(
        self,
        call: Callable[[LoadGenerator], Result],
        *,
        raises: bool = True,
        can_interrupt: bool = False,
        may_take_long: bool = False,
    ) -> dict[int, Result]:
        """What each load generator that is left answers, by number. When one is lost, all end. Raises LostGeneratorError, and KeyboardInterrupt
        where an interruption need not wait for the answers. Answers that may take long are waited for after an interruption, too.
        """
        left = (generator for generator in self._generators if generator.number not in self._lost)
        calls = self._threads.call(call, left)
        self._threads.settle(calls, may_take_long=may_take_long, can_interrupt=can_interrupt)
        answers, lost = {}, None
        for number, answer in calls.items():
            try:
                answers[number] = answer.result()
            except LostGeneratorError as error:
                self._lost[number] = str(error)
                lost = lost or error
        if lost is not None and raises:
            self.annotate(str(lost))
            raise lost
        return answers

    def _add(self, number: int, parts: SegmentParts) -> None:
        self._merge.add(parts.intervals, parts.histograms)
        operations, answers, intervals = (batch.slice(0, 0) for batch in (parts.operations, parts.answers, parts.intervals))
        self._empty = SegmentParts(operations, answers, intervals, "")
        received = self._received[number]
        for row in parts.intervals.to_pylist():
            for counted in (*OUTCOMES, "late", "rows"):
                received[row["phase"], row["operation"], counted] += row[counted]

    def _segment(self, of_each: Mapping[int, SegmentParts], before_ns: int | None) -> "Segment":
        """One segment of all: rows of operations with the number of their load generator. Raises LostGeneratorError if none ever handed anything over."""
        if self._empty is None:
            raise LostGeneratorError("; ".join(self._lost.values()))
        of_each = of_each or {0: self._empty}
        intervals, histograms = self._merge.take(before_ns)
        events, self._events = self._events, []
        return {
            "operations": _joined([_of_generator(number, parts.operations) for number, parts in of_each.items()]),
            "answers": _joined([parts.answers for parts in of_each.values()]),
            "intervals": intervals,
            "histograms": histograms,
            "events": events,
        }

    def _figures(self) -> Figures:
        figures: Figures = json.loads(self._merge.figures())
        return figures

    def _whole(self) -> RunTotals:
        """The run as a whole. Of a lost load generator only what it has handed over is known to have ended, and counts as started."""
        figures = self._figures()
        wholes = {number: RunTotals.model_validate_json(share.whole) for number, share in self._ended.items()}
        reports: list[list[PhaseReport]] = []
        for generator in self._generators:
            if share := self._ended.get(generator.number):
                reports.append(json.loads(share.whole)["phases"])
            elif generator.number in self._snapshots:
                reports.append(self._known_of_lost(generator.number))
        return RunTotals.model_validate(
            {
                "phases": merged_phases(reports, figures) if reports else [],
                "errors": _joined_errors([error for whole in wholes.values() for error in whole.errors]),
                "timer_lag_ns": json.loads(self._merge.timer_lag()),
                "client_cpu_ns": sum(whole.client_cpu_ns for whole in wholes.values()),
                "process_cpu_ns": sum(whole.process_cpu_ns for whole in wholes.values()),
                "clock_drift": max((whole.clock_drift for whole in wholes.values()), key=abs, default=0.0),
                "duration_ns": max((whole.duration_ns for whole in wholes.values()), default=self.now_ns()),
                "generators": [self._totals(generator, wholes.get(generator.number)) for generator in self._generators],
            }
        )

    def _known_of_lost(self, number: int) -> list[PhaseReport]:
        """The phases of a lost load generator, as far as it has handed over what became of its operations."""
        received = self._received[number]
        known: list[PhaseReport] = []
        for phase, report in enumerate(self._snapshots[number]["phases"]):
            operations: dict[str, OperationReport] = {
                name: {
                    **report["operations"][name],
                    "counts": {outcome: received[phase, operation, outcome] for outcome in OUTCOMES},
                    "late": received[phase, operation, "late"],
                    "rows": received[phase, operation, "rows"],
                }
                for operation, name in enumerate(self._operations)
            }
            ended = sum(sum(operation["counts"].values()) for operation in operations.values())
            known.append({**report, "started": ended, "operations": operations})
        return known

    def _totals(self, generator: LoadGenerator, whole: RunTotals | None) -> GeneratorTotals:
        number = generator.number
        phases = self._snapshots[number]["phases"] if number in self._snapshots else []
        if whole is not None:
            started, dropped = (sum(getattr(phase, key) for phase in whole.phases) for key in ("started", "dropped"))
        else:
            started, dropped = sum(phase["started"] for phase in phases), sum(phase["dropped"] for phase in phases)
        ended = sum(self._received[number][key] for key in self._received[number] if key[2] in OUTCOMES)
        return GeneratorTotals(
            number=number,
            host=generator.host,
            pid=generator.pid,
            started=started,
            dropped=dropped,
            unknown=max(0, started - ended),
            lost=self._lost.get(number),
            start_lag_ns=self._start_lags_ns.get(number, 0),
            timer_lag_ns=whole.timer_lag_ns if whole else None,
            client_cpu_ns=whole.client_cpu_ns if whole else 0,
            duration_ns=whole.duration_ns if whole else self.now_ns(),
            clock=self._clock_of(generator),
        )

    def _clock_of(self, generator: LoadGenerator) -> GeneratorClock | None:
        """How far its host's clock was ahead; None if it has the clock of this machine."""
        samples = generator.clock_samples(self._origin_ns)
        return (
            GeneratorClock(**span_of(samples, self._offsets_ns.get(generator.number, samples[0].offset_ns))._asdict())
            if samples
            else None
        )


def _of_generator(number: int, operations: pa.RecordBatch) -> pa.RecordBatch:
    return operations.append_column("generator", pa.array([number] * operations.num_rows, pa.uint16()))


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return whole_batch(pa.Table.from_batches(batches))


def _joined_errors(errors: Sequence[ErrorReport]) -> list[ErrorReport]:
    """Operations of one kind that failed alike in a phase, whoever sent them."""
    joined: dict[tuple[str, str, str], ErrorReport] = {}
    for error in errors:
        key = (error["phase"], error["operation"], error["kind"])
        if key in joined:
            joined[key]["count"] += error["count"]
        else:
            joined[key] = {**error}
    return list(joined.values())


@contextmanager
def shared_run(
    target: Target, plan: EnginePlan, tables: Sequence[pa.Table], count: int, hosts: Sequence[ClockedHost] = ()
) -> Iterator[SharedRun]:
    """A run that this many load generators share, from its start on; they end with the context.

    Args:
        target: where operations go; load generators connect by themselves.
        plan: the run of all of them.
        tables: of parameters.
        count: how many there are.
        hosts: where they run, one after the other as often as needed; processes of this machine where there is none.

    Raises:
        EngineError: for what one of them, or the database, refuses.
        LostGeneratorError: if one ends before the run begins.
        KeyboardInterrupt: while they connect, also where interruptions are held back.

    """
    url, driver_schema = target.admission()
    origin_ns = time.monotonic_ns()

    def work(number: int, clock_origin_ns: int) -> ShareWork:
        shared: SharedPlan = {**plan, "share": {"number": number, "of": count, "clock_origin_ns": clock_origin_ns}}
        return ShareWork(url, driver_schema, as_json(shared), tables)

    run = SharedRun(started_generators(count, hosts), plan, origin_ns, hosts)
    try:
        run.prepare(work)
        run.start()
        yield run
    finally:
        run.close()
