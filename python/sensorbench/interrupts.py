"""Ctrl-C and SIGTERM: they end what is running, but never in the middle of what must be done as a whole.

`held_back` delays an interruption until its context ends. Within it, `let_through` has one come at once again, for work that may take
long, and `check` asks for it. Signals come to the main thread alone; in other threads nothing of this has an effect.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType, TracebackType


@dataclass
class _State:
    """What the handler goes by. It runs between any two instructions of the main thread, so each change of it is one assignment."""

    holds: int = 0
    lets_through: bool = False
    is_pending: bool = False
    raised: int = 0
    last_signal: int = signal.SIGINT
    # Whether Python has ignored an interruption that has not come again yet, and whether it is at that just now.
    is_ignored: bool = False
    is_ignoring: bool = False


_STATE = _State()


def install() -> None:
    """Has SIGINT and SIGTERM interrupt the main thread. SIGINT stays ignored where whoever started the process has it so."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _interrupt)
    signal.signal(signal.SIGTERM, _interrupt)
    if not isinstance(sys.unraisablehook, _Unraisable):
        sys.unraisablehook = _Unraisable(sys.unraisablehook)


def end() -> None:
    """Has no interruption come any more: what the process ends with is decided."""
    _STATE.holds += 1
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    # An interruption within exec() of a text, as when a dataclass is made, has CPython end `python -m` by SIGINT, whatever the exit code is, even
    # where it was handled. The next exec() of a text takes that back.
    exec("")


def count() -> int:
    """How many interruptions have come so far. Libraries make an error of their own of KeyboardInterrupt (DuckDB: RuntimeError): one that
    comes out of work is an interruption when there are more of them than before it.
    """
    return _STATE.raised


def has_come_since(before: int) -> bool:
    """Whether an interruption has come since there were this many (`count`), be it held back."""
    return _STATE.is_pending or _STATE.raised > before


def check() -> None:
    """Raises KeyboardInterrupt when an interruption was held back."""
    if take_pending():
        raise KeyboardInterrupt


def take_pending() -> bool:
    """Whether an interruption was held back. It does not come any more: who asks raises it."""
    if not _STATE.is_pending or not _is_main_thread():
        return False
    _STATE.is_pending = False
    _STATE.raised += 1
    return True


class held_back:  # noqa: N801 - used like a function
    """A context that an interruption does not cut short: KeyboardInterrupt is raised when it ends."""

    def __init__(self) -> None:
        self._is_effective = False
        self._let_through = False

    def __enter__(self) -> None:
        if _is_main_thread():
            if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                install()
            self._is_effective = True
            self._let_through = _STATE.lets_through
            _STATE.lets_through = False
            _STATE.holds += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._is_effective:
            _STATE.holds -= 1
            _STATE.lets_through = self._let_through
            if not _STATE.holds or _STATE.lets_through:
                check()


class let_through:  # noqa: N801 - used like a function
    """A context within `held_back` that an interruption cuts short, once: what follows is held back again."""

    def __enter__(self) -> None:
        if _is_main_thread():
            check()
            _STATE.lets_through = True

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if _is_main_thread():
            _STATE.lets_through = False


class _Unraisable:
    """Has an interruption come again that Python would print and forget, and leaves other errors to the hook before it.

    An interruption may come while a destructor or the callback of a weak reference runs, as at the end of each import. No error leaves those.
    """

    def __init__(self, others: "Callable[[sys.UnraisableHookArgs], object]") -> None:
        self._others = others

    def __call__(self, error: "sys.UnraisableHookArgs") -> None:
        if issubclass(error.exc_type, KeyboardInterrupt):
            # No error leaves this hook, either: on a busy machine the interruption may come again before it has ended.
            _STATE.is_ignoring = True
            _STATE.is_ignored = True
            # A thread sends it, as a signal that is raised here would be handled here too.
            threading.Thread(target=_send_again, daemon=True).start()
            _STATE.is_ignoring = False
        else:
            self._others(error)


# A thread that waits looks up so often (s). A signal that another thread takes, or that comes just before the main thread begins to sleep, does not wake
# it: a wait without an end would be one for whatever is awaited.
SLICE_S = 0.2
# Until a destructor has ended, as a rule; and until the main thread of a busy machine has handled what came.
AGAIN_AFTER_S, ONCE_MORE_AFTER_S = 0.002, 0.05


def _send_again() -> None:
    """Sends the signal that was ignored until it is taken. The same signal: SIGINT may be ignored."""
    time.sleep(AGAIN_AFTER_S)
    while _STATE.is_ignored:
        os.kill(os.getpid(), _STATE.last_signal)
        time.sleep(ONCE_MORE_AFTER_S)


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _interrupt(number: int, _: FrameType | None) -> None:
    _STATE.last_signal = number
    if _STATE.is_ignoring:
        return
    _STATE.is_ignored = False
    if _STATE.holds and not _STATE.lets_through:
        _STATE.is_pending = True
        return
    _STATE.lets_through = False
    _STATE.raised += 1
    raise KeyboardInterrupt
