"""The benchmark that a run of a profile is: insertions that make the table, or operations on what they left."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from sensorbench.compat.cassandra_stress.distributions import Distribution
from sensorbench.compat.cassandra_stress.options import CassandraStressOptions, parse_operations
from sensorbench.compat.cassandra_stress.plan import (
    SCHEMAS,
    Mix,
    PlannedOperation,
    ProfileSchema,
    driver_schema,
    operations_of_mix,
    plan_of,
)
from sensorbench.compat.cassandra_stress.profile import INSERT, Profile, read_profile
from sensorbench.compat.cassandra_stress.visits import Partitions
from sensorbench.compat.drive import drive
from sensorbench.errors import SchemaError, UsageError
from sensorbench.hosts.pool import HostPool
from sensorbench.lifecycle import Benchmark, Description, RunContext
from sensorbench.progress import ProgressReporter
from sensorbench.results.engine_plan import EnginePlan
from sensorbench.results.ownership import Claim, Intent, Owner
from sensorbench.results.planned import CassandraStressManifest, PlannedCassandraStress, Population, ToolOperation
from sensorbench.results.writer import ManifestWriter
from sensorbench.runner import (
    DATA_FOLDER,
    LoadGenerators,
    Observer,
    Servers,
    Variant,
    VariantSpec,
    check_can_share,
    check_namespace,
    load_generators,
    make_variants,
    parse_target,
    running_servers,
)
from sensorbench.schemas.shipped import shipped_schemas

_KEY = "cassandra_stress"
TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Loaded:
    """What the fingerprint says of the table: of which profile and seed its rows are, how many partitions were numbered, and whether the
    insertions came to their end.
    """

    profile: str
    seed: int
    partitions: int
    is_whole: bool = True

    @classmethod
    def read(cls, fingerprint: str | None) -> "Loaded | None":
        """What a fingerprint says; None for that of something else."""
        said = json.loads(fingerprint).get(_KEY) if fingerprint else None
        return None if said is None else cls(**said)

    def written(self) -> str:
        """The fingerprint."""
        return json.dumps({_KEY: self.__dict__})


@dataclass(frozen=True)
class Ready:
    """What follows from what is at the target: the partitions, the operations with their rows, and what is there afterwards."""

    variant: Variant
    schema: ProfileSchema
    mix: Mix
    planned: list[PlannedOperation]
    engine: EnginePlan
    driver_schema: str
    loaded: Loaded | None
    after: Loaded
    intent: Intent

    @property
    def fingerprint(self) -> str:
        """What is noted at the target until the run has come to its end."""
        return replace(self.after, is_whole=self.after == self.loaded).written()


@dataclass(frozen=True)
class CassandraStressPlan:
    """Operations of a profile at a target. `observers` are called some times a second with the run and its snapshot; `ready` is filled once
    the server is up.
    """

    profile: Profile
    options: CassandraStressOptions
    weights: dict[str, float]
    variant: Variant
    replace: bool
    observers: Sequence[Observer]
    generators: LoadGenerators
    ready: list[Ready] = field(default_factory=list)

    @property
    def may_begin(self) -> bool:
        """Whether the table may be made for it: for insertions alone, of the partitions from the first on."""
        population = self.options.population
        return set(self.weights) == {INSERT} and (population is None or population.first == 1)


def plan_cassandra_stress(
    file: Path,
    options: CassandraStressOptions,
    folder: Path,
    progress: ProgressReporter,
    *,
    observers: Sequence[Observer] = (),
    replace: bool = False,
) -> CassandraStressPlan:
    """The plan of what options ask for of a profile. Raises UsageError for what makes no sense."""
    profile, notes = read_profile(file)
    weights = parse_operations(options.ops, profile)
    if options.operations is None and options.duration is None:
        raise UsageError("the run has no end: expected --operations or --duration")
    for note in notes:
        progress.warn(note)
    progress.say(
        f"the keyspace {profile.keyspace.name} of the profile is sensorbench's own here (namespace= in the URL names another)"
    )
    generators, variant = load_generators(options, progress), _variant(profile, options.target, folder)
    check_can_share(generators, options.concurrency, [variant.target.database])
    return CassandraStressPlan(profile, options, weights, variant, replace, observers, generators)


class CassandraStressBenchmark(Benchmark[CassandraStressPlan, CassandraStressManifest, ManifestWriter[CassandraStressManifest]]):
    """Carries out operations of a profile."""

    manifest = CassandraStressManifest
    writer = ManifestWriter

    def hosts(self, plan: CassandraStressPlan) -> HostPool | None:
        """Those of its load generators."""
        return plan.generators.hosts

    @contextmanager
    def servers(self, plan: CassandraStressPlan, progress: ProgressReporter) -> Iterator[Servers]:
        """The target's server; which operations there are follows from what is there."""
        with running_servers([plan.variant], progress, pin=False) as started:
            plan.ready.append(_made_ready(plan, started.at_their_urls([plan.variant])[0], progress))
            yield started

    def check(self, plan: CassandraStressPlan, servers: Servers, owner: Owner) -> None:
        """Raises UsageError if the target's namespace is refused."""
        del servers
        (ready,) = plan.ready
        check_namespace(ready.variant.engine_target(), Claim(owner, ready.intent))

    def describe(self, plan: CassandraStressPlan, servers: Servers) -> Description[PlannedCassandraStress]:
        """The profile, and what is done with it."""
        (ready,), options = plan.ready, plan.options
        return Description(
            title=f"{plan.profile.path.name} at {plan.variant.target.label}",
            plan=PlannedCassandraStress(
                operations={
                    operation.name: ToolOperation(
                        kind=operation.kind,
                        rows=operation.rows,
                        partitions=None if operation.rows is None else operation.partitions,
                    )
                    for operation in ready.planned
                },
                seed=options.seed,
                timeout_s=TIMEOUT_S,
                profile=str(plan.profile.path),
                weights=plan.weights,
                population=Population(**asdict(ready.mix.partitions.distribution)),
                count=ready.engine["phases"][0]["operations"],
                duration_s=options.duration,
                rate_per_s=options.rate,
                concurrency=options.concurrency,
                consistency=options.consistency,
            ),
            variants=[
                ready.variant.manifest(
                    {operation.name: ready.schema.described_statements(operation.name) for operation in ready.planned}
                )
            ],
            environment={"servers": servers.described()},
        )

    def execute(self, plan: CassandraStressPlan, context: RunContext[ManifestWriter[CassandraStressManifest]]) -> None:
        """Makes the table, or finds it, and carries out the operations."""
        (ready,) = plan.ready
        target, owner = ready.variant.engine_target(), context.owner.to_json()
        tables = [operation.parameters for operation in ready.planned]
        try:
            if ready.loaded is None:
                target.create(ready.driver_schema, ready.fingerprint, intent=ready.intent, owner=owner)
            else:
                target.attach(ready.driver_schema, intent=ready.intent, owner=owner)
                if ready.after != ready.loaded:
                    target.set_fingerprint(ready.fingerprint)
            what = ", ".join(plan.weights)
            drive(context, target, ready.variant, ready.engine, tables, plan.observers, what, generators=plan.generators)
        except SchemaError as error:
            raise ready.schema.refusal(error) from None
        if ready.after != ready.loaded:
            target.set_fingerprint(ready.after.written())


