"""Changes of a cluster under load: data are loaded, then there is one run for each change, data and load growing with the cluster."""

from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path

from sensorbench import lab
from sensorbench.benchmarks.elasticity import faults
from sensorbench.benchmarks.elasticity.bench import Bench
from sensorbench.benchmarks.elasticity.changes import Change, carry_out, check_can
from sensorbench.benchmarks.elasticity.clusters import Cluster, LabNodes, OwnNodes
from sensorbench.benchmarks.elasticity.scenario import Course
from sensorbench.benchmarks.elasticity.spec import OwnCommands, Wish
from sensorbench.errors import UsageError
from sensorbench.lifecycle import Benchmark, Description, RunContext
from sensorbench.progress import Teller
from sensorbench.results.elasticity import ElasticityWriter
from sensorbench.results.ownership import Owner
from sensorbench.results.planned import ArticleCount, ClusterChange, ElasticityManifest, ElasticityWorkload, PlannedElasticity
from sensorbench.runner import Servers, running_servers


@dataclass(frozen=True)
class ElasticityPlan:
    """What is wished, validated, with the means to load data and to put load on them."""

    wish: Wish
    bench: Bench


def planned(wish: Wish, folder: Path) -> ElasticityPlan:
    """The plan of a wish whose results go into `folder`. Raises UsageError for what is wrong whatever the cluster says."""
    plan = ElasticityPlan(wish, Bench(wish, folder))
    if wish.commands is not None:
        _check_changes(wish, _own_nodes(wish, wish.commands))
    return plan


class ElasticityBenchmark(Benchmark[ElasticityPlan, ElasticityManifest, ElasticityWriter]):
    """Loads the data and carries out the changes, one after the other."""

    manifest = ElasticityManifest
    writer = ElasticityWriter

    def servers(self, plan: ElasticityPlan, progress: Teller) -> AbstractContextManager[Servers]:
        """The cluster's nodes, rid of what an earlier benchmark that was killed has left behind."""
        faults.heal()
        # Nodes that share a machine with the client come and go: none has CPUs of its own.
        return running_servers([plan.bench.variant], progress, pin=False)

    def check(self, plan: ElasticityPlan, servers: Servers, owner: Owner) -> None:
        """Raises UsageError when the changes cannot be made to this cluster, or its namespace is refused."""
        _check_changes(plan.wish, _cluster(plan.wish, servers))
        plan.bench.check(servers, owner)

    def describe(self, plan: ElasticityPlan, servers: Servers) -> Description[PlannedElasticity]:
        """The cluster, the load and the changes."""
        wish, bench = plan.wish, plan.bench
        described = wish.dataset.describe()
        lengths = asdict(wish.lengths)
        return Description(
            title=f"Elasticity of {wish.target.label}",
            plan=PlannedElasticity(
                operations=bench.titles,
                workload=ElasticityWorkload(
                    **asdict(wish.load),
                    max_s=lengths.pop("most_s"),
                    **lengths,
                    mix=wish.mix,
                    grows=wish.grows,
                    seed=wish.seed,
                ),
                dataset=ArticleCount(title=described.title, rows=described.readings),
                changes=[ClusterChange(**asdict(change), title=change.title) for change in wish.changes],
            ),
            variants=[bench.variant.manifest({name: bench.variant.schema.told_statements(name) for name in bench.titles})],
            environment={"servers": servers.described()},
        )

    def execute(self, plan: ElasticityPlan, context: RunContext[ElasticityWriter]) -> None:
        """Loads the data, then carries out one run for each change."""
        wish, bench, cluster = plan.wish, plan.bench, _cluster(plan.wish, context.servers)
        context.writer.write_load(bench.load(context.servers, context.progress, context.owner))
        nodes_at_start = cluster.nodes
        for number, change in enumerate(wish.changes, start=1):
            if wish.grows and cluster.nodes > nodes_at_start:
                bench.add_copies(-(-cluster.nodes // nodes_at_start), context.progress)
            _carry_out(plan, cluster, change, number, context)

    def clean_up(self, plan: ElasticityPlan, context: RunContext[ElasticityWriter]) -> None:
        """Removes with `drop_after` what was created at the target."""
        if plan.wish.drop_after:
            plan.bench.remove(context.owner)


def _cluster(wish: Wish, started: Servers) -> Cluster:
    """What is changed."""
    if wish.commands is not None:
        return _own_nodes(wish, wish.commands)
    (instance,) = started.instances.values()
    return LabNodes(instance.name)


def _own_nodes(wish: Wish, own: OwnCommands) -> OwnNodes:
    return OwnNodes(own.nodes, own.add, own.remove, own.status, wish.lengths.most_s)


def _check_changes(wish: Wish, cluster: Cluster) -> None:
    """Raises UsageError when the cluster can never be as a change leaves it."""
    nodes, least = cluster.nodes, 1
    if isinstance(cluster, LabNodes):
        least = lab.LAB_DATABASES[wish.target.database.name].nodes
    for change in wish.changes:
        check_can(change, cluster)
        nodes += change.grows_by
        if nodes < least:
            raise UsageError(f"--change leave: {nodes} nodes would be left; the cluster needs {least} at least")


def _carry_out(
    plan: ElasticityPlan, cluster: Cluster, change: Change, number: int, context: RunContext[ElasticityWriter]
) -> None:
    """One run with one change in it."""
    wish, bench, nodes = plan.wish, plan.bench, cluster.nodes
    threads = nodes * wish.load.threads_per_node
    per_set = wish.load.requests_per_set(threads)
    with context.progress.task(f"{number}. {change.title}: {nodes} nodes, {bench.articles:,} articles") as task:
        course = Course(
            lengths=wish.lengths,
            operations=per_set * wish.load.executions * wish.operations_per_request,
            executions=wish.load.executions,
            change=lambda annotate: carry_out(change, cluster, annotate),
            tell=lambda text: task.advance_to(0.0, text),
        )
        described = {
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
            bench.run(number, threads, rate_per_s, context.writer.run_folder(number), course.look, described)
        finally:
            course.wait()
        task.end(course.problem or "measured")
