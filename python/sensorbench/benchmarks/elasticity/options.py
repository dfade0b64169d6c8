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
        "Cluster to test: a database name (the lab starts it), lab:NAME, or a URL. Several clusters are measured interleaved and compared.",
        "--target",
    )
    nodes: int | None = option(None, "Nodes at the start; the database's minimum if not given.", ge=1)
    changes: tuple[str, ...] = option(
        (),
        f"Change of the cluster, such as join:2 or kill:30s. {'. '.join(f'{kind}: {said}' for kind, said in KINDS.items())}. May be given "
        "several times, for one change after another. If not given, the number of nodes is doubled.",
        "--change",
    )
    dataset: str = option("wikipedia", "Articles to load: name or folder of a dataset.")
    scale: float = option(1.0, "Share of the dataset to load.")
    copies: int = option(1, "Number of copies of the articles to load, each with new ids.", ge=1)
    schema_: str = option("by_id", "Schema for the articles.", "--schema")
    requests: int = option(REQUESTS_OF_A_SET, "Requests per thread in each set.", ge=1)
    threads_per_node: int = option(1, "Threads per node at the start.", ge=1)
    executions: int = option(10, "Sets per measurement.", ge=1)
    rate: float | None = option(None, "Open loop at this rate: requests per second per node at the start.", ge=0.001)
    warmup: SecondsOrNone = option("30s", "Warm-up before measurements count; 0 for none.")
    before: int = option(20, "Measurements before the change.", ge=2)
    after: int = option(20, "Stable measurements required at the end.", ge=10)
    at_most: Seconds = option("30m", "How long to wait for stability after the change.")
    timeout: Seconds = option("10s", "Time limit of a request.")
    generators: int = option(
        1,
        "Number of load generators that share the requests: on --hosts if given, else processes of this machine. More than one measure "
        "without registers, so that lost writes and stale reads are not detected.",
        ge=1,
        le=MAX_GENERATORS,
    )
    no_growth: bool = option(False, "Keep data and load unchanged after nodes have joined.")
    settings: tuple[str, ...] = option((), "Setting of the servers that the lab starts: KEY=VALUE.", "--server-setting")
    add_node_command: str | None = option(None, "For a URL: command that adds a node.")
    remove_node_command: str | None = option(None, "For a URL: command that removes a node.")
    node_memory: Annotated[int | None, parsed(_node_memory)] = option(
        None, "For a URL: memory of a node, such as 2G. Claims about data larger than memory need it."
    )
    status_command: str | None = option(None, "For a URL: command that exits with 0 when no data are moving.")
    repetitions: int = option(1, "Repetitions of each target.", ge=1)
    seed: int = option(DEFAULT_SEED, "Seed of all requests.", ge=0)


class ElasticityStudyOptions(RepetitionOptions, HostOptions, ServerMemoryOptions):
    """What a user may change; the study decides where nothing is said."""

    scale: float | None = option(None, "Share of the dataset to use. If not given, --budget chooses it, else all is used.")
    budget: Seconds | None = option(
        None,
        "Choose scale and number of requests so that the parts end in this time: 60m. Parts that do not fit are left for --resume.",
    )
    targets: tuple[str, ...] = option(
        (),
        f"A system of the study, a database's name, or a URL ({FILE_URL}, {SERVER_URL}). May be given several times.",
        "--target",
    )
    scenarios: tuple[str, ...] = option((), "Run only the scenario of this name. May be given several times.", "--scenario")
    nodes: int | None = option(None, "Nodes of each cluster at the start; the same number joins.", ge=1)
    dataset: str | None = option(None, "Name of a dataset, or folder of an imported one.")
    copies: int | None = option(None, "Number of copies of the articles to load, each with new ids.", ge=1)
    operations: int | None = option(None, "Requests per thread in each set.", ge=1)
    executions: int | None = option(None, "Sets per measurement.", ge=1)
    measurements: int | None = option(None, "Measurements before a change, and after the cluster is stable again.", ge=10)
    warmup: SecondsOrNone | None = option(None, "Warm-up before measurements count; 0 for none, 30 s if not given.")
    rate: Rate | None = option(None, "Open loop at this rate: requests per second, whether or not earlier ones are answered.")

    @property
    def used_scale(self) -> float:
        """Share of the dataset that is used: all of it, if nothing is said."""
        return 1.0 if self.scale is None else self.scale
