"""What the lab knows of its servers while they work, beyond what they tell a client."""

import contextlib
import os
from pathlib import Path

from sensorbench.lab.instance import Instance, Node
from sensorbench.lab.registry import LAB_SERVERS

# What `st_blocks` counts in, whatever the blocks of the file system are.
_BLOCK_BYTES = 512


def node_prefix(instance: Instance, node: Node) -> str:
    """What the names of a node's figures begin with: its address where there are several, as they do in `Target.status`."""
    return f"{node.host}." if len(instance.all_processes) > 1 else ""


def insight(instance: Instance, node: Node) -> dict[str, float]:
    """Counters and gauges of a node, or of the coordinator; nothing of one that is down. `lab.disk_bytes` is what the node's folder of data
    takes on disk; `lab.load_average` is that of the machine over the last minute, which all processes on it share.
    """
    if node.find() is None:
        return {}
    own = LAB_SERVERS[instance.database].insight(instance, node)
    disk_bytes = float(_bytes_on_disk(instance.data_folder(node)))
    return {**own, "lab.disk_bytes": disk_bytes, "lab.load_average": os.getloadavg()[0]}


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
