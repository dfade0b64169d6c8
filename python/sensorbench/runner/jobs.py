"""Jobs that no load generator sends, on the same live page: applications of Spark, or statements that take minutes."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass

import psutil

from sensorbench import lab
from sensorbench.errors import FailedError, InterruptedRunError, UsageError
from sensorbench.runner.live import CpuPoint, EventPoint, IntervalPoint, LiveFeed, RunBegin, RunEnd, RunProgress, current_feed
from sensorbench.runner.monitor import CLIENT, EVERY_S, this_process

# The processes whose CPU time is shown, by name, as they are now.
Processes = Callable[[], Mapping[str, lab.WatchedProcess]]


@dataclass
class JobOutcome:
    """Whether a job succeeded; who carries it out says so."""

    is_ok: bool = False


class LiveJobs:
    """Publishes jobs as the operations of one run, each when it is over. Where nobody follows them, it does nothing."""

    def __init__(self, feed: LiveFeed | None, run: str, title: str) -> None:
        self._feed = feed
        self._run = run
        self._start_s = time.monotonic()
        if feed is not None:
            feed.publish(RunBegin(run=run, variant=title, repetition=1, threads=1, is_embedded=False))

    def happened(self, name: str) -> None:
        """Publishes that something happened."""
        self._progress(events=[EventPoint(time_s=self._now_s(), name=name)])

    @contextmanager
    def job(self, operation: str, phase: str) -> Iterator[JobOutcome]:
        """Publishes what is carried out in this context.

        Args:
            operation: what people call the job.
            phase: what it has in common with others that come one after the other.

        """
        begun_s, outcome = self._now_s(), JobOutcome()
        self._progress(events=[EventPoint(time_s=begun_s, name=f"{operation} begins")], in_flight=1)
        try:
            yield outcome
        finally:
            took_s = self._now_s() - begun_s
            point = IntervalPoint(
                time_s=begun_s,
                length_s=took_s,
                phase=phase,
                operation=operation,
                ok=int(outcome.is_ok),
                failed=int(not outcome.is_ok),
                late=0,
                p50_s=took_s,
                p95_s=took_s,
                p99_s=took_s,
            )
            self._progress(intervals=[point], in_flight=0)

    def add_cpu(self, points: list[CpuPoint]) -> None:
        """Publishes what processes used."""
        self._progress(cpu=points, in_flight=None)

    def end(self, status: str) -> None:
        """Publishes that no job follows."""
        if self._feed is not None:
            self._feed.publish(RunEnd(run=self._run, status=status))

    def _progress(
        self,
        intervals: list[IntervalPoint] | None = None,
        cpu: list[CpuPoint] | None = None,
        events: list[EventPoint] | None = None,
        in_flight: int | None = None,
    ) -> None:
        if self._feed is None:
            return
        message = RunProgress(
            run=self._run, intervals=intervals or [], cpu=cpu or [], events=events or [], dropped=None, in_flight=in_flight
        )
        self._feed.publish(message)

    def _now_s(self) -> float:
        return time.monotonic() - self._start_s


@contextmanager
def live_jobs(run: str, title: str, processes: Processes) -> Iterator[LiveJobs]:
    """Lets others follow the jobs of this context, if someone asks for it.

    Args:
        run: what they are called together.
        title: what is measured.
        processes: those whose CPU time is shown besides the client's.

    """
    feed = current_feed()
    jobs, status = LiveJobs(feed, run, title), "failed"
    try:
        with _sampled(jobs, processes) if feed is not None else nullcontext():
            yield jobs
        status = "complete"
    except (KeyboardInterrupt, InterruptedRunError):
        status = "interrupted"
        raise
    finally:
        jobs.end(status)


@contextmanager
def _sampled(jobs: LiveJobs, processes: Processes) -> Iterator[None]:
    """Publishes once a second how many CPUs each process keeps busy."""
    ended, start_s = threading.Event(), time.monotonic()

    def sample() -> None:
        before: dict[str, tuple[float, float]] = {}
        while not ended.wait(EVERY_S):
            # One that has just ended or is being started is sampled the next time.
            with suppress(FailedError, UsageError, psutil.Error):
                jobs.add_cpu(list(_points(before, {CLIENT: this_process(), **processes()}, time.monotonic() - start_s)))

    thread = threading.Thread(target=sample, name="live jobs", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(timeout=5.0)


def _points(
    before: dict[str, tuple[float, float]], processes: Mapping[str, lab.WatchedProcess], now_s: float
) -> Iterator[CpuPoint]:
    """How fast CPU time grew since the reading before; `before` has times and CPU times, and gets those of now."""
    for name, process in processes.items():
        used = process.usage()
        used_s, (last_s, last_used_s) = used.cpu_s if used else 0.0, before.get(name, (now_s, 0.0))
        before[name] = now_s, used_s
        if now_s > last_s:
            yield CpuPoint(time_s=now_s, process=name, cpus=max(0.0, used_s - last_used_s) / (now_s - last_s))
