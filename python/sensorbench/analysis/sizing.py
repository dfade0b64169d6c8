"""How many nodes, how much disk and memory a load needs, from rates and sizes that were measured on few nodes.

Each step is one formula, with what is assumed in it; nothing else is known of machines that nobody has measured.
"""

import math
from dataclasses import dataclass
from typing import Literal

SECONDS_A_DAY = 86_400.0

Unit = Literal["nodes", "bytes"]


@dataclass(frozen=True)
class Load:
    """What comes and goes: readings written per second by all sensors together, reads a second and how long readings are kept,
    if known.
    """

    readings_per_s: float
    reads_per_s: float | None = None
    retention_s: float | None = None


@dataclass(frozen=True)
class Capacity:
    """What was measured with this many nodes and copies of the data: rates, bytes per reading and resident memory of all of them
    together.
    """

    written_per_s: float | None
    read_per_s: float | None
    bytes_a_reading: float | None
    memory_bytes: float | None
    in_memory: bool
    nodes: int = 1
    copies: int = 1

    @property
    def bytes_of_copy(self) -> float | None:
        """Bytes that one copy of a reading takes."""
        return None if self.bytes_a_reading is None else self.bytes_a_reading / self.copies


@dataclass(frozen=True)
class Assumptions:
    """What is assumed of the nodes that are wanted, and how much is kept free of what they can do.

    `copies` of each reading; `headroom`: share of the measured rates that stays free; `fill`: share of the disks (of memory,
    where all data lie there) that is filled; `hot_s`: data of this long are read often and lie in memory.
    """

    copies: int = 3
    headroom: float = 0.5
    fill: float = 0.5
    node_disk_bytes: float = 1e12
    node_memory_bytes: float = 64e9
    hot_s: float = SECONDS_A_DAY


@dataclass(frozen=True)
class Step:
    """One figure of a sizing, and how it follows."""

    what: str
    value: float
    unit: Unit
    formula: str


@dataclass(frozen=True)
class Sizing:
    """What a load needs: the nodes, and by which of the steps there are this many. Disk is that of all nodes, memory that of
    one; None if something that it follows from is not known.
    """

    nodes: int
    nodes_by: str
    disk_bytes: float | None
    memory_a_node_bytes: float | None
    steps: tuple[Step, ...]
    not_known: tuple[str, ...]


def size(load: Load, capacity: Capacity, assumed: Assumptions) -> Sizing:
    """The nodes, disk and memory that a load needs."""
    by = [
        step
        for step in (_by_writes(load, capacity, assumed), _by_reads(load, capacity, assumed), _by_data(load, capacity, assumed))
        if step is not None
    ]
    by.append(Step("nodes by copies", assumed.copies, "nodes", f"{assumed.copies} copies, each on a node of its own"))
    decisive = max(by, key=lambda step: step.value)
    nodes = int(decisive.value)
    data, memory = _data(load, capacity, assumed), _memory_a_node(load, capacity, assumed, nodes)
    return Sizing(
        nodes=nodes,
        nodes_by=decisive.what.removeprefix("nodes by "),
        disk_bytes=data.value if data is not None and not capacity.in_memory else None,
        memory_a_node_bytes=memory.value if memory is not None else None,
        steps=tuple(step for step in (*by, data, memory) if step is not None),
        not_known=tuple(_not_known(load, capacity)),
    )


def _by_writes(load: Load, capacity: Capacity, assumed: Assumptions) -> Step | None:
    """Every copy of a reading is a write; a node can do as many as it was measured with, copies among them."""
    if capacity.written_per_s is None:
        return None
    of_node = capacity.written_per_s * capacity.copies / capacity.nodes
    nodes = load.readings_per_s * assumed.copies / (of_node * (1.0 - assumed.headroom))
    formula = (
        f"{number(load.readings_per_s)} readings/s × {assumed.copies} copies ÷ ({number(of_node)} readings/s of a node × "
        f"{1.0 - assumed.headroom:.0%})"
    )
    return Step("nodes by writes", _whole(nodes), "nodes", formula)


def _by_reads(load: Load, capacity: Capacity, assumed: Assumptions) -> Step | None:
    """One copy answers."""
    if capacity.read_per_s is None or load.reads_per_s is None:
        return None
    of_node = capacity.read_per_s / capacity.nodes
    nodes = load.reads_per_s / (of_node * (1.0 - assumed.headroom))
    formula = f"{number(load.reads_per_s)} reads/s ÷ ({number(of_node)} reads/s of a node × {1.0 - assumed.headroom:.0%})"
    return Step("nodes by reads", _whole(nodes), "nodes", formula)


