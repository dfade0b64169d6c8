"""The servers of the study: databases, and Spark beside them; those that grow get as many nodes as Spark has workers."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from sensorbench import lab
from sensorbench.benchmarks.mapreduce.spec import MapReduceSpec
from sensorbench.lab.hdfs import Hdfs
from sensorbench.lab.spark import Spark
from sensorbench.progress import ProgressReporter
from sensorbench.results.described import DescribedSpark
from sensorbench.results.insight import said_now
from sensorbench.results.mapreduce import NodeShare, Placement
from sensorbench.runner import Servers, TargetSpec, Variant, check_memory, running_servers
from sensorbench.spark import hdfs
from sensorbench.spark.connector import FILES, connector_of
from sensorbench.spark.session import Master, lab_master
from sensorbench.wording import counted

PARTS, BYTES = "data_parts", "table_bytes"


@dataclass(frozen=True)
class ServersAndSpark(Servers):
    """The servers that are up, Spark, and what results say of it.

    Args:
        master: of the applications over systems that have no Spark of their own.
        spark: what results say of it.
        spark_instance: its name in the lab, where the lab started it.
        beside: Spark that has the addresses of the nodes of a database or of HDFS, as an instance of the lab, by that server, or FILES.

    """

    master: Master | None
    spark: DescribedSpark
    spark_instance: str | None = None
    beside: dict[str, str] = field(default_factory=dict)

    def master_for(self, variant: Variant | None) -> Master:
        """The master of the applications over a system; None: over files."""
        name = self.beside.get(variant.target.server if variant else FILES)
        if name is not None:
            return lab_master(lab.find_instance(name))
        if self.master is None:
            raise AssertionError("systems without Spark at their nodes share one")
        return self.master

    def processes(self) -> dict[str, lab.WatchedProcess]:
        """The processes of all servers that are up, by name; of Spark those that the lab started."""
        names = filter(None, [self.spark_instance, *self.beside.values()])
        found = super().processes()
        for name in names:
            found |= lab.server_processes(lab.find_instance(name))
        return found

    @property
    def hdfs(self) -> lab.Instance | None:
        """HDFS as it is now, where files lie there."""
        return self.instances.get(FILES)


def with_servers(servers: Servers) -> ServersAndSpark:
    """The same servers, which have Spark beside them."""
    if not isinstance(servers, ServersAndSpark):
        raise AssertionError("Spark is among the servers of this benchmark")
    return servers


def can_grow(target: TargetSpec) -> bool:
    """Whether the lab can give a target more nodes: it starts it for this run, one node is enough, and others can join."""
    return (
        target.place == "started"
        and target.database.name in lab.clusters()
        and lab.LAB_DATABASES[target.database.name].nodes == 1
    )


def why_files_are_local(spec: MapReduceSpec) -> str | None:
    """Why files lie in a folder of this machine, in words; None if they lie on HDFS, which grows."""
    if not spec.grows:
        return "without --nodes nothing grows"
    if spec.spark is not None:
        return "the lab starts HDFS together with its own Spark only"
    (source,) = Hdfs.sources
    return None if source.is_there else source.missing()


def why_fixed(target: TargetSpec) -> str | None:
    """Why a target does not grow, in words; None if it does."""
    if can_grow(target):
        return None
    if target.place != "started":
        return "it is not the lab that starts it for this study, and nothing is done to clusters of others"
    return f"{target.database.name} is one server, which nothing can join"


def starting_with(targets: Sequence[TargetSpec], nodes: int) -> list[TargetSpec]:
    """The targets, of which those that grow begin with this many nodes."""
    return [replace(target, nodes=nodes) if can_grow(target) else target for target in targets]


@contextmanager
def servers_and_spark(
    spec: MapReduceSpec, variants: Sequence[Variant], master: Master | None, first: int, progress: ProgressReporter
) -> Iterator[ServersAndSpark]:
    """All servers up, with this many workers at first where databases grow, else with the most. Those that are started here end with the context.

    Raises UsageError and FailedError.
    """
    if spec.grows:
        _check_memory(variants, max(spec.workers))
    with ExitStack() as stack:
        started = stack.enter_context(running_servers(list(variants), progress, pin=False))
        if master is not None:
            yield ServersAndSpark(started.instances, master, {"url": master.url, "started": False})
            return
        workers = first if spec.grows else max(spec.workers)
        if spec.with_files and why_files_are_local(spec) is None:
            started.instances[FILES] = _start_hdfs(stack, workers, progress)
        local = [FILES, *(variant.target.server for variant in variants if spec.grows and _is_local(variant.target))]
        beside = {
            server: _start_spark(stack, spec, workers, progress, started.instances[server].name).name
            for server in local
            if server in started.instances
        }
        shared = None
        if len(beside) < len(variants) + spec.with_files:
            shared = _start_spark(stack, spec, workers, progress)
        described = _described_spark(spec, shared or lab.find_instance(next(iter(beside.values()))))
        yield ServersAndSpark(
            started.instances, lab_master(shared) if shared else None, described, shared.name if shared else None, beside
        )


def _is_local(target: TargetSpec) -> bool:
    """Whether a worker at a node of a target's reads what lies there: where it grows on this machine, and its connector says where splits lie."""
    connector = connector_of(target.database.name)
    return can_grow(target) and target.hosts is None and connector is not None and connector.names_nodes


