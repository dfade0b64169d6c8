"""What is asked of a work on elasticity."""

from collections.abc import Sequence
from dataclasses import dataclass

from sensorbench import lab
from sensorbench.benchmarks.elasticity.changes import Change
from sensorbench.benchmarks.elasticity.scenario import Lengths
from sensorbench.dataset import Dataset
from sensorbench.runner import READ as READ_REGISTER
from sensorbench.runner import WRITE as WRITE_REGISTER
from sensorbench.runner import TargetSpec

# One request of the study: an article is read, and with 20% a character is appended to it.
REQUESTS = {"read_article": 80.0, "append_character": 20.0}
# Beside a hundred requests this many operations on registers, whose history says whether anything was lost or stale.
REGISTERS = {WRITE_REGISTER: 5.0, READ_REGISTER: 5.0}

# Where a node holds fewer parts of the data, one part more or less makes it a hot one, or one with nothing to do.
MIN_PARTS = 8


@dataclass(frozen=True)
class Load:
    """Requests come from `threads_per_node` threads for each node that there is when the transition begins, each issuing
    `requests_per_thread` of a set; `executions` sets are one measurement. With `rate_per_node` they come in an open loop at that rate
    (requests per second), and a set takes what the threads would take for it.
    """

    requests_per_thread: int
    threads_per_node: int
    executions: int
    rate_per_node: float | None
    timeout_s: float

    def requests_per_set(self, threads: int) -> int:
        """How many requests a set has."""
        return self.requests_per_thread * threads


@dataclass(frozen=True)
class ExternalCommands:
    """How a user's own cluster is changed; `nodes`: how many it has at the start."""

    nodes: int
    add: str | None
    remove: str | None
    status: str | None


@dataclass(frozen=True)
class ElasticitySpec:
    """A cluster with data, a load, and the changes that are made to it one after the other. With `grows`, data and load are doubled, in
    the proportion of the nodes, between changes after which there are more nodes.
    """

    target: TargetSpec
    schema: str
    dataset: Dataset
    load: Load
    changes: Sequence[Change]
    lengths: Lengths
    grows: bool
    seed: int
    # How many nodes there are at the start.
    nodes: int
    commands: ExternalCommands | None = None
    # How often the dataset is loaded at the start, each time under new ids.
    copies: int = 1
    # Of all nodes at the start together, where the lab starts them; of one node of a user's cluster, as the user says.
    memory_bytes: int | None = None
    user_node_bytes: int | None = None
    # Whether what an earlier work of ours left at the target is replaced, and what this one created is removed when it is complete.
    replace: bool = False
    # Load generators, on these hosts if any are named.
    generators: int = 1
    hosts: str | None = None
    drop_after: bool = False

    @property
    def node_memory_bytes(self) -> int | None:
        """The memory of one of the nodes that there are at the start; None if it is not limited, and not known."""
        return self.user_node_bytes if self.memory_bytes is None else self.memory_bytes // self.nodes

    @property
    def node_idle_bytes(self) -> int | None:
        """What the processes of a node that the lab starts take, apart from data; None if it is not known."""
        if self.target.place != "started":
            return None
        settings = dict(self.target.server_settings)
        all_nodes = lab.min_memory(
            lab.ServerSpec(
                self.target.database.name,
                nodes=self.nodes,
                settings=settings,
                memory_bytes=self.memory_bytes,
                fits_memory=True,
            )
        )
        return None if all_nodes is None else all_nodes // self.nodes

    def copies_on(self, nodes: int) -> int:
        """How often the dataset is there under a load of this many nodes."""
        return self.copies * max(1, -(-nodes // self.nodes)) if self.grows else self.copies

    @property
    def borders(self) -> list[int]:
        """Where parts of a table of articles begin, but for the first: ids such that each node has MIN_PARTS parts at least, whatever joins,
        of articles that are there then.
        """
        rows, nodes, per_copy, copies = self.dataset.describe().readings, self.nodes, 1, self.copies
        for change in self.changes:
            copies = max(copies, self.copies_on(nodes))
            per_copy = max(per_copy, -(-MIN_PARTS * max(nodes, nodes + change.grows_by) // self.copies_on(nodes)))
            nodes += change.grows_by
        starts = [1 + copy * rows + part * rows // per_copy for copy in range(copies) for part in range(per_copy)]
        return sorted(set(starts))[1:]

    @property
    def mix(self) -> dict[str, float]:
        """Weights of all operations. Which registers were written, several load generators do not know of one another."""
        return {**REQUESTS, **REGISTERS} if self.generators == 1 else REQUESTS

    @property
    def operations_per_request(self) -> float:
        """How many operations there are for each request: itself, and its share of those on registers."""
        return sum(self.mix.values()) / sum(REQUESTS.values())
