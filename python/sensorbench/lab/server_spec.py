"""What is to be started by the lab."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class ServerSpec:
    """What is to be started."""

    database: str
    name: str | None = None
    version: str | None = None
    nodes: int | None = None
    replicas: int = 0
    settings: dict[str, str] = field(default_factory=dict)
    cpus: list[int] | None = None
    # Of all nodes together.
    memory_bytes: int | None = None
    # Whether caches and heaps are set such that they fit into `memory_bytes`, where `settings` says nothing else.
    fits_memory: bool = False
    # Whether it keeps running when the process that started it ends.
    stays: bool = True
    # The name of another instance whose nodes' addresses it shares, node by node: what computes there is local to the data.
    beside: str | None = None
    # The name of an instance that was kept (`lab.keep`): its nodes' addresses and data are those of the new ones, which are set otherwise.
    data_of: str | None = None
    # Where its nodes are placed, in the words of `--hosts`; on this machine if None.
    hosts: str | None = None