def _start_hdfs(stack: ExitStack, nodes: int, progress: ProgressReporter) -> lab.Instance:
    with progress.task(f"starting {Hdfs.name}") as task:
        instance = stack.enter_context(lab.borrowed(lab.ServerSpec(Hdfs.name, nodes=nodes, stays=False)))
        task.end(f"{instance.version}, {counted(len(instance.nodes), 'data node')}")
    return instance


def _check_memory(variants: Sequence[Variant], nodes: int) -> None:
    """Raises UsageError if the largest clusters would not fit into the memory of this machine, even without data."""
    growing = [variant.target for variant in variants if can_grow(variant.target)]
    check_memory(
        {
            f"{target.label} with {counted(nodes, 'node')}": lab.ServerSpec(
                target.database.name, nodes=nodes, settings=dict(target.server_settings), hosts=target.hosts
            )
            for target in growing
        }
    )


def _start_spark(
    stack: ExitStack, spec: MapReduceSpec, workers: int, progress: ProgressReporter, beside: str | None = None
) -> lab.Instance:
    """A master with workers, at addresses of their own or at those of the nodes of an instance."""
    place = f" at the nodes of {beside}" if beside else ""
    with progress.task(f"starting {Spark.name}{place}") as task:
        wanted = lab.ServerSpec(Spark.name, nodes=workers, settings=_resources(spec), stays=False, beside=beside)
        instance = stack.enter_context(lab.borrowed(wanted))
        task.end(f"{instance.version}, {counted(len(instance.nodes), 'worker')}")
    return instance


def _resources(spec: MapReduceSpec) -> dict[str, str]:
    return {"worker.cores": str(spec.cores), "worker.memory": spec.memory}


def _described_spark(spec: MapReduceSpec, instance: lab.Instance) -> DescribedSpark:
    return {"version": instance.version, "nodes": max(spec.workers), "settings": _resources(spec), "started": True}


def grow(
    variants: Sequence[Variant],
    servers: ServersAndSpark,
    nodes: int,
    settle: Callable[[Variant], None],
    progress: ProgressReporter,
) -> list[Placement]:
    """Gives each database that can grow, and Spark, this many nodes, and says where the data lie then.

    Nodes join one after the other. A database is ready when its data are where they belong, what has moved is gone from where it was, and
    all of that has settled. Raises FailedError and EngineError.
    """
    growing = [variant for variant in variants if can_grow(variant.target)]
    placements = [_grow_database(variant, servers, nodes, settle, progress) for variant in growing]
    for name in filter(None, [*servers.beside.values(), servers.spark_instance]):
        _add_nodes(name, nodes)
    return placements


