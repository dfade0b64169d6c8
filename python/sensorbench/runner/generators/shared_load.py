"""Loading that load generators share: each has a part of every table, and each part is loaded once."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from sensorbench._engine import Target
from sensorbench.errors import EngineError, LostGeneratorError
from sensorbench.interrupts import SLICE_S
from sensorbench.results.described import LoadedByGenerator, LoadedPart
from sensorbench.runner.generators.hosted import ClockedHost
from sensorbench.runner.generators.load_generator import LoadGenerator
from sensorbench.runner.generators.load_part import LoadPart, parts_of
from sensorbench.runner.generators.messages import LoadState
from sensorbench.runner.generators.started import LEAD_NS, GeneratorThreads, offsets_ns, started_generators

if TYPE_CHECKING:
    from sensorbench.runner.prepare import PreparedTable

Result = TypeVar("Result")
# Called with the rows of a table that are in, some times per second.
OnWait = Callable[[int], None]


class SharedLoad:
    """Load generators that load tables together, one table after the other. What one of them cannot do ends the load: nothing is sent again.

    Args:
        generators: processes that have not connected yet.
        hosts: those on which they are. Once the user interrupts, what does not answer is not waited for long.
        batch_rows: rows of a batch, at most; as they were prepared if None.
        sends_parts: whether parts are sent to them, because they do not read files of this machine.

    """

    def __init__(
        self, generators: Sequence[LoadGenerator], hosts: Sequence[ClockedHost], batch_rows: int | None, *, sends_parts: bool
    ) -> None:
        self._generators = generators
        self._batch_rows = batch_rows
        self._sends_parts = sends_parts
        self._threads = GeneratorThreads(generators, hosts)
        self._states: dict[int, LoadState] = {}
        # Calls that somebody waits for, or waited for when they were interrupted.
        self._calls: dict[int, Future[Any]] = {}
        # Once it is set, nothing more of a part is sent, which may take long.
        self._is_over = threading.Event()

    def join(self, target: Target) -> None:
        """Has all of them connect. Raises LostGeneratorError and EngineError."""
        url, driver_schema = target.admission()
        self._each(self._generators, lambda generator: generator.join(url, driver_schema))

    def load(self, table: "PreparedTable", on_wait: OnWait) -> tuple[LoadedPart, list[LoadedByGenerator]]:
        """Loads a table.

        Args:
            table: its rows, of which each load generator has as many as the others.
            on_wait: called with the rows that are in; what it raises ends the load.

        Returns:
            The table as a whole, from the first start to the last end; and what each load generator did.

        Raises:
            LostGeneratorError: one of them is gone.
            EngineError: for what the database refused to one of them.

        """
        parts = dict(zip(self._generators, parts_of(table, len(self._generators)), strict=True))
        # Of a table with fewer rows than there are load generators, some have none.
        with_rows = [generator for generator, part in parts.items() if part.rows]
        self._states = {}
        try:
            self._each(with_rows, lambda generator: self._hand_over(generator, parts[generator]))
            ahead_ns = offsets_ns(self._each(with_rows, lambda generator: generator.sample_clock()))
            at_ns = time.monotonic_ns() + LEAD_NS
            late_ns = self._each(with_rows, lambda generator: generator.start_load_at(at_ns + ahead_ns[generator.number]))
            self._wait(with_rows, on_wait)
        except BaseException:
            self._stop(with_rows)
            raise
        starts_ns = {number: state.start_ns - ahead_ns[number] for number, state in self._states.items()}
        first_ns = min(starts_ns.values(), default=0)
        each = [
            self._loaded(generator, part, starts_ns.get(generator.number, first_ns) - first_ns, late_ns.get(generator.number, 0))
            for generator, part in parts.items()
        ]
        return _whole(each), each

    def close(self) -> None:
        """Ends all processes."""
        self._threads.close()

    @property
    def acknowledged(self) -> int:
        """Rows of the table at hand that databases have acknowledged, as far as load generators have said so."""
        return sum(state.rows for state in self._states.values())

    def _hand_over(self, generator: LoadGenerator, part: LoadPart) -> None:
        if self._sends_parts:
            for chunk in part.chunks():
                if self._is_over.is_set():
                    return
                generator.put(chunk)
            part = part.as_sent()
        generator.open_part(part, self._batch_rows)

    def _wait(self, generators: Sequence[LoadGenerator], on_wait: OnWait) -> None:
        """Waits until all have loaded their parts."""
        going_on = list(generators)
        while going_on:
            self._states |= self._each(going_on, lambda generator: generator.poll_load(SLICE_S))
            going_on = [generator for generator in going_on if self._states[generator.number].result is None]
            on_wait(self.acknowledged)

    def _each(self, generators: Sequence[LoadGenerator], call: Callable[[LoadGenerator], Result]) -> dict[int, Result]:
        """What each load generator answers, by number. Raises the error of the first that has one, when all have answered."""
        self._calls = calls = self._threads.call(call, generators)
        self._threads.settle(calls, may_take_long=True)
        answers: dict[int, Result] = {}
        failed: BaseException | None = None
        for number, answer in calls.items():
            try:
                answers[number] = answer.result()
            except (LostGeneratorError, EngineError) as error:
                failed = failed or error
        if failed is not None:
            raise failed
        return answers

    def _stop(self, generators: Sequence[LoadGenerator]) -> None:
        """Has those that are left load no more; what they have sent, they have sent."""

        def stop(generator: LoadGenerator) -> None:
            with suppress(LostGeneratorError, EngineError):
                generator.stop_load()

        self._is_over.set()
        # Each speaks of one thing at a time.
        self._threads.settle(self._calls)
        stopping = self._threads.call(stop, generators)
        self._threads.settle(stopping)
        for stopped in stopping.values():
            stopped.result()

    def _loaded(self, generator: LoadGenerator, part: LoadPart, start_ns: int, late_ns: int) -> LoadedByGenerator:
        """What one did, which began this long after the first."""
        state = self._states.get(generator.number)
        loaded: LoadedPart = {"rows": 0, "duration_s": 0.0, "batches": 0, "batch_s": {}}
        if state is not None and state.result is not None:
            loaded = json.loads(state.result)
        return {
            **loaded,
            "number": generator.number,
            "host": generator.host,
            "pid": generator.pid,
            "rows_sent": part.rows,
            "start_s": start_ns / 1e9,
            "start_lag_s": late_ns / 1e9,
        }


def _whole(each: Sequence[LoadedByGenerator]) -> LoadedPart:
    """All parts as one. Of how long batches took, quantiles cannot be added up, and the maximum can."""
    longest_s = [batch_s["max"] for part in each if (batch_s := part["batch_s"]).get("max") is not None]
    return {
        "rows": sum(part["rows"] for part in each),
        "duration_s": max(part["start_s"] + part["duration_s"] for part in each),
        "batches": sum(part["batches"] for part in each),
        "batch_s": {"max": max(longest_s)} if longest_s else {},
        "retries": sum(part.get("retries", 0) for part in each),
    }


@contextmanager
def shared_load(
    target: Target, count: int, hosts: Sequence[ClockedHost] = (), *, batch_rows: int | None = None, sends_parts: bool = False
) -> Iterator[SharedLoad]:
    """Load generators that have connected to load what `target` has created; they end with the context. Raises LostGeneratorError and EngineError.

    Args:
        target: where tables are, which are empty.
        count: how many load generators.
        hosts: where they run, one after the other as often as needed; processes of this machine where there is none.
        batch_rows: rows of a batch, at most; as they were prepared if None.
        sends_parts: whether they cannot read files of this machine.

    """
    load = SharedLoad(started_generators(count, hosts), hosts, batch_rows, sends_parts=sends_parts)
    try:
        load.join(target)
        yield load
    finally:
        load.close()
