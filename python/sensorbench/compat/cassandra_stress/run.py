"""Carries out a run of a profile on a target, and writes it down as any other run."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sensorbench._engine import Target
from sensorbench.compat.cassandra_stress.distributions import Distribution
from sensorbench.compat.cassandra_stress.plan import (
    SCHEMAS,
    Mix,
    PlannedOperation,
    ProfileSchema,
    driver_schema,
    operations_of_mix,
    plan_of,
)
from sensorbench.compat.cassandra_stress.profile import INSERT, Profile
from sensorbench.compat.cassandra_stress.visits import Partitions
from sensorbench.errors import NamespaceError, SchemaError, UsageError
from sensorbench.paths import check_is_free
from sensorbench.progress import ProgressReporter
from sensorbench.results import RunResult
from sensorbench.results.engine_plan import EnginePlan
from sensorbench.results.ownership import Owner, new_id
from sensorbench.runner import (
    DATA_FOLDER,
    Observer,
    Variant,
    VariantSpec,
    drive_one_phase,
    make_variants,
    parse_target,
    running_servers,
)
from sensorbench.schemas.engine_types import DriverSchema
from sensorbench.schemas.shipped import shipped_schemas

_KEY = "cassandra_stress"


@dataclass(frozen=True)
class CassandraStressSpec:
    """What somebody asks for: operations of a profile on a target. `partitions` are those of the population; None for those
    that are usual.
    """

    profile: Profile
    weights: dict[str, float]
    target: str
    operations: int | None
    duration_s: float | None = None
    partitions: Partitions | None = None
    rate_per_s: float | None = None
    concurrency: int = 1
    consistency: str = "local_one"
    seed: int = 1
    timeout_s: float = 60.0
    replace: bool = False

    @property
    def may_begin(self) -> bool:
        """Whether the table may be made for it: for insertions alone, of the partitions from the first on."""
        return set(self.weights) == {INSERT} and (self.partitions is None or self.partitions.first == 1)


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


def carry_out(
    spec: CassandraStressSpec, folder: Path, reporter: ProgressReporter, observers: Sequence[Observer] = ()
) -> tuple[RunResult, list[PlannedOperation]]:
    """Does what is asked for. `observers` are called some times a second with the run and its snapshot. Raises UsageError before anything is
    written; FailedError and InterruptedRunError after what was done until then is on disk.
    """
    check_is_free(folder)
    variant = _variant(spec, folder)
    with running_servers([variant], reporter, pin=False) as started:
        at = started.at_their_urls([variant])[0]
        loaded = _loaded(spec, at)
        mix = Mix(spec.weights, spec.operations, spec.duration_s, spec.partitions or _default_partitions(spec, loaded))
        with reporter.task("making rows") as task:
            planned, notes = operations_of_mix(spec.profile, mix, spec.seed)
            task.end(f"{sum(operation.parameters.num_rows for operation in planned):,} operations")
        schema = ProfileSchema(spec.profile, variant.schema.database, planned, spec.consistency)
        plan = plan_of(
            planned,
            schema,
            mix,
            rate_per_s=spec.rate_per_s,
            concurrency=spec.concurrency,
            seed=spec.seed,
            timeout_s=spec.timeout_s,
        )
        for note in [*notes, *_notes(spec, plan)]:
            reporter.warn(note)
        at = replace(at if loaded else _as_keyspace_says(spec.profile, at, reporter), schema=schema)
        target = at.engine_target()
        after = _after(spec, loaded, planned, mix)
        owner = Owner.of(new_id(), folder)
        _make_ready(target, schema, driver_schema(schema, planned), spec, loaded, replace(after, is_whole=after == loaded), owner)
        with reporter.task(f"{', '.join(spec.weights)} at {spec.target}", total=1.0) as task:
            try:
                result = drive_one_phase(
                    target, at, plan, [operation.parameters for operation in planned], folder, started, observers, task, owner.id
                )
            except SchemaError as error:
                raise schema.refusal(error) from None
        if after != loaded:
            target.set_fingerprint(after.written())
        return result, planned


def _variant(spec: CassandraStressSpec, folder: Path) -> Variant:
    target = parse_target(spec.target)
    if not shipped_schemas(SCHEMAS, target.database.dialect) or target.place in ("folder", "started"):
        raise UsageError(
            f"--target {spec.target}: expected a server of Cassandra's kind that stays: "
            "lab:NAME (sensorbench lab up cassandra) or a URL"
        )
    schema = ProfileSchema(spec.profile, target.database.dialect)
    return make_variants([VariantSpec(target, schema)], folder / DATA_FOLDER)[0]


def _digest(profile: Profile) -> str:
    """What rows there are depends on it: the table and its columns' values."""
    return hashlib.blake2b(repr((profile.table, profile.columns)).encode(), digest_size=8).hexdigest()


