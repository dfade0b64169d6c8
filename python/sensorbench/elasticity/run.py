"""The work on elasticity: load, then one run for each change of the cluster, data and load growing with it."""

from dataclasses import asdict
from pathlib import Path

from sensorbench import __version__, lab
from sensorbench.elasticity import troubles
from sensorbench.elasticity.bench import Bench
from sensorbench.elasticity.changes import Change, carry_out, check_can
from sensorbench.elasticity.clusters import Cluster, LabNodes, OwnNodes
from sensorbench.elasticity.course import Course
from sensorbench.elasticity.wish import OwnCommands, Wish
from sensorbench.errors import UsageError
from sensorbench.experiment.ending import written_down
from sensorbench.experiment.servers import Servers, servers
from sensorbench.lifecycle.command import command_line
from sensorbench.places import check_is_free
from sensorbench.progress import Teller
from sensorbench.results.elasticity import ElasticityResult, ElasticityWriter, read_elasticity
from sensorbench.results.environment import environment
from sensorbench.results.manifest import ElasticityManifest, Process, now
from sensorbench.results.ownership import Owner, new_id


def run_elasticity(wish: Wish, folder: Path, teller: Teller) -> ElasticityResult:
    """Carries out the changes of a wish, one after the other, into `folder`.

    Raises UsageError before anything is written; FailedError, InterruptedRunError and DiskFullError after what was done until then is on
    disk.
    """
    check_is_free(folder)
    troubles.heal()
    bench = Bench(wish, folder)
    if wish.commands is not None:
        # What can be said without asking the cluster is said first.
        _check(wish, _own_nodes(wish, wish.commands))
    # Nodes that share a machine with the client come and go: none has processors of its own.
    with servers([bench.setting], teller, pin=False) as started:
        cluster = _cluster(wish, started)
        _check(wish, cluster)
        owner = Owner.of(new_id(), folder)
        bench.check(started, owner)
        writer = ElasticityWriter(folder, _manifest(wish, bench, started, owner, folder))
        with written_down(writer):
            writer.write_load(bench.load(started, teller, owner))
            nodes_at_start = cluster.nodes
            for number, change in enumerate(wish.changes, start=1):
                if wish.grows and cluster.nodes > nodes_at_start:
                    bench.add_copies(-(-cluster.nodes // nodes_at_start), teller)
                _carry_out(wish, bench, cluster, change, number, writer, teller)
            if wish.drop_after:
                bench.remove(owner)
    return read_elasticity(folder)


def _cluster(wish: Wish, started: Servers) -> Cluster:
    """What is changed."""
    if wish.commands is not None:
        return _own_nodes(wish, wish.commands)
    (instance,) = started.instances.values()
    return LabNodes(instance.name)


def _own_nodes(wish: Wish, own: OwnCommands) -> OwnNodes:
    return OwnNodes(own.nodes, own.add, own.remove, own.status, wish.lengths.most_s)


def _check(wish: Wish, cluster: Cluster) -> None:
    """Raises UsageError when the cluster can never be as a change leaves it."""
    nodes, least = cluster.nodes, 1
    if isinstance(cluster, LabNodes):
        least = lab.LAB_DATABASES[wish.target.database.name].nodes
    for change in wish.changes:
        check_can(change, cluster)
        nodes += change.grows_by
        if nodes < least:
            raise UsageError(f"--change leave: {nodes} nodes would be left; the cluster needs {least} at least")


def _manifest(wish: Wish, bench: Bench, started: Servers, owner: Owner, folder: Path) -> ElasticityManifest:
    described = wish.dataset.describe()
    return ElasticityManifest(
        id=owner.id,
        title=f"Elasticity of {wish.target.label}",
        process=Process.this(),
        created=now(),
        version=__version__,
        command=command_line(),
        setting=bench.setting.manifest({name: bench.setting.schema.told_statements(name) for name in bench.titles}),
        operations=bench.titles,
        dataset={"title": described.title, "rows": described.readings},
        changes=[{**asdict(change), "title": change.title} for change in wish.changes],
        workload={
            **asdict(wish.load),
            **asdict(wish.lengths),
            "mix": wish.mix,
            "grows": wish.grows,
            "seed": wish.seed,
        },
        environment={**environment(folder), "servers": started.described()},
    )


def _carry_out(
    wish: Wish, bench: Bench, cluster: Cluster, change: Change, number: int, writer: ElasticityWriter, teller: Teller
) -> None:
    """One run with one change in it."""
    nodes = cluster.nodes
    threads = nodes * wish.load.threads_per_node
    per_set = wish.load.requests_per_set(threads)
    with teller.task(f"{number}. {change.title}: {nodes} nodes, {bench.articles:,} articles") as task:
        course = Course(
            lengths=wish.lengths,
            operations=per_set * wish.load.executions * wish.operations_per_request,
            executions=wish.load.executions,
            change=lambda mark: carry_out(change, cluster, mark),
            tell=lambda text: task.advance_to(0.0, text),
        )
        told = {
            "change": {**asdict(change), "title": change.title, "costs": cluster.at_once_costs if change.is_at_once else ""},
            "nodes": nodes,
            "articles": bench.articles,
            "request_threads": threads,
            "requests_per_set": per_set,
            "executions": wish.load.executions,
            "warm_up": wish.lengths.warm_up,
        }
        rate_per_s = wish.load.rate_per_node * nodes * wish.operations_per_request if wish.load.rate_per_node else None
        try:
            bench.run(number, threads, rate_per_s, writer.run_folder(number), course.look, told)
        finally:
            course.wait()
        task.end(course.problem or "measured")
