"""What can be chosen of changes of a cluster under load, and of the study of them."""

from typing import Annotated

from sensorbench.benchmarks.elasticity.changes import KINDS
from sensorbench.lab import parse_memory
from sensorbench.options import DEFAULT_SEED, option, parsed
from sensorbench.runner import (
    FILE_URL,
    MAX_GENERATORS,
    SERVER_URL,
    HostOptions,
    Rate,
    RepetitionOptions,
    Seconds,
    SecondsOrNone,
    ServerMemoryOptions,
)

REQUESTS_OF_A_SET = 1667


def _node_memory(text: str) -> int:
    return parse_memory(text, "--node-memory")


class ElasticityOptions(HostOptions, ServerMemoryOptions):
    """Clusters, the load on them, and what is done to them. Lengths are what the source did: about 10,000 requests of a set on six nodes,
    each set ten times; and as many measurements as show a level.
    """

    targets: tuple[str, ...] = option(
        ...,
        "A cluster: a database's name (the lab starts it), lab:NAME, or a URL. Several are measured interleaved, and compared.",
        "--target",
    )
    nodes: int | None = option(None, "Nodes at the start; the fewest that the database can have if not given.", ge=1)
    changes: tuple[str, ...] = option(
        (),
        f"What is done to the cluster, as join:2 or kill:30s. {'. '.join(f'{kind}: {said}' for kind, said in KINDS.items())}. May be given "
        "several times, for one after the other. Without it as many nodes join as there are.",
        "--change",
    )
    dataset: str = option("wikipedia", "Articles: a dataset's name or folder.")
    scale: float = option(1.0, "The share of the dataset that is loaded.")
    copies: int = option(1, "How often the articles are loaded at the start, each time under new ids.", ge=1)
    schema_: str = option("by_id", "A schema of articles for the database.", "--schema")
    requests: int = option(REQUESTS_OF_A_SET, "Requests of a set that each thread issues.", ge=1)
    threads_per_node: int = option(1, "Threads for each node at the start.", ge=1)
    executions: int = option(10, "Sets that are one measurement.", ge=1)
    rate: float | None = option(None, "An open loop: requests per second for each node at the start.", ge=0.001)
    warmup: SecondsOrNone = option("30s", "How long the load is held before measurements count; 0 for none.")
    before: int = option(20, "Measurements before the change.", ge=2)
    after: int = option(20, "Measurements that must have been stable at the end.", ge=10)
    at_most: Seconds = option("30m", "How long stability is waited for when the change is done.")
    timeout: Seconds = option("10s", "How long a request may take.")
    generators: int = option(
        1,
        "Load generators that share the requests: on the hosts if --hosts names some, else processes of this machine. With more than one there are "
        "no registers, so that what is lost or stale is not seen.",
        ge=1,
        le=MAX_GENERATORS,
    )
    no_growth: bool = option(False, "Data and load stay as they are when nodes have joined.")
    settings: tuple[str, ...] = option((), "A setting of the servers that the lab starts, KEY=VALUE.", "--server-setting")
    add_node_command: str | None = option(None, "Of a URL: the command that adds a node.")
    remove_node_command: str | None = option(None, "Of a URL: the command that takes a node out.")
    node_memory: Annotated[int | None, parsed(_node_memory)] = option(
        None, "Of a URL: the memory of a node, such as 2G. Claims about data beyond memory need it."
    )
    status_command: str | None = option(None, "Of a URL: a command that ends with 0 when no data are moving any more.")
    repetitions: int = option(1, "How many times each target is measured.", ge=1)
    seed: int = option(DEFAULT_SEED, "From which all requests follow.", ge=0)


class ElasticityStudyOptions(RepetitionOptions, HostOptions, ServerMemoryOptions):
    """What a user may change; the study decides where nothing is said."""

    scale: float | None = option(None, "Share of the dataset that is used. Without it, --budget chooses, or it is all.")
    budget: Seconds | None = option(
        None,
        "Choose scale and number of requests by arithmetic so that the parts end in this time: 60m. Those that do not fit are left for --resume.",
    )
    targets: tuple[str, ...] = option(
        (),
        f"A system of the study, a database's name, or a URL ({FILE_URL}, {SERVER_URL}). May be given several times.",
        "--target",
    )
    scenarios: tuple[str, ...] = option(
        (), "Only what is done to clusters under this name. May be given several times.", "--scenario"
    )
    nodes: int | None = option(None, "Nodes of each cluster at the start; as many join.", ge=1)
    dataset: str | None = option(None, "A dataset's name, or the folder of an imported one.")
    copies: int | None = option(None, "How often the articles are loaded at the start, each time under new ids.", ge=1)
    operations: int | None = option(None, "Requests of a set that each thread issues.", ge=1)
    executions: int | None = option(None, "Sets that are one measurement.", ge=1)
    measurements: int | None = option(None, "Measurements before a change, and after the cluster is stable again.", ge=10)
    warmup: SecondsOrNone | None = option(
        None, "How long the load is held before measurements count; 0 for none. 30 s if not given."
    )
    rate: Rate | None = option(None, "Requests per second that come whether or not others are answered (an open loop).")

    @property
    def used_scale(self) -> float:
        """Share of the dataset that is used: all of it, if nothing is said."""
        return 1.0 if self.scale is None else self.scale
