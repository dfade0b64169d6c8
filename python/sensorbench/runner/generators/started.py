"""Starting load generators, here or on hosts, and having all of them do something at the same time."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

from sensorbench import interrupts
from sensorbench.hosts.clocks import ClockSample
from sensorbench.hosts.host import HURRIED_S
from sensorbench.runner.generators.hosted import ClockedHost, HostedGenerator
from sensorbench.runner.generators.load_generator import LoadGenerator
from sensorbench.runner.generators.local import LocalGenerator

Result = TypeVar("Result")

# From the agreement on a start, or on a rate, until it takes effect: all load generators have heard of it by then.
LEAD_NS = 250_000_000


def started_generators(count: int, hosts: Sequence[ClockedHost]) -> list[LoadGenerator]:
    """A number of load generators: on hosts, one after the other as often as needed; processes of this machine where there is none. Raises
    LostGeneratorError.
    """
    generators: list[LoadGenerator] = []
    try:
        for number in range(1, count + 1):
            generators.append(HostedGenerator(number, hosts[(number - 1) % len(hosts)]) if hosts else LocalGenerator(number))
    except BaseException:
        for generator in generators:
            generator.close()
        raise
    return generators


class GeneratorThreads:
    """A thread for each load generator, on which this process calls it.

    Args:
        generators: all of them; they end with this.
        hosts: those on which they are.

    """

    def __init__(self, generators: Sequence[LoadGenerator], hosts: Sequence[ClockedHost]) -> None:
        self._generators = generators
        self._hosts = hosts
        self._interruptions = interrupts.count()
        self._interrupted_s: float | None = None
        self._pool = ThreadPoolExecutor(max_workers=len(generators), thread_name_prefix="load generators")

    def call(self, call: Callable[[LoadGenerator], Result], generators: Iterable[LoadGenerator]) -> dict[int, Future[Result]]:
        """Calls some of them at the same time. Returns the answers to come, by number."""
        return {generator.number: self._pool.submit(call, generator) for generator in generators}

    def settle(self, calls: Mapping[int, Future[Any]], *, may_take_long: bool = False, can_interrupt: bool = False) -> None:
        """Waits until all have answered, or are lost. Once the user has interrupted, what does not answer for HURRIED_S is lost: hosts, and load
        generators.

        Args:
            calls: what was just called, by the number of the load generator.
            may_take_long: whether load generators answer later than at once; they are waited for then.
            can_interrupt: whether an interruption that is held back is raised.

        Raises:
            KeyboardInterrupt: with `can_interrupt`.

        """
        since_s = time.monotonic()
        while wait(calls.values(), interrupts.SLICE_S).not_done:
            if can_interrupt:
                interrupts.check()
            self._hurry({} if may_take_long else calls, since_s)

    def close(self) -> None:
        """Ends all of them, and the threads. What they are doing then, such as connecting, is not waited for."""
        self._hurry({}, time.monotonic())
        # The threads that call them may all be waiting for answers, which end with the load generators.
        with ThreadPoolExecutor(len(self._generators), thread_name_prefix="closing") as closing:
            list(closing.map(lambda generator: generator.close(), self._generators))
        self._pool.shutdown()

    def _hurry(self, calls: Mapping[int, Future[Any]], since_s: float) -> None:
        if not interrupts.has_come_since(self._interruptions):
            return
        if self._interrupted_s is None:
            self._interrupted_s = time.monotonic()
        for host in self._hosts:
            host.hurry()
        if time.monotonic() - max(since_s, self._interrupted_s) < HURRIED_S:
            return
        for generator in self._generators:
            if generator.number in calls and not calls[generator.number].done():
                generator.give_up(HURRIED_S)


def offsets_ns(samples: Mapping[int, ClockSample | None]) -> dict[int, int]:
    """How far the clock of each load generator is ahead of this machine's, by its number; those without a sample are here."""
    return {number: sample.offset_ns if sample else 0 for number, sample in samples.items()}
