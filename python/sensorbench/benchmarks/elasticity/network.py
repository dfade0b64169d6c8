"""Troubles of the network for a loopback address of the lab, where the machine permits them: no packets at all; few, late, or not all of them.

The address of a host that is a machine of its own is left alone: by it the host is reached, too, so that nobody could end its trouble.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from sensorbench.errors import FailedError
from sensorbench.lab import is_loopback

# No node has this address.
NOBODY = "127.77.0.1"
_LAB = "127.77."
# Our queue of the loopback device, and what all other addresses have.
_QUEUE, _NO_LIMIT = "7700:", "100gbit"


@contextmanager
def cut_off(host: str) -> Iterator[None]:
    """An address to which no packet comes, not from clients and not from other nodes: connections that are open get no answer, new ones
    are refused. What was sent arrives late, when it is over. Raises FailedError if that is not permitted.
    """
    _require_loopback(host)
    _route("add", host)
    try:
        yield
    finally:
        _route("del", host)


@contextmanager
def slowed(host: str, how: str) -> Iterator[None]:
    """An address to and from which packets go, in the words of tc, at a rate in all (1mbit), each this much later (20ms), or with such a share
    of them lost (2%). Raises FailedError if that is not permitted, or is so already for an address.
    """
    _require_loopback(host)
    _tc("qdisc", "add", "dev", "lo", "root", "handle", _QUEUE, "htb", "default", "1")
    try:
        for number, rate in (("1", _NO_LIMIT), ("2", how if how.endswith("bit") else _NO_LIMIT)):
            _tc("class", "add", "dev", "lo", "parent", _QUEUE, "classid", f"{_QUEUE}{number}", "htb", "rate", rate)
        if not how.endswith("bit"):
            _tc("qdisc", "add", "dev", "lo", "parent", f"{_QUEUE}2", "netem", "loss" if how.endswith("%") else "delay", how)
        for side in ("src", "dst"):
            match = ("match", "ip", side, f"{host}/32", "flowid", f"{_QUEUE}2")
            _tc("filter", "add", "dev", "lo", "parent", _QUEUE, "protocol", "ip", "prio", "1", "u32", *match)
        yield
    finally:
        _remove_queue()


def _require_loopback(host: str) -> None:
    if not is_loopback(host):
        raise FailedError(
            f"{host} is not a loopback address: its host would be cut off from the machine that should end that; expected hosts of this machine "
            "(local:N), or a fault of another kind"
        )


def recover(address: str = "") -> None:
    """Takes away what work that was killed has left behind at the lab's addresses, and at another one."""
    with suppress(FailedError):
        if f"htb {_QUEUE}" in _tc("qdisc", "show", "dev", "lo"):
            _remove_queue()
        rules = _ip("route", "show", "table", "local", "type", "blackhole")
        for host in (line.split()[1] for line in rules.splitlines() if line.startswith("blackhole ")):
            if host.startswith(_LAB) or host == address:
                _route("del", host)


def _route(what: str, host: str) -> None:
    _ip("route", what, "blackhole", f"{host}/32", "table", "local")


def _remove_queue() -> None:
    _tc("qdisc", "del", "dev", "lo", "root", "handle", _QUEUE)


def _ip(*words: str) -> str:
    return _call("ip", *words)


def _tc(*words: str) -> str:
    return _call("tc", *words)


def _call(program: str, *words: str) -> str:
    try:
        ended = subprocess.run([program, *words], capture_output=True, text=True, timeout=10.0, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FailedError(f"the program {program} (of iproute2) cannot be run: {error}") from None
    if ended.returncode != 0:
        raise FailedError(f"{program} {' '.join(words)}: {ended.stderr.strip() or ended.returncode}")
    return ended.stdout
