"""A cluster with data under a load that can be repeated while it is changed: what each transition is done with."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from sensorbench.benchmarks.elasticity.spec import ElasticitySpec
from sensorbench.progress import ProgressReporter
from sensorbench.results import RunResult, ServerResources
from sensorbench.results.described import LoadReport
from sensorbench.results.engine_plan import KeptPlan
from sensorbench.results.manifest import now
from sensorbench.results.ownership import Claim, Owner
from sensorbench.runner import (
    ALONE,
    DATA_FOLDER,
    Comparison,
    ConnectedComparison,
    LoadGenerators,
    Observer,
    Parameters,
    PreparedTable,
    Schedule,
    Servers,
    Variant,
    VariantSpec,
    Workload,
    build_plan,
    check_namespace,
    connect,
    load_more,
    load_variant,
    make_variants,
    prepare_tables,
    run_plan,
    validated,
    with_keys_of_run,
)
from sensorbench.schemas import load_operations, load_schema
from sensorbench.schemas.engine_types import Statement
from sensorbench.verification import keep_history

OPERATIONS = "articles"
# What is left at a target is not used by other work.
FINGERPRINT = "elasticity"
# The key by which articles are distinguished, and the parameter source that chooses among them.
ID, IDS = "id", "ids"
# A run ends when its course says so; this long at most, so that it ends at all (s).
LONGEST_S = 7 * 24 * 3600.0


class Bench:
    """Loads the data, makes them more, and carries out runs."""

    def __init__(self, spec: ElasticitySpec, folder: Path, generators: LoadGenerators = ALONE) -> None:
        self._spec = spec
        self._generators = generators
        self._validated = validated(_comparison(spec, folder))
        self.variant = self._validated.comparison.variants[0]
        self._tables: list[PreparedTable] = []
        self._connected: ConnectedComparison | None = None
        # What is at the target is one copy of the dataset, until there are more.
        self._copies = 1

    @property
    def titles(self) -> dict[str, str]:
        """What is asked, in words, by name."""
        return {name: self._validated.comparison.operations.operation[name].title for name in self._validated.names}

    @property
    def created(self) -> Statement:
        """What makes the tables, with their parts."""
        return self._validated.schemas[self.variant.id]["create"]

    @property
    def articles(self) -> int:
        """How many articles lie at the target."""
        return self._copies * self._spec.dataset.describe().readings

    def check(self, started: Servers, owner: Owner) -> None:
        """Raises UsageError when the cluster's namespace may not be had, and EngineError when nobody answers."""
        check_namespace(self.at_its_url(started).engine_target(), self._claim(owner))

    def at_its_url(self, started: Servers) -> Variant:
        """The variant at the cluster that was started for it, or at the user's."""
        return started.at_their_urls([self.variant])[0]

    def load(self, started: Servers, reporter: ProgressReporter, owner: Owner) -> LoadReport:
        """Loads the dataset. Raises FailedError, UsageError and EngineError."""
        validated = self._validated
        with validated.workbench as workbench:
            self._tables = prepare_tables(
                self._spec.dataset, self.variant.schema, validated.columns[self.variant.id], workbench, reporter
            )
        self._connected = connect(validated, started)
        at = self._connected.comparison.variants[0]
        schema, readings = validated.schemas[at.id], self._spec.dataset.describe().readings
        claim = self._claim(owner)
        return load_variant(
            at,
            self._connected.targets[at.id],
            schema,
            self._tables,
            readings,
            FINGERPRINT,
            claim=claim,
            reporter=reporter,
            generators=self._generators,
        )

    def remove(self, owner: Owner) -> None:
        """Removes what was created at the target."""
        self._is_up().targets[self.variant.id].remove(owner=owner.to_json())

    def _claim(self, owner: Owner) -> Claim:
        return Claim(owner, "replace" if self._spec.replace else "create")

    def add_copies(self, copies: int, reporter: ProgressReporter) -> None:
        """Loads the dataset again, under new ids, until there are this many copies of it, and waits until they are settled. Load generators share that
        where they share the first copy. Raises EngineError and FailedError.
        """
        if copies <= self._copies:
            return
        connected = self._is_up()
        rows = self._spec.dataset.describe().readings
        for copy in range(self._copies, copies):
            load_more(
                connected.comparison.variants[0],
                connected.targets[self.variant.id],
                [table.shifted(ID, copy * rows) for table in self._tables],
                f"loading copy {copy + 1} of {copies}",
                reporter=reporter,
                generators=self._generators,
            )
            self._copies += 1
        with reporter.task("settling"):
            connected.targets[self.variant.id].settle()

    def run(
        self,
        number: int,
        threads: int,
        rate_per_s: float | None,
        folder: Path,
        on_snapshot: Observer,
        described: KeptPlan,
    ) -> RunResult:
        """Carries out a run that ends only when it is stopped."""
        connected = self._is_up()
        at = connected.comparison.variants[0]
        comparison = connected.comparison
        parameters = with_keys_of_run(self._with_all_ids(), comparison.operations, now(), number)
        workload = comparison.workload.model_copy(update={"schedule": _schedule(threads, rate_per_s)})
        plan = build_plan(comparison.operations, at.schema, parameters, workload, number - 1)
        return run_plan(
            connected.targets[at.id],
            at,
            plan,
            list(parameters.tables.values()),
            folder,
            connected.servers,
            on_snapshot,
            number=number,
            generators=self._generators,
            described=described,
            at_end=lambda run, is_complete: keep_history(connected, at, folder, run, plan, parameters, is_complete=is_complete),
        )

    def _with_all_ids(self) -> Parameters:
        """The parameters, with the ids of all copies among them."""
        parameters, rows = self._validated.parameters, self._spec.dataset.describe().readings
        ids = parameters.tables[IDS]
        of_copies = [ids.set_column(0, ID, pc.add(ids[ID], pa.scalar(copy * rows, pa.int64()))) for copy in range(self._copies)]
        return replace(parameters, tables={**parameters.tables, IDS: pa.concat_tables(of_copies).combine_chunks()})

    def _is_up(self) -> ConnectedComparison:
        if self._connected is None:
            raise AssertionError("the data are loaded before they are worked on")
        return self._connected


def _comparison(spec: ElasticitySpec, folder: Path) -> Comparison:
    """The work as a comparison of one variant, so that it is validated, planned and loaded as any other."""
    schema = load_schema(spec.schema, operations=OPERATIONS, database=spec.target.database.dialect).split_at(spec.borders)
    (variant,) = make_variants([VariantSpec(spec.target, schema)], folder / DATA_FOLDER)
    workload = Workload(
        mix=spec.mix,
        schedule=_schedule(spec.load.threads_per_node, None),
        duration=f"{LONGEST_S:.0f}s",
        timeout=f"{spec.load.timeout_s}s",
        repetitions=max(1, len(spec.changes)),
        seed=spec.seed,
        log="all",
        pin=False,
    )
    return Comparison(
        kind="experiment",
        name="elasticity",
        title=f"Elasticity of {variant.target.label}",
        dataset=spec.dataset,
        operations_name=OPERATIONS,
        operations=load_operations(OPERATIONS),
        variants=[variant],
        workload=workload,
        metric="median",
        resources=ServerResources(memory_bytes=spec.memory_bytes),
    )


def _schedule(threads: int, rate_per_s: float | None) -> Schedule:
    return Schedule(concurrency=threads) if rate_per_s is None else Schedule(concurrency=1000, rate=rate_per_s, arrival="poisson")