def _grow_database(
    variant: Variant, servers: ServersAndSpark, nodes: int, settle: Callable[[Variant], None], progress: ProgressReporter
) -> Placement:
    server = variant.target.server

    def fill(instance: lab.Instance, missing: int) -> dict[str, NodeShare]:
        lab.balance(instance.name)
        if missing > 0:
            lab.drop_moved(instance.name)
        (at,) = servers.at_their_urls([variant])
        settle(at)
        return _shares(at, instance)

    return _grown(variant.target.label, servers, server, nodes, fill, progress)


def grow_hdfs(
    servers: ServersAndSpark, nodes: int, folder: str, files: Sequence[Path], progress: ProgressReporter
) -> Placement | None:
    """Gives HDFS this many data nodes, and writes files there again, as many on each; None if files do not lie there. There must be a driver
    of Spark. Raises FailedError.
    """
    if servers.hdfs is None:
        return None

    def fill(instance: lab.Instance, missing: int) -> dict[str, NodeShare]:
        del missing
        hdfs.put(instance, folder, files)
        return {node: NodeShare(parts=of.blocks, bytes=of.bytes) for node, of in hdfs.held(instance, folder).items()}

    return _grown(FILES, servers, FILES, nodes, fill, progress)


def _grown(
    system: str,
    servers: ServersAndSpark,
    server: str,
    nodes: int,
    fill: Callable[[lab.Instance, int], dict[str, NodeShare]],
    progress: ProgressReporter,
) -> Placement:
    """Gives one system this many nodes. `fill` has the data go where they belong, is called with how many nodes have joined, and says what each then holds."""
    name = servers.instances[server].name
    begun_s, missing = time.monotonic(), nodes - len(servers.instances[server].nodes)
    with progress.task(f"{system}: {counted(nodes, 'node')}") as task:
        _add_nodes(name, nodes)
        servers.instances[server] = lab.find_instance(name)
        shares = fill(servers.instances[server], missing)
        placement = Placement(
            system=system,
            nodes=nodes,
            how="grown" if missing > 0 else "started",
            took_s=time.monotonic() - begun_s if missing > 0 else None,
            shares=shares,
        )
        task.end(_said(placement))
    return placement


def _add_nodes(name: str, nodes: int) -> None:
    """One node after the other, until there are this many."""
    for _ in range(nodes - len(lab.find_instance(name).nodes)):
        lab.add_node(name)


def _shares(variant: Variant, instance: lab.Instance) -> dict[str, NodeShare]:
    """What each node says that it holds."""
    status: dict[str, float] = json.loads(variant.engine_target().status())
    for node in instance.nodes:
        status |= {f"{node.host}.{name}": value for name, value in lab.insight(instance, node).items()}
    said = said_now(status, instance.database)
    if len(instance.nodes) == 1:
        # A single node has no address before its names in what the driver says.
        host = instance.nodes[0].host
        said = {host: {**said.get("", {}), **said.get(host, {})}}
    return {node.host: _share(said.get(node.host, {})) for node in instance.nodes}


def _share(said: Mapping[str, float]) -> NodeShare:
    return NodeShare(
        parts=round(said[PARTS]) if PARTS in said else None,
        bytes=round(said[BYTES]) if BYTES in said else None,
    )


def _said(placement: Placement) -> str:
    held = [share.bytes for share in placement.shares.values()]
    parts = [share.parts for share in placement.shares.values()]
    sizes = ", ".join("?" if size is None else f"{size / 1e6:.1f} MB" for size in held)
    counts = ", ".join("?" if count is None else str(count) for count in parts)
    return f"{sizes}; parts: {counts}"