def _data(load: Load, capacity: Capacity, assumed: Assumptions) -> Step | None:
    """What all copies take, with the room that must stay free."""
    if capacity.bytes_of_copy is None or load.retention_s is None:
        return None
    value = capacity.bytes_of_copy * load.readings_per_s * load.retention_s * assumed.copies / assumed.fill
    formula = (
        f"{number(capacity.bytes_of_copy)} bytes per reading × {number(load.readings_per_s)} readings/s × "
        f"{number(load.retention_s / SECONDS_A_DAY)} days × {assumed.copies} copies ÷ {assumed.fill:.0%} filled"
    )
    return Step("memory for data" if capacity.in_memory else "disk", value, "bytes", formula)


def _by_data(load: Load, capacity: Capacity, assumed: Assumptions) -> Step | None:
    data = _data(load, capacity, assumed)
    if data is None:
        return None
    room = assumed.node_memory_bytes if capacity.in_memory else assumed.node_disk_bytes
    what = "memory" if capacity.in_memory else "disk"
    formula = f"{number(data.value / 1e9)} GB ÷ {number(room / 1e9)} GB of {what} of a node"
    return Step(f"nodes by {what}", _whole(data.value / room), "nodes", formula)


def number(value: float) -> str:
    """A number as people read it, without an exponent."""
    return f"{value:,.0f}" if value >= 1_000.0 else f"{value:.4g}"


def _whole(nodes: float) -> int:
    """The number of nodes by which the load fits; what is more than a whole number by a rounding error is none."""
    return math.ceil(nodes * (1.0 - 1e-9))


def _memory_a_node(load: Load, capacity: Capacity, assumed: Assumptions, nodes: int) -> Step | None:
    """All data of a node where they lie in memory; else what the server took as measured, and the data that are hot."""
    if capacity.in_memory:
        data = _data(load, capacity, assumed)
        formula = f"memory for data ÷ {nodes} nodes"
        return None if data is None else Step("memory of a node", data.value / nodes, "bytes", formula)
    if capacity.bytes_of_copy is None or capacity.memory_bytes is None:
        return None
    hot_s = min(assumed.hot_s, load.retention_s or assumed.hot_s)
    server = capacity.memory_bytes / capacity.nodes
    hot = capacity.bytes_of_copy * load.readings_per_s * hot_s * assumed.copies / nodes
    of_hours = f"{number(hot / 1e9)} GB of data of the last {number(hot_s / 3600.0)} hours"
    formula = f"{number(server / 1e9)} GB of the server as measured + {of_hours}"
    return Step("memory of a node", server + hot, "bytes", formula)


def _not_known(load: Load, capacity: Capacity) -> list[str]:
    """What the sizing leaves open, and why."""
    reasons = {
        "nodes by writes: no write was measured": capacity.written_per_s is None,
        "nodes by reads: the rate of reads is not given": load.reads_per_s is None,
        "nodes by reads: no read was measured": load.reads_per_s is not None and capacity.read_per_s is None,
        "disk: how long readings are kept is not said": load.retention_s is None,
        "disk: bytes per reading were not measured": load.retention_s is not None and capacity.bytes_of_copy is None,
        "memory of a node: that of the server was not measured": not capacity.in_memory and capacity.memory_bytes is None,
    }
    return [reason for reason, applies in reasons.items() if applies]


def described_assumptions(assumed: Assumptions, capacity: Capacity) -> list[str]:
    """What is assumed, in words."""
    nodes = f"{capacity.nodes} node{'s' * (capacity.nodes > 1)}"
    copies = f"{capacity.copies} cop{'ies' if capacity.copies > 1 else 'y'} of the data"
    disk, memory = f"{number(assumed.node_disk_bytes / 1e12)} TB", f"{number(assumed.node_memory_bytes / 1e9)} GB"
    return [
        f"Rates were measured on {nodes} with {copies}. That they add up over nodes is assumed, not measured; a database "
        "that does not share its data out itself needs an application that does.",
        f"Each reading is kept {assumed.copies} times (--replicas). Every copy is a write, and one copy answers a read.",
        f"{assumed.headroom:.0%} of the measured rates stay free (--headroom), for peaks, repairs and a node that fails.",
        f"At most {assumed.fill:.0%} of a disk are filled (--disk-fill), because compaction may need as much again; of "
        "memory, where all data are there.",
        f"A node has {disk} of disk (--node-disk) and {memory} of memory (--node-memory), and is otherwise like the machine "
        "of the measurement.",
        f"Data of the last {assumed.hot_s / 3600.0:g} hours are read often and are kept in memory, in addition to the server, whose own "
        "memory is as measured.",
        "Bytes a reading stay as they were at the size that was measured: of small data, what a database takes anyhow is a "
        "large part.",
    ]