def _loaded(spec: CassandraStressSpec, variant: Variant) -> Loaded | None:
    """What is there to go on with; None where the table is to be made. Insertions that do not go through all partitions go on
    with what is there, if anything is.
    """
    loaded = Loaded.read(variant.engine_target().fingerprint())
    covers_all = spec.partitions is None or spec.partitions.in_turn
    if spec.may_begin and (spec.replace or loaded is None or covers_all):
        return None
    if spec.replace:
        raise UsageError("--replace makes the table anew, for insertions alone: --ops insert=1")
    if loaded is None:
        raise UsageError(f"--target {spec.target}: nothing of a profile is there; insert first: --ops insert=1 --operations N")
    if not loaded.is_whole:
        raise UsageError(
            f"--target {spec.target}: insertions there were cut short; make the table anew: --ops insert=1 --replace"
        )
    if loaded.profile != _digest(spec.profile):
        raise UsageError(f"{spec.profile.path}: what is there was inserted by another table_definition or columnspec")
    if loaded.seed != spec.seed:
        raise UsageError(f"--seed {spec.seed}: what is there was inserted with --seed {loaded.seed}, and has other rows")
    return loaded


def _default_partitions(spec: CassandraStressSpec, loaded: Loaded | None) -> Partitions:
    """For insertions as many partitions as they write, one after the other; else a Gaussian over those that are there."""
    if loaded is not None:
        half = (loaded.partitions - 1) / 2
        return Partitions(Distribution("gaussian", 1, loaded.partitions, mean=1 + half, deviation=half / 3))
    if spec.operations is None:
        raise UsageError("--operations is missing: expected how many insertions to make, or --population FIRST..LAST")
    limit = spec.operations * spec.profile.insert.partitions.max
    return Partitions(Distribution("seq", 1, limit))


def _after(spec: CassandraStressSpec, loaded: Loaded | None, planned: list[PlannedOperation], mix: Mix) -> Loaded:
    """What is there afterwards."""
    written = mix.partitions.last
    if spec.partitions is None and loaded is None:
        written = round(sum(operation.parameters.num_rows * operation.partitions for operation in planned))
    before = loaded.partitions if loaded else 0
    return Loaded(_digest(spec.profile), spec.seed, max(before, written) if INSERT in spec.weights else before)


def _notes(spec: CassandraStressSpec, plan: EnginePlan) -> list[str]:
    operations = plan["phases"][0].get("operations")
    if operations is None or operations == spec.operations:
        return []
    return [f"{operations:,} insertions instead of {spec.operations:,}, so that batches of all sizes come in rounds"]


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


def _make_ready(
    target: Target,
    schema: ProfileSchema,
    for_driver: DriverSchema,
    spec: CassandraStressSpec,
    loaded: Loaded | None,
    after: Loaded,
    owner: Owner,
) -> None:
    """An empty table, or the one that is there."""
    try:
        if loaded is None:
            intent = "replace" if spec.replace else "create"
            target.create(json.dumps(for_driver), after.written(), intent=intent, owner=owner.to_json())
            return
        target.attach(json.dumps(for_driver), intent="attach", owner=owner.to_json())
        if after != loaded:
            target.set_fingerprint(after.written())
    except SchemaError as error:
        raise schema.refusal(error) from None
    except NamespaceError as error:
        raise UsageError(str(error)) from None
