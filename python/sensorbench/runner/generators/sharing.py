"""Which load generators a benchmark has; and what they cannot share, said before anything is started."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sensorbench import lab
from sensorbench.errors import UsageError
from sensorbench.hosts.pool import HostPool
from sensorbench.progress import ProgressReporter
from sensorbench.results.engine_plan import OperationsPlan
from sensorbench.runner.generators.hosted import ClockedHost
from sensorbench.runner.generators.options import MAX_GENERATORS, GeneratorOptions
from sensorbench.runner.registered import Database
from sensorbench.runner.variants import Variant
from sensorbench.runner.write_batches import why_one_writer


@dataclass(frozen=True)
class LoadGenerators:
    """How many load generators share each run, and the hosts that they are on: without hosts they are processes of this machine, and a single one is
    this process.
    """

    count: int = 1
    hosts: HostPool | None = field(default=None, compare=False)

    @property
    def share_runs(self) -> bool:
        """Whether runs are shared, be it by one on another host."""
        return self.count > 1 or self.hosts is not None

    @property
    def are_here(self) -> bool:
        """Whether all of them read the files of this machine."""
        return self.hosts is None or self.hosts.chosen.are_here

    @property
    def host_names(self) -> list[str]:
        """The hosts, as the user named them, for manifests; none where they are processes of this machine."""
        return [] if self.hosts is None else self.hosts.chosen.names

    @property
    def on(self) -> Sequence[ClockedHost]:
        """The hosts, which have been reached."""
        return [] if self.hosts is None else self.hosts.of_role("load generator")


# What every run has where nothing is said.
ALONE: LoadGenerators = LoadGenerators()


def load_generators(options: GeneratorOptions, progress: ProgressReporter) -> LoadGenerators:
    """The load generators that options ask for. No host is reached. Raises UsageError."""
    if options.hosts is None:
        return LoadGenerators(options.generators or 1)
    chosen = lab.chosen_hosts(options.hosts)
    hosts = [entry for entry in chosen.file.host if "load generator" in entry.roles]
    if chosen.file.host and not hosts:
        raise UsageError(f'--hosts {options.hosts}: no host has the role "load generator"; add it to the roles of one')
    if options.generators is None and not hosts:
        raise UsageError(
            f"--hosts {options.hosts}: how many workers it has is not known before; say with --generators how many load generators to use"
        )
    count = options.generators or len(hosts)
    if count > MAX_GENERATORS:
        raise UsageError(
            f"--hosts {options.hosts}: {count} load generators; expected at most {MAX_GENERATORS}, which --generators says"
        )
    return LoadGenerators(count, HostPool(chosen, progress))


def check_can_share(generators: LoadGenerators, concurrency: int, databases: Iterable[Database]) -> None:
    """Raises UsageError if load generators cannot share a load."""
    if not generators.share_runs:
        return
    said = _said(generators)
    for database in databases:
        if not database.many_processes:
            raise UsageError(
                f"{said}: {database.name} lives in the process of the client, and no other may use its data meanwhile; "
                "expected a database that several processes may use"
            )
        # What has tables within a process has them in files.
        if generators.hosts is not None and not generators.hosts.chosen.are_here and database.embedded and database.relational:
            raise UsageError(f"{said}: {database.name} lies in a file of this machine; expected a server that all hosts reach")
    if generators.count > concurrency:
        raise UsageError(
            f"{said}: there are at most {concurrency} requests in flight, and each load generator needs one; "
            f"expected --concurrency of {generators.count} or more, or fewer load generators"
        )


def check_can_share_operations(generators: LoadGenerators, plan: OperationsPlan) -> None:
    """Raises UsageError if operations read what the run itself writes: no load generator knows how far the others are."""
    if generators.share_runs and any(_reads_what_is_written(source) for source in plan.get("parameter_sources", [])):
        raise UsageError(
            f"{_said(generators)}: operations of this mix choose among what the run itself writes, and no load generator knows how far the "
            "others are; leave out those operations, or the load generators"
        )


def why_undivided_by(generators: LoadGenerators, variant: Variant) -> str | None:
    """Why load generators do not share the load of a variant, in a sentence; None if they do, or there is one."""
    if generators.count == 1:
        return None
    target = variant.target
    if target.database.embedded or (variant.batches is None and not target.loader):
        why = why_one_writer(target, variant.schema)
    elif variant.batches is not None:
        why = "its batches are sent by writers of its own"
    else:
        why = f"{target.loader} is one process, and makes whole files"
    return why and f"{variant.id} is loaded by one process, not by {generators.count} load generators, because {why}"


def _said(generators: LoadGenerators) -> str:
    """The option that asks for them."""
    return f"--generators {generators.count}" if generators.hosts is None else f"--hosts {generators.hosts.chosen.text}"


def _reads_what_is_written(source: object) -> bool:
    if not isinstance(source, dict):
        return False
    records = source.get("records") or {}
    return "written" in source or records.get("grown") is not None
