"""What a node of the lab is made to suffer for a while: no packets come to it; few, late or not all of them; or its disk is slow."""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal

from sensorbench import lab
from sensorbench.benchmarks.elasticity import disk, network
from sensorbench.errors import FailedError
from sensorbench.lab import parse_memory
from sensorbench.lab.state_dirs import instances_folder

Kind = Literal["partition", "slow-network", "slow-disk"]


@dataclass(frozen=True)
class Fault:
    """`default`: what stands behind @ when nothing is said, and `form` and `expected` what may; `title` and `annotation` tell of it, with that in
    braces; `on_node` makes a node suffer it, `on_nobody` no node, to see whether that can be had here.
    """

    summary: str
    title: str
    annotation: str
    on_node: Callable[[str, int, str], AbstractContextManager[None]]
    on_nobody: Callable[[str], AbstractContextManager[None]]
    default: str = ""
    form: re.Pattern[str] = re.compile("")
    expected: str = "nothing"

    def why_not(self, how: str) -> str | None:
        """Why it cannot be had on this machine; None where it can."""
        try:
            with self.on_nobody(how):
                return None
        except FailedError as error:
            return str(error)


def recover() -> None:
    """Takes away what work that was killed has left behind."""
    network.recover()
    disk.recover()


def _host(name: str, number: int) -> str:
    return next(node.host for node in lab.find_instance(name).nodes if node.number == number)


def _disk_slowed(name: str, number: int, how: str) -> AbstractContextManager[None]:
    instance = lab.find_instance(name)
    found = next(node for node in instance.nodes if node.number == number).find()
    if found is None:
        raise FailedError(f"{name}: node {number} does not run")
    return disk.slowed([found, *found.children(recursive=True)], instance.folder, parse_memory(how))


FAULTS: dict[Kind, Fault] = {
    "partition": Fault(
        summary="no packet comes to the last node for a time, not from clients and not from the others",
        title="a node was cut off",
        annotation="cut off",
        on_node=lambda name, number, _: network.cut_off(_host(name, number)),
        on_nobody=lambda _: network.cut_off(network.NOBODY),
    ),
    "slow-network": Fault(
        summary="packets to and from the last node go at a rate (1mbit), are late (20ms) or get lost (2%) for a time",
        title="the network of a node was slow ({how})",
        annotation="is slow to reach",
        on_node=lambda name, number, how: network.slowed(_host(name, number), how),
        on_nobody=lambda how: network.slowed(network.NOBODY, how),
        default="1mbit",
        form=re.compile(r"[1-9]\d*([kmg]bit|ms)|[1-9]\d?%"),
        expected="a rate as 1mbit or 200kbit, a delay as 20ms, or a share as 2%",
    ),
    "slow-disk": Fault(
        summary="the last node reads and writes so much a second (1M) on its disk for a time",
        title="the disk of a node was slow ({how} a second)",
        annotation="has a slow disk",
        on_node=_disk_slowed,
        on_nobody=lambda how: disk.slowed([], instances_folder(), parse_memory(how)),
        default="1M",
        form=re.compile(r"[1-9]\d*[kKmMgG]"),
        expected="bytes a second as 500K or 1M",
    ),
}
