"""What runs on a host for the controller: an actor of dask that makes calls, and keeps objects whose methods are called."""

import asyncio
import os
import pickle
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from threading import Event, Thread
from typing import NamedTuple

from sensorbench.hosts.build import Build, this_build
from sensorbench.hosts.clocks import clock_identity, read_clocks
from sensorbench.hosts.fence import Fence, FencedError, Ticket
from sensorbench.hosts.host import ABANDONED_S
from sensorbench.hosts.outcomes import outcome_of

# How many calls a host makes at a time, besides those of kept objects, which are made one after the other for each.
_CALLS_AT_A_TIME = 32
# The methods of kept objects that wait for no other one: a call in progress may hang, and ends by them.
_CLOSE = "close"
_AT_ONCE = frozenset({_CLOSE, "give_up"})


@dataclass(frozen=True)
class AboutHost:
    """What a host says of itself: the epoch of its process, whose number it is, its build, and which clock it reads."""

    epoch: str
    pid: int
    build: Build
    clock: str


class AboutKept(NamedTuple):
    """An object that a host keeps: the number by which it is called, and its class."""

    number: int
    kind: type


@dataclass(frozen=True)
class _Kept:
    value: object
    # Its methods are called one after the other, whoever calls them.
    pool: ThreadPoolExecutor


class Agent:
    """Calls and objects of one controller on this host. Each call is made once, by its ticket.

    It ends what it keeps when it has heard nothing for `abandoned_s`. Its methods are coroutines so that dask queues no call behind another.
    """

    def __init__(self, abandoned_s: float = ABANDONED_S) -> None:
        self._fence = Fence()
        self._kept: dict[int, _Kept] = {}
        self._calls = ThreadPoolExecutor(_CALLS_AT_A_TIME, thread_name_prefix="calls")
        self._ended = Event()
        self._heard_s = time.monotonic()
        self._abandoned_s = abandoned_s
        Thread(target=self._watch, name="controller", daemon=True).start()

    async def about(self) -> bytes:
        """What this host is."""
        return pickle.dumps(AboutHost(self._fence.epoch, os.getpid(), this_build(), clock_identity()))

    async def clocks(self) -> tuple[int, int]:
        """Its clocks now; who asks is there."""
        self._heard_s = time.monotonic()
        reading = read_clocks()
        return reading.monotonic_ns, reading.wall_ns

    async def call(self, ticket: Ticket, work: bytes) -> bytes:
        """Makes a call, a pickled `partial`; what became of it."""
        return await self._once(ticket, self._calls, _read(work))

    async def keep(self, ticket: Ticket, work: bytes) -> bytes:
        """Makes an object and keeps it; an AboutKept."""

        def make() -> AboutKept:
            value = _read(work)()
            self._kept[ticket.number] = _Kept(value, ThreadPoolExecutor(1, thread_name_prefix=f"object {ticket.number}"))
            return AboutKept(ticket.number, type(value))

        return await self._once(ticket, self._calls, make)

    async def ask(self, ticket: Ticket, number: int, name: str, work: bytes | None) -> bytes:
        """Calls a method of a kept object with arguments, or reads an attribute where there are none."""
        kept = self._kept[number]
        pool = self._calls if name in _AT_ONCE else kept.pool

        def ask() -> object:
            attribute = getattr(kept.value, name)
            if work is None:
                return attribute
            arguments, named = pickle.loads(work)
            return attribute(*arguments, **named)

        return await self._once(ticket, pool, ask)

    async def forget(self, number: int) -> None:
        """Keeps an object no more."""
        kept = self._kept.pop(number, None)
        if kept is not None:
            kept.pool.shutdown(wait=False)

    async def end(self) -> None:
        """Is called no more by its controller, which has ended what it kept here."""
        self._ended.set()

    async def _once(self, ticket: Ticket, pool: ThreadPoolExecutor, call: Callable[[], object]) -> bytes:
        self._heard_s = time.monotonic()
        try:
            self._fence.admit(ticket)
            if self._ended.is_set():
                raise FencedError("this host has ended what it kept: it heard nothing from its controller")
        except FencedError as error:
            return outcome_of(partial(_fail, error))
        return await asyncio.get_running_loop().run_in_executor(pool, outcome_of, call)

    def _watch(self) -> None:
        """Ends all that is kept once nobody has been heard of for long."""
        while not self._ended.wait(1.0):
            if time.monotonic() - self._heard_s > self._abandoned_s:
                self._ended.set()
                for kept in self._kept.values():
                    if close := getattr(kept.value, _CLOSE, None):
                        # A call in progress may be what hangs.
                        Thread(target=close, name="closing", daemon=True).start()


def _read(work: bytes) -> Callable[[], object]:
    """What is to be called."""

    def call() -> object:
        # What it imports may fail, as the call itself.
        return pickle.loads(work)()

    return call


def _fail(error: Exception) -> object:
    raise error
