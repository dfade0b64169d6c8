"""A host that is reached by dask: its agent makes the calls."""

import inspect
import pickle
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, cast

from sensorbench.errors import FailedError, LostHostError
from sensorbench.hosts.agent import AboutHost, AboutKept, Agent
from sensorbench.hosts.clocks import ROUND_TRIPS, SAMPLED_EVERY_S, ClockReading, ClockSample, clock_identity, same_clock, sampled
from sensorbench.hosts.fence import FencedError, Ticket
from sensorbench.hosts.host import HURRIED_S
from sensorbench.hosts.hosts_file import HostEntry
from sensorbench.hosts.outcomes import value_of

if TYPE_CHECKING:
    from distributed import Client

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

# A host that does not answer for this long is lost; once the user interrupts, earlier: after HURRIED_S.
HEARTBEAT_S = 30.0
# How often a host is asked whether it is there, and how long an answer is waited for until that is looked at again.
_BEAT_S, _SLICE_S = 1.0, 0.5
# An agent is made within this time, the import of this package there included.
_AGENT_S = 60.0


class _Answer(Protocol):
    """What dask has for an answer that is under way."""

    def result(self, timeout: float) -> Any:
        """The answer. Raises TimeoutError."""


class DaskHost:
    """A worker of a dask cluster. From its first moment on its clock is sampled, and whether it answers, on a thread of its own."""

    def __init__(
        self, entry: HostEntry, address: str, client: "Client", worker: str, how_it_ended: Callable[[], str | None]
    ) -> None:
        """A host by its entry, at an address for servers; `worker` is the worker's name for dask. `how_it_ended` says what became of its
        process, or of the scheduler, if that is known.

        Raises:
            FailedError: if no agent can be made there.

        """
        self.entry = entry
        self._address = address
        self._how_it_ended = how_it_ended
        self._numbers = count(1)
        self._patience_s = HEARTBEAT_S
        self._lost: str | None = None
        self._samples: list[ClockSample] = []
        self._ended = Event()
        # One start, pinned to the host: dask makes it nowhere else, and not again.
        self._future = client.submit(
            Agent,
            actor=True,
            workers=[worker],
            allow_other_workers=False,
            retries=0,
            pure=False,
            key=f"agent-{worker}-{id(self)}",
        )
        self._agent = self._made()
        # Making it may have taken long.
        self._heard_s = time.monotonic()
        self.about = cast("AboutHost", pickle.loads(self._result("about")))
        self._has_our_clock = self.about.clock == clock_identity()
        self._sample(ROUND_TRIPS)
        self._watcher = Thread(target=self._watch, name=f"host {entry.name}", daemon=True)
        self._watcher.start()

    @property
    def name(self) -> str:
        """Its name, as the user gave it."""
        return self.entry.name

    @property
    def address(self) -> str:
        """Where servers on it listen."""
        return self._address

    def call(self, function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        """What a function returns there. It is called once, and never again if the host is lost on the way.

        Raises LostHostError, and what the function raises.
        """
        return cast("Result", self._value("call", pickle.dumps(partial(function, *args, **kwargs))))

    def keep(self, kind: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        """Makes an object there, and returns what stands for it here: its methods are called there, one after the other, but for `close`
        and `give_up`.

        Raises LostHostError, and what making it raises.
        """
        about = cast("AboutKept", self._value("keep", pickle.dumps(partial(kind, *args, **kwargs))))
        return cast("Result", _Kept(self, about))

    def samples_since(self, at_ns: int) -> list[ClockSample]:
        """Samples of its clock from a time on (CLOCK_MONOTONIC, here), with the last one before it, so that there is at least one."""
        samples = sorted(self._samples, key=lambda sample: sample.at_ns)
        before = [sample for sample in samples if sample.at_ns < at_ns]
        return [*before[-1:], *samples[len(before) :]]

    def sample_clock(self) -> ClockSample:
        """Samples its clock now. Raises LostHostError."""
        return self._sample(ROUND_TRIPS)

    def hurry(self) -> None:
        """From now on it is lost when it does not answer for HURRIED_S."""
        self._patience_s = min(self._patience_s, HURRIED_S)

    @property
    def is_lost(self) -> bool:
        """Whether it is gone, or answers no more."""
        return self._lost is not None

    def close(self) -> None:
        """Has it end; what it keeps was ended before."""
        self._ended.set()
        if self._lost is None:
            try:
                self._result("end")
            except LostHostError:
                # It is gone, which is what was wanted.
                self._lost = "closed"
        self._watcher.join()
        self._future.release()

    def ask(self, number: int, attribute: str, work: bytes | None) -> object:
        """Calls a method of a kept object, or reads an attribute of it. Raises LostHostError, and what it raises."""
        return self._value("ask", number, attribute, work)

    def forget(self, number: int) -> None:
        """Has it keep an object no more."""
        if self._lost is None and not self._ended.is_set():
            # Nobody waits for it, and a host that is gone has forgotten.
            with suppress(RuntimeError):
                self._agent.forget(number)

    def _made(self) -> Any:
        """The agent, once it is made. Raises FailedError."""
        try:
            return self._future.result(timeout=_AGENT_S)
        except TimeoutError:
            raise FailedError(f"host {self.name}: no agent was made there within {_AGENT_S:g} s") from None
        except Exception as error:  # dask raises here whatever the host met
            why = self._how_it_ended() or f"{type(error).__name__}: {error}"
            raise FailedError(f"host {self.name}: no agent can be made there: {why}; is sensorbench installed there?") from None

    def _value(self, method: str, *arguments: object) -> object:
        """What a method of the agent answers, made once. Raises LostHostError, and what it raises."""
        if self._lost is not None:
            raise LostHostError(self._lost)
        ticket = Ticket(self.about.epoch, next(self._numbers))
        try:
            return value_of(self._result(method, ticket, *arguments))
        except FencedError as error:
            raise self._gone(str(error)) from None

    def _result(self, method: str, *arguments: object) -> Any:
        """What a method of the agent answers, waited for as long as the host is there. Raises LostHostError."""
        try:
            answer: _Answer = getattr(self._agent, method)(*arguments)
        except RuntimeError as error:
            # Dask knows already that the worker is gone.
            raise self._gone(str(error)) from None
        while True:
            try:
                found = answer.result(timeout=_SLICE_S)
            except TimeoutError:
                if self._lost is not None:
                    raise LostHostError(self._lost) from None
                if time.monotonic() - self._heard_s > self._patience_s:
                    raise self._gone(f"it did not answer for {self._patience_s:g} s") from None
            except (OSError, RuntimeError) as error:
                raise self._gone(str(error)) from None
            else:
                self._heard_s = time.monotonic()
                return found

    def _gone(self, why: str) -> LostHostError:
        """The host is lost: why, as far as its process shows."""
        if self._lost is None:
            self._lost = f"host {self.name}: {self._how_it_ended() or why}"
        return LostHostError(self._lost)

    def _watch(self) -> None:
        """Asks whether it is there, and for its clock, until it is lost or closed."""
        sampled_s = time.monotonic()
        while not self._ended.wait(_BEAT_S):
            is_time = time.monotonic() - sampled_s >= SAMPLED_EVERY_S
            try:
                if is_time:
                    sampled_s = time.monotonic()
                    self._sample(ROUND_TRIPS)
                else:
                    self._read_clocks()
            except LostHostError:
                return

    def _sample(self, round_trips: int) -> ClockSample:
        sample = same_clock() if self._has_our_clock else sampled(self._read_clocks, round_trips)
        self._samples.append(sample)
        return sample

    def _read_clocks(self) -> ClockReading:
        return ClockReading(*self._result("clocks"))


class _Kept:
    """What stands here for an object on a host."""

    def __init__(self, host: DaskHost, about: AboutKept) -> None:
        self._host = host
        self._about = about
        # Nothing is sent when the process ends: the host ends, too.
        weakref.finalize(self, host.forget, about.number).atexit = False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if callable(inspect.getattr_static(self._about.kind, name, None)):
            return partial(self._called, name)
        return self._host.ask(self._about.number, name, None)

    def _called(self, name: str, *arguments: object, **named: object) -> object:
        return self._host.ask(self._about.number, name, pickle.dumps((arguments, named)))
