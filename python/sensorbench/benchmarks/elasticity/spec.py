"""What is asked of a work on elasticity."""

from collections.abc import Sequence
from dataclasses import dataclass

from sensorbench.benchmarks.elasticity.changes import Change
from sensorbench.benchmarks.elasticity.scenario import Lengths
from sensorbench.dataset import Dataset
from sensorbench.runner import READ as READ_REGISTER
from sensorbench.runner import WRITE as WRITE_REGISTER
from sensorbench.runner import TargetSpec

# One request of the study: an article is read, and with 20 % a character is appended to it.
REQUESTS = {"read_article": 80.0, "append_character": 20.0}
# Beside a hundred requests so many operations on registers, whose history says whether anything was lost or stale.
REGISTERS = {WRITE_REGISTER: 5.0, READ_REGISTER: 5.0}


@dataclass(frozen=True)
class Load:
    """Requests come from `threads_per_node` threads for each node that there is when the transition begins, each issuing
    `requests_per_thread` of a set; `executions` sets are one measurement. With `rate_per_node` they come in an open loop at that rate
    (requests a second), and a set takes what the threads would take for it.
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
    commands: ExternalCommands | None = None
    # Whether what an earlier work of ours left at the target is replaced, and what this one created is removed when it is complete.
    replace: bool = False
    drop_after: bool = False

    @property
    def mix(self) -> dict[str, float]:
        """Weights of all operations."""
        return {**REQUESTS, **REGISTERS}

    @property
    def operations_per_request(self) -> float:
        """How many operations there are for each request: itself, and its share of those on registers."""
        return sum(self.mix.values()) / sum(REQUESTS.values())
