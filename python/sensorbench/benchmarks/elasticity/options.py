"""What can be chosen of changes of a cluster under load, and of the study of them."""

from sensorbench.benchmarks.elasticity.changes import KINDS
from sensorbench.options import DEFAULT_SEED, OptionModel, option
from sensorbench.runner import FILE_URL, SERVER_URL, Rate, Seconds, SecondsOrNone, StudyRunOptions

REQUESTS_OF_A_SET = 1667


class ElasticityOptions(OptionModel):
    """Clusters, the load on them, and what is done to them. Lengths are what the source did: about 10,000 requests of a set on six nodes,
    each set ten times; and as many measurements as show a level.
    """

    targets: tuple[str, ...] = option(
        ...,
        "A cluster: a database's name (the lab starts it), lab:NAME, or a URL. Several are measured interleaved, and compared.",
        "--target",
    )
    nodes: int | None = option(None, "Nodes at the start; the database's least if not given.", ge=1)
    changes: tuple[str, ...] = option(
        (),
        f"What is done to the cluster, as join:2 or kill:30s. {'. '.join(f'{kind}: {said}' for kind, said in KINDS.items())}. May be given "
        "several times, for one after the other. Without it as many nodes join as there are.",
        "--change",
    )
    dataset: str = option("wikipedia", "Articles: a dataset's name or folder.")
    scale: float = option(1.0, "The share of the dataset that is loaded.")
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
    no_growth: bool = option(False, "Data and load stay as they are when nodes have joined.")
    settings: tuple[str, ...] = option((), "A setting of the servers that the lab starts, KEY=VALUE.", "--server-setting")
    add_node_command: str | None = option(None, "Of a URL: the command that adds a node.")
    remove_node_command: str | None = option(None, "Of a URL: the command that takes a node out.")
    status_command: str | None = option(None, "Of a URL: a command that ends with 0 when no data are moving any more.")
    repetitions: int = option(1, "How many times each target is measured.", ge=1)
    seed: int = option(DEFAULT_SEED, "From which all requests follow.", ge=0)


class ElasticityStudyOptions(StudyRunOptions):
    """What a user may change; the study decides where nothing is said."""

    targets: tuple[str, ...] = option(
        (),
        f"A system of the study, a database's name, or a URL ({FILE_URL}, {SERVER_URL}). May be given several times.",
        "--target",
    )
    dataset: str | None = option(None, "A dataset's name, or the folder of an imported one.")
    operations: int | None = option(None, "Requests of a set that each thread issues.", ge=1)
    rate: Rate | None = option(None, "Requests per second that come whether or not others are answered (an open loop).")

    def with_study(self, targets: tuple[str, ...], changes: tuple[str, ...], dataset: str, repetitions: int) -> ElasticityOptions:
        """What is done in all: as the study has it where the user has said nothing."""
        return ElasticityOptions(
            targets=self.targets or targets,
            changes=changes,
            dataset=self.dataset or dataset,
            scale=self.scale,
            requests=self.operations or REQUESTS_OF_A_SET,
            rate=self.rate,
            repetitions=self.repetitions or repetitions,
            seed=self.seed,
        )
