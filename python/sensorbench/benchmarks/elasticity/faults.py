"""What a node of the lab is made to suffer for a while: no packets come to it; few, late or not all of them; or its disk is slow. That is done on the
machine that it is on.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sensorbench import lab
from sensorbench.benchmarks.elasticity import disk, network
from sensorbench.errors import FailedError
from sensorbench.lab import is_loopback, parse_memory
from sensorbench.lab.processes import ProcessId
from sensorbench.lab.state_dirs import instances_folder

Kind = Literal["partition", "slow-network", "slow-disk"]


@dataclass(frozen=True)
class Sufferer:
    """A node on its own machine: its address, its process, and the folder of its instance. `process` is None for nobody, to see whether a fault can be
    had there.
    """

    address: str
    process: ProcessId | None
    folder: Path


@dataclass(frozen=True)
class Fault:
    """`default`: what follows @ when nothing is said, and `form` and `expected` what may; `title` and `annotation` describe it, with that in
    braces; `of` makes a node suffer it.
    """

    summary: str
    title: str
    annotation: str
    of: Callable[[Sufferer, str], AbstractContextManager[None]]
    default: str = ""
    form: re.Pattern[str] = re.compile("")
    expected: str = "nothing"


@contextmanager
def suffering(name: str, number: int, kind: Kind, how: str) -> Iterator[None]:
    """Has a node of an instance suffer, on the machine that it is on.

    Raises:
        FailedError: if it is not running, or the machine does not permit that.
        LostHostError: if its host is gone.

    """
    instance = lab.find_instance(name)
    node = instance.node(number)
    if node.process is None or not lab.runs(instance, node):
        raise FailedError(f"{name}: node {number} is not running")
    folder = instance.parts[node.placed_on].folder if node.placed_on in instance.parts else instance.folder
    fault = lab.host_of(instance, node).keep(_Suffering, kind, Sufferer(node.host, node.process, folder), how)
    try:
        yield
    finally:
        fault.close()


class _Suffering:
    """A fault on this machine, from when it is made until it is closed."""

    def __init__(self, kind: Kind, sufferer: Sufferer, how: str) -> None:
        self._fault = FAULTS[kind].of(sufferer, how)
        self._fault.__enter__()

    def close(self) -> None:
        """Ends it."""
        self._fault.__exit__(None, None, None)


def why_not(kind: Kind, address: str, how: str) -> str | None:
    """Why a fault cannot be had on this machine; None if it can.

    Args:
        kind: which.
        address: that of this machine among the hosts; empty if it is none.
        how: what follows @.

    """
    nobody = Sufferer(network.NOBODY if is_loopback(address) else address, None, instances_folder())
    try:
        with FAULTS[kind].of(nobody, how):
            return None
    except FailedError as error:
        return str(error)


def recover(address: str = "") -> None:
    """Takes away what work that was killed has left behind on this machine, for the lab's addresses here and the address of its servers."""
    network.recover(address)
    disk.recover()


def _disk_slowed(sufferer: Sufferer, how: str) -> AbstractContextManager[None]:
    processes = sufferer.process.family() if sufferer.process else []
    return disk.slowed(processes, sufferer.folder, parse_memory(how))


FAULTS: dict[Kind, Fault] = {
    "partition": Fault(
        summary="the last node receives no packets for a time, neither from clients nor from other nodes",
        title="a node was cut off",
        annotation="cut off",
        of=lambda sufferer, _: network.cut_off(sufferer.address),
    ),
    "slow-network": Fault(
        summary="packets to and from the last node are limited to a rate (1mbit), delayed (20ms) or dropped (2%) for a time",
        title="the network of a node was slow ({how})",
        annotation="is slow to reach",
        of=lambda sufferer, how: network.slowed(sufferer.address, how),
        default="1mbit",
        form=re.compile(r"[1-9]\d*([kmg]bit|ms)|[1-9]\d?%"),
        expected="a rate such as 1mbit or 200kbit, a delay such as 20ms, or a share such as 2%",
    ),
    "slow-disk": Fault(
        summary="the last node reads and writes at most that much per second (1M) on its disk for a time",
        title="the disk of a node was slow ({how} per second)",
        annotation="has a slow disk",
        of=_disk_slowed,
        default="1M",
        form=re.compile(r"[1-9]\d*[kKmMgG]"),
        expected="bytes per second, such as 500K or 1M",
    ),
}