def _made_ready(plan: CassandraStressPlan, at: Variant, progress: ProgressReporter) -> Ready:
    options, loaded = plan.options, _loaded(plan, at)
    partitions = options.population or _default_partitions(plan, loaded)
    mix = Mix(plan.weights, options.operations, options.duration, partitions)
    with progress.task("making rows") as task:
        planned, notes = operations_of_mix(plan.profile, mix, options.seed)
        task.end(f"{sum(operation.parameters.num_rows for operation in planned):,} operations")
    schema = ProfileSchema(plan.profile, plan.variant.schema.database, planned, options.consistency)
    engine = plan_of(
        planned,
        schema,
        mix,
        rate_per_s=options.rate,
        concurrency=options.concurrency,
        seed=options.seed,
        timeout_s=TIMEOUT_S,
    )
    for note in [*notes, *_notes(options, engine)]:
        progress.warn(note)
    variant = replace(at if loaded else _as_keyspace_says(plan.profile, at, progress), schema=schema)
    after = _after(plan, loaded, planned, mix)
    intent: Intent = "attach" if loaded else "replace" if plan.replace else "create"
    return Ready(variant, schema, mix, planned, engine, json.dumps(driver_schema(schema, planned)), loaded, after, intent)


def _variant(profile: Profile, target_text: str, folder: Path) -> Variant:
    target = parse_target(target_text)
    if not shipped_schemas(SCHEMAS, target.database.dialect) or target.place in ("folder", "started"):
        raise UsageError(
            f"--target {target_text}: expected a server of Cassandra's kind that stays: "
            "lab:NAME (sensorbench lab up cassandra) or a URL"
        )
    schema = ProfileSchema(profile, target.database.dialect)
    return make_variants([VariantSpec(target, schema)], folder / DATA_FOLDER)[0]


