"""Changes of a cluster under load: data are loaded, then there is one run for each change, data and load growing with the cluster."""

from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path

from sensorbench import lab
from sensorbench.benchmarks.elasticity import faults
from sensorbench.benchmarks.elasticity.bench import Bench
from sensorbench.benchmarks.elasticity.changes import Change, carry_out, check_can
from sensorbench.benchmarks.elasticity.clusters import Cluster, ExternalCluster, LabNodes
from sensorbench.benchmarks.elasticity.scenario import Scenario
from sensorbench.benchmarks.elasticity.spec import ElasticitySpec, ExternalCommands
from sensorbench.errors import UsageError
from sensorbench.hosts.pool import HostPool
from sensorbench.lifecycle import Benchmark, Description, RunContext
from sensorbench.progress import ProgressReporter
from sensorbench.results import ServerResources
from sensorbench.results.elasticity import ElasticityWriter
from sensorbench.results.engine_plan import KeptPlan
from sensorbench.results.ownership import Owner
from sensorbench.results.planned import ArticleCount, ClusterChange, ElasticityManifest, ElasticityWorkload, PlannedElasticity
from sensorbench.results.writer import write_load
from sensorbench.runner import (
    ALONE,
    GeneratorOptions,
    LoadGenerators,
    Servers,
    check_can_share,
    load_generators,
    running_servers,
)


@dataclass(frozen=True)
class ElasticityPlan:
    """What is wished, validated, with the means to load data and to put load on them."""

    spec: ElasticitySpec
    bench: Bench
    generators: LoadGenerators


def planned(spec: ElasticitySpec, folder: Path) -> ElasticityPlan:
    """The plan of a wish whose results go into `folder`. Raises UsageError for what is wrong whatever the cluster says."""
    chosen = GeneratorOptions(generators=spec.generators, hosts=spec.hosts)
    # A single one is this process, wherever the nodes are.
    generators = load_generators(chosen, ProgressReporter()) if spec.generators > 1 else ALONE
    plan = ElasticityPlan(spec, Bench(spec, folder, generators), generators)
    check_can_share(generators, spec.nodes * spec.load.threads_per_node, [spec.target.database])
    if spec.commands is not None:
        _check_changes(spec, _external_cluster(spec, spec.commands))
    return plan


class ElasticityBenchmark(Benchmark[ElasticityPlan, ElasticityManifest, ElasticityWriter]):
    """Loads the data and carries out the changes, one after the other."""

    manifest = ElasticityManifest
    writer = ElasticityWriter

    def hosts(self, plan: ElasticityPlan) -> HostPool | None:
        """Those of its load generators."""
        return plan.generators.hosts

    def servers(self, plan: ElasticityPlan, progress: ProgressReporter) -> AbstractContextManager[Servers]:
        """The cluster's nodes, rid of what an earlier benchmark that was killed has left behind."""
        faults.recover()
        # Nodes that share a machine with the client come and go: none has CPUs of its own.
        resources = ServerResources(memory_bytes=plan.spec.memory_bytes)
        return running_servers([plan.bench.variant], progress, pin=False, resources=resources)

    def check(self, plan: ElasticityPlan, servers: Servers, owner: Owner) -> None:
        """Raises UsageError when the changes cannot be made to this cluster, or its namespace is refused."""
        cluster = _cluster(plan.spec, servers)
        for place in cluster.places if isinstance(cluster, LabNodes) else ():
            place.call(faults.recover, place.address)
        _check_changes(plan.spec, cluster)
        plan.bench.check(servers, owner)

    def describe(self, plan: ElasticityPlan, servers: Servers) -> Description[PlannedElasticity]:
        """The cluster, the load and the changes."""
        spec, bench = plan.spec, plan.bench
        described = spec.dataset.describe()
        return Description(
            title=f"Elasticity of {spec.target.label}",
            plan=PlannedElasticity(
                operations=bench.titles,
                workload=ElasticityWorkload(
                    **asdict(spec.load),
                    **asdict(spec.lengths),
                    mix=spec.mix,
                    grows=spec.grows,
                    copies=spec.copies,
                    node_memory_bytes=spec.node_memory_bytes,
                    node_idle_bytes=spec.node_idle_bytes,
                    seed=spec.seed,
                    generators=spec.generators,
                    hosts=plan.generators.host_names,
                ),
                dataset=ArticleCount(title=described.title, rows=described.readings),
                changes=[ClusterChange(**asdict(change), title=change.title) for change in spec.changes],
                hosts=lab.host_names(spec.target.hosts),
            ),
            variants=[bench.variant.manifest({name: bench.variant.schema.described_statements(name) for name in bench.titles})],
            environment={"servers": servers.described()},
        )

    def execute(self, plan: ElasticityPlan, context: RunContext[ElasticityWriter]) -> None:
        """Loads the data, then carries out one run for each change."""
        spec, bench, cluster = plan.spec, plan.bench, _cluster(plan.spec, context.servers)
        write_load(context.folder, bench.load(context.servers, context.progress, context.owner))
        for number, change in enumerate(spec.changes, start=1):
            bench.add_copies(spec.copies_on(cluster.nodes), context.progress)
            cluster.balance()
            _carry_out(plan, cluster, change, number, context)

    def clean_up(self, plan: ElasticityPlan, context: RunContext[ElasticityWriter]) -> None:
        """Removes with `drop_after` what was created at the target."""
        if plan.spec.drop_after:
            plan.bench.remove(context.owner)


