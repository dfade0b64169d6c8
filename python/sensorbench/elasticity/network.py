"""Cutting an address of the lab off from the network, where the machine permits it: its packets go into a black hole."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from sensorbench.errors import FailedError

# No node has this address.
_NOBODY = "127.77.0.1"
_LAB = "127.77."


def why_not() -> str | None:
    """Why addresses cannot be cut off on this machine; None where they can."""
    try:
        with cut_off(_NOBODY):
            return None
    except FailedError as error:
        return str(error)


@contextmanager
def cut_off(host: str) -> Iterator[None]:
    """An address to which no packet comes, not from clients and not from other nodes: connections that are open get no answer, new ones
    are refused. What was sent arrives late, when it is over. Raises FailedError where that is not permitted.
    """
    _route("add", host)
    try:
        yield
    finally:
        _route("del", host)


def heal() -> None:
    """Takes away what work that was killed has left behind."""
    with suppress(FailedError):
        told = _ip("route", "show", "table", "local", "type", "blackhole")
        for host in (line.split()[1] for line in told.splitlines() if line.startswith(f"blackhole {_LAB}")):
            _route("del", host)


def _route(what: str, host: str) -> None:
    _ip("route", what, "blackhole", f"{host}/32", "table", "local")


def _ip(*words: str) -> str:
    try:
        ended = subprocess.run(["ip", *words], capture_output=True, text=True, timeout=10.0, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FailedError(f"the program ip (of iproute2) cannot be run: {error}") from None
    if ended.returncode != 0:
        raise FailedError(f"ip {' '.join(words)}: {ended.stderr.strip() or ended.returncode}")
    return ended.stdout