def _digest(profile: Profile) -> str:
    """What rows there are depends on it: the table and its columns' values."""
    return hashlib.blake2b(repr((profile.table, profile.columns)).encode(), digest_size=8).hexdigest()


def _loaded(plan: CassandraStressPlan, variant: Variant) -> Loaded | None:
    """What is there already; None if the table is to be made. Insertions that do not go through all partitions continue
    with what is there, if anything is.
    """
    loaded = Loaded.read(variant.engine_target().fingerprint())
    covers_all = plan.options.population is None or plan.options.population.in_turn
    if plan.may_begin and (plan.replace or loaded is None or covers_all):
        return None
    if plan.replace:
        raise UsageError("--replace recreates the table, for insertions only: --ops insert=1")
    if loaded is None:
        raise UsageError(
            f"--target {plan.options.target}: nothing of a profile is there; insert first: --ops insert=1 --operations N"
        )
    if not loaded.is_whole:
        raise UsageError(
            f"--target {plan.options.target}: insertions there were cut short; recreate the table: --ops insert=1 --replace"
        )
    if loaded.profile != _digest(plan.profile):
        raise UsageError(f"{plan.profile.path}: what is there was inserted by another table_definition or columnspec")
    if loaded.seed != plan.options.seed:
        raise UsageError(f"--seed {plan.options.seed}: what is there was inserted with --seed {loaded.seed}, and has other rows")
    return loaded


def _default_partitions(plan: CassandraStressPlan, loaded: Loaded | None) -> Partitions:
    """For insertions as many partitions as they write, one after the other; else a Gaussian over those that are there."""
    if loaded is not None:
        half = (loaded.partitions - 1) / 2
        return Partitions(Distribution("gaussian", 1, loaded.partitions, mean=1 + half, deviation=half / 3))
    if plan.options.operations is None:
        raise UsageError("--operations is missing: expected how many insertions to make, or --population FIRST..LAST")
    limit = plan.options.operations * plan.profile.insert.partitions.max
    return Partitions(Distribution("seq", 1, limit))


def _after(plan: CassandraStressPlan, loaded: Loaded | None, planned: list[PlannedOperation], mix: Mix) -> Loaded:
    """What is there afterwards."""
    written = mix.partitions.last
    if plan.options.population is None and loaded is None:
        written = round(sum(operation.parameters.num_rows * operation.partitions for operation in planned))
    before = loaded.partitions if loaded else 0
    return Loaded(_digest(plan.profile), plan.options.seed, max(before, written) if INSERT in plan.weights else before)


def _notes(options: CassandraStressOptions, engine: EnginePlan) -> list[str]:
    operations = engine["phases"][0].get("operations")
    if operations is None or operations == options.operations:
        return []
    return [f"{operations:,} insertions instead of {options.operations:,}, so that batches of all sizes come in rounds"]


def _as_keyspace_says(profile: Profile, variant: Variant, reporter: ProgressReporter) -> Variant:
    """The variant with what the profile wants of its keyspace, where it can be had and the URL does not say otherwise."""
    keyspace = profile.keyspace
    said = [option.partition("=")[0] for option in (variant.url or "").partition("?")[2].split("&")]
    if keyspace.copies is not None and "replication" not in said:
        nodes = int(json.loads(variant.engine_target().describe())["settings"]["nodes"])
        if nodes < keyspace.copies:
            reporter.warn(f"keyspace_definition: {nodes} instead of {keyspace.copies} copies, as many as the cluster has nodes")
        variant = variant.with_option("replication", str(min(nodes, keyspace.copies)))
    if keyspace.durable_writes is not None and "durable_writes" not in said:
        variant = variant.with_option("durable_writes", "on" if keyspace.durable_writes else "off")
    return variant
