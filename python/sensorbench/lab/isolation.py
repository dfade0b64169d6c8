"""A network namespace for servers that listen on every address, whatever they are set to: this machine reaches them, and no other one does.

The namespace belongs to the processes of an instance: it has no name, and the system removes it with its interfaces when the last of them
has ended, however it ended. Its one route leads to this machine, so that it answers nobody else, whatever this machine forwards.
"""

import contextlib
import ctypes
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from sensorbench.errors import FailedError
from sensorbench.lab.instance import Instance

# Addresses for tests of network devices (RFC 2544): no host of the internet has one.
_SUBNET = "198.18"
_NEW_NETWORK = 0x40000000
_PREFIX = "sensorbench-"
_STATUS = Path("/proc/self/status")
# CAP_NET_ADMIN and CAP_SYS_ADMIN.
_NEEDED = (12, 21)
_OWN_NAMESPACE = Path("/proc/thread-self/ns/net")
_INTERFACES = Path("/sys/class/net")
# What is left of servers that were ended goes within moments.
_GONE_WITHIN_S = 10.0


def missing() -> str | None:
    """What is missing here to make a namespace, and how to install it; None when nothing is."""
    capabilities = int(re.findall(r"^CapEff:\s*([0-9a-f]+)", _STATUS.read_text(encoding="ascii"), re.MULTILINE)[0], 16)
    if not all(capabilities >> number & 1 for number in _NEEDED):
        return (
            "it listens on every address of the machine, so it runs in a network namespace of its own. This process lacks the "
            "capabilities for that, CAP_SYS_ADMIN and CAP_NET_ADMIN: run it as root, or use a server of your own by its URL"
        )
    if shutil.which("ip") is None:
        return "its network namespace needs the program ip (apt-get install iproute2)"
    return None


def address(cluster: int) -> str:
    """The address of an instance's servers, which share a namespace."""
    return f"{_SUBNET}.{cluster}.2"


def taken_clusters() -> set[int]:
    """The numbers whose interface exists, whoever made it."""
    names = [path.name.removeprefix(_PREFIX) for path in _INTERFACES.glob(f"{_PREFIX}*")]
    return {int(name) for name in names if name.isdigit()}


@contextlib.contextmanager
def entered(instance: Instance) -> Iterator[None]:
    """What this thread starts meanwhile lies in the namespace of an instance, which is made if none of its processes runs.

    Raises FailedError if the machine does not permit that.
    """
    running = next((process for node in instance.all_processes if (process := node.find())), None)
    with contextlib.ExitStack() as stack:
        home = stack.enter_context(_OWN_NAMESPACE.open("rb")).fileno()
        stack.callback(_enter, home)
        if running is not None:
            _enter(stack.enter_context(Path(f"/proc/{running.pid}/ns/net").open("rb")).fileno())
        else:
            _wait_until_gone(instance.cluster)
            _call("unshare", _NEW_NETWORK)
            inside = stack.enter_context(_OWN_NAMESPACE.open("rb")).fileno()
            _connect(instance.cluster, home, inside)
        yield


def _connect(cluster: int, home: int, inside: int) -> None:
    """Joins this machine and the namespace by a pair of interfaces. This thread is inside, before and after."""
    interface = f"{_PREFIX}{cluster}"
    _enter(home)
    _ip("link", "add", interface, "type", "veth", "peer", "name", "server", "netns", f"/proc/self/fd/{inside}", keep=inside)
    _ip("address", "add", f"{_SUBNET}.{cluster}.1/30", "dev", interface)
    _ip("link", "set", interface, "up")
    _enter(inside)
    _ip("link", "set", "lo", "up")
    _ip("address", "add", f"{address(cluster)}/30", "dev", "server")
    _ip("link", "set", "server", "up")


def _wait_until_gone(cluster: int) -> None:
    end_s = time.monotonic() + _GONE_WITHIN_S
    while (_INTERFACES / f"{_PREFIX}{cluster}").exists():
        if time.monotonic() > end_s:
            raise FailedError(f"somebody else's interface is called {_PREFIX}{cluster}; it is left alone")
        time.sleep(0.05)


def _enter(namespace: int) -> None:
    _call("setns", namespace, _NEW_NETWORK)


def _call(name: str, *arguments: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) != 0:
        why = os.strerror(ctypes.get_errno())
        raise FailedError(f"this machine does not permit network namespaces ({name}: {why}), which the server needs")


def _ip(*arguments: str, keep: int | None = None) -> None:
    ended = subprocess.run(
        ["ip", *arguments],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        pass_fds=() if keep is None else (keep,),
    )
    if ended.returncode != 0:
        raise FailedError(f"ip {' '.join(arguments[:3])} failed: {ended.stderr.strip()}")