def _cluster(spec: ElasticitySpec, started: Servers) -> Cluster:
    """What is changed."""
    if spec.commands is not None:
        return _external_cluster(spec, spec.commands)
    (instance,) = started.instances.values()
    return LabNodes(instance.name)


def _external_cluster(spec: ElasticitySpec, own: ExternalCommands) -> ExternalCluster:
    return ExternalCluster(own.nodes, own.add, own.remove, own.status, spec.lengths.max_s)


def _check_changes(spec: ElasticitySpec, cluster: Cluster) -> None:
    """Raises UsageError when the cluster can never be as a change leaves it."""
    nodes, needed = cluster.nodes, 1
    if isinstance(cluster, LabNodes):
        needed = lab.LAB_DATABASES[spec.target.database.name].nodes
    for change in spec.changes:
        check_can(change, cluster)
        nodes += change.grows_by
        if nodes < needed:
            raise UsageError(f"--change leave: {nodes} nodes would be left; the cluster needs {needed} at least")


def _carry_out(
    plan: ElasticityPlan, cluster: Cluster, change: Change, number: int, context: RunContext[ElasticityWriter]
) -> None:
    """One run with one change in it."""
    spec, bench, nodes = plan.spec, plan.bench, cluster.nodes
    threads = nodes * spec.load.threads_per_node
    per_set = spec.load.requests_per_set(threads)
    with context.progress.task(f"{number}. {change.title}: {nodes} nodes, {bench.articles:,} articles") as task:
        scenario = Scenario(
            lengths=spec.lengths,
            operations=per_set * spec.load.executions * spec.operations_per_request,
            executions=spec.load.executions,
            change=lambda annotate: carry_out(change, cluster, annotate),
            report=lambda text: task.advance_to(0.0, text),
        )
        described: KeptPlan = {
            "change": {**asdict(change), "title": change.title, "costs": cluster.at_once_costs if change.is_at_once else ""},
            "nodes": nodes,
            "articles": bench.articles,
            "request_threads": threads,
            "requests_per_set": per_set,
            "executions": spec.load.executions,
            "warmup_s": spec.lengths.warmup_s,
        }
        rate_per_s = spec.load.rate_per_node * nodes * spec.operations_per_request if spec.load.rate_per_node else None
        try:
            bench.run(number, threads, rate_per_s, context.writer.run_folder(number), scenario.on_snapshot, described)
        finally:
            scenario.wait()
        task.end(scenario.problem or "measured")
