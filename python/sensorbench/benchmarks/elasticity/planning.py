"""From options to what is asked of a cluster."""

from collections.abc import Sequence
from dataclasses import replace as with_fields

from sensorbench import lab
from sensorbench.benchmarks.elasticity.changes import Change, parse_change
from sensorbench.benchmarks.elasticity.options import ElasticityOptions
from sensorbench.benchmarks.elasticity.scenario import Lengths
from sensorbench.benchmarks.elasticity.spec import ElasticitySpec, ExternalCommands, Load
from sensorbench.dataset import Dataset
from sensorbench.errors import UsageError
from sensorbench.options import parse_settings
from sensorbench.runner import TargetSpec, parse_target, placed_on, require_on, started_target


def spec_of(
    options: ElasticityOptions,
    target: str,
    number: int,
    articles: Dataset,
    *,
    system: str | None = None,
    replace: bool = False,
    drop_after: bool = False,
) -> ElasticitySpec:
    """What is asked of one of the targets in the turn of this number, from 0; `system` is what a study calls it. Raises UsageError for what makes
    no sense.
    """
    on = placed_on if options.generators > 1 else require_on
    spec = with_fields(on(_target(target, options.nodes, options.settings), options.hosts), system=system)
    changes = [parse_change(text) for text in options.changes]
    return ElasticitySpec(
        target=spec,
        schema=options.schema_,
        dataset=articles,
        load=Load(options.requests, options.threads_per_node, options.executions, options.rate, options.timeout),
        changes=changes or [Change("join", options.nodes or _nodes_of(spec))],
        lengths=Lengths(options.warmup, options.before, options.after, options.at_most),
        grows=not options.no_growth,
        seed=options.seed + number,
        nodes=options.nodes or _nodes_of(spec),
        commands=_commands(spec, options),
        copies=options.copies,
        memory_bytes=options.server_memory,
        user_node_bytes=_node_memory(spec, options),
        replace=replace,
        generators=options.generators,
        hosts=options.hosts,
        # The next turn finds the target as this one did.
        drop_after=drop_after or options.repetitions > 1,
    )


def nodes_of_study(target: str, min_nodes: int) -> int | None:
    """How many nodes a study starts of a target: at min_nodes this many; None for those of the lab that are already running. Raises UsageError for what a
    study cannot change by itself.
    """
    spec = parse_target(target)
    if spec.place == "url":
        raise UsageError(
            f"--target {target}: a cluster of your own grows by your command; see sensorbench elasticity run --add-node-command"
        )
    _require_cluster(target, spec)
    return None if spec.place == "lab" else max(min_nodes, _nodes_of(spec))


def _target(text: str, nodes: int | None, settings: Sequence[str]) -> TargetSpec:
    """A cluster that can be changed. Raises UsageError."""
    spec = parse_target(text)
    if spec.place == "url" and not spec.database.embedded:
        if nodes is None or settings:
            raise UsageError(
                f"--target {spec.label}: for a cluster of your own, give its number of nodes with --nodes, and no --server-setting"
            )
        return spec
    _require_cluster(text, spec)
    if spec.place == "lab":
        if nodes is not None or settings:
            raise UsageError(
                f"--target {text}: it is already running; --nodes and --server-setting are for servers that the lab starts"
            )
        return spec
    return started_target(spec.database.name, spec.options, nodes=nodes, server_settings=parse_settings(settings))


def _require_cluster(text: str, spec: TargetSpec) -> None:
    """Raises UsageError for what the lab has no cluster of."""
    if spec.place == "folder" or spec.database.name not in lab.clusters():
        raise UsageError(
            f"--target {text}: {spec.database.name} has no nodes that join or leave; expected one of {', '.join(lab.clusters())}"
        )


def _commands(spec: TargetSpec, options: ElasticityOptions) -> ExternalCommands | None:
    """How a cluster of one's own is changed; None for the lab's. Raises UsageError."""
    commands = (options.add_node_command, options.remove_node_command, options.status_command)
    if spec.place == "url" and options.nodes is not None:
        return ExternalCommands(options.nodes, *commands)
    if given := [command for command in commands if command is not None]:
        raise UsageError(
            f"{given[0]}: commands change a cluster of your own, which --target names by URL; the lab changes its own"
        )
    return None


def _node_memory(spec: TargetSpec, options: ElasticityOptions) -> int | None:
    """The memory of a node of a cluster of one's own, as the user says it. Raises UsageError if the lab knows it."""
    if options.node_memory is not None and spec.place != "url":
        raise UsageError(
            f"--node-memory: {spec.label} is a cluster of the lab; give --server-memory instead, the memory of all nodes at the start"
        )
    return options.node_memory


def _nodes_of(spec: TargetSpec) -> int:
    """How many nodes there are at the start."""
    if spec.place == "lab":
        return len(lab.find_instance(spec.label).nodes)
    return spec.nodes or lab.LAB_DATABASES[spec.database.name].nodes
