"""What the lab knows of its servers while they work, beyond what they tell a client."""

import contextlib
import os
from pathlib import Path

from sensorbench.lab.instance import Instance, Node
from sensorbench.lab.registry import LAB_SERVERS

# What `st_blocks` counts in, whatever the blocks of the file system are.
_BLOCK_BYTES = 512


def insight(instance: Instance) -> dict[str, float]:
    """Counters and gauges of each node that runs, and of the coordinator; names begin with its address where there are several, as they do in
    `Target.status`. `lab.disk_bytes` is what the node's folder of data takes on disk.
    """
    told: dict[str, float] = {}
    for node in instance.all_processes:
        told |= {f"{node_prefix(instance, node)}{name}": value for name, value in _of_node(instance, node).items()}
    return told


def node_prefix(instance: Instance, node: Node) -> str:
    """What the names of a node's figures begin with."""
    return f"{node.host}." if len(instance.all_processes) > 1 else ""


def _of_node(instance: Instance, node: Node) -> dict[str, float]:
    if node.find() is None:
        return {}
    own = LAB_SERVERS[instance.database].insight(instance, node)
    return {**own, "lab.disk_bytes": float(_bytes_on_disk(instance.data_folder(node)))}


def _bytes_on_disk(folder: Path) -> int:
    """Blocks of all files below a folder; those that go meanwhile are left out."""
    total = 0
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):
                if entry.is_dir(follow_symlinks=False):
                    total += _bytes_on_disk(Path(entry))
                else:
                    total += entry.stat(follow_symlinks=False).st_blocks * _BLOCK_BYTES
    return total
