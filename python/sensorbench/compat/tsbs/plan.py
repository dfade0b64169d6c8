"""What a load and the queries on it share: the data, the schemas at targets, and how both know that they mean the same."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Literal

from sensorbench.compat.targets import lasting_target
from sensorbench.compat.tsbs.options import TsbsOptions
from sensorbench.dataset import Dataset, open_dataset
from sensorbench.dataset.tsbs import CPU_FIELDS, CPU_ONLY, CPU_SINGLE, DEVICES, DEVOPS, IOT, TsbsParameters
from sensorbench.dataset.tsbs_devops import FIELDS as SERVER_FIELDS
from sensorbench.dataset.tsbs_iot import FIELDS as TRUCK_FIELDS
from sensorbench.errors import UsageError
from sensorbench.progress import ProgressReporter
from sensorbench.results.planned import PlannedTsbs
from sensorbench.runner import (
    DATA_FOLDER,
    Comparison,
    Schedule,
    ValidatedComparison,
    Variant,
    VariantSpec,
    Workload,
    fingerprint_of,
    make_variants,
    noted,
    validated,
)
from sensorbench.schemas import Schema, load_operations, load_schema

# What TSBS's own scripts leave out, and what one of its queries says literally.
NOT_IN_SCRIPTS = frozenset({"cpu-max-all-32-24", "breakdown-frequency-as-written"})


@dataclass(frozen=True)
class UseCase:
    """A use case.

    Attributes:
        dataset: its dataset.
        operations: its operation set.
        values: how many values each row of a device has that it writes an interval.
        arriving: the share of the rows that arrive.
        queries: the queries that its data can answer; all of the operation set if None.

    """

    dataset: str
    operations: str
    values: tuple[int, ...]
    arriving: float = 1.0
    queries: tuple[str, ...] | None = None

    @property
    def devices(self) -> str:
        """What there are as many of as the scale says."""
        return DEVICES[self.dataset]


# The questions about the first CPU metric alone.
_OF_ONE_METRIC = (
    "single-groupby-1-1-1",
    "single-groupby-1-1-12",
    "single-groupby-1-8-1",
    "double-groupby-1",
    "groupby-orderby-limit",
)
# The parameter of a schema that makes the tables of several use cases. A narrow table has room for any metric.
_USE_CASE = "use_case"
USE_CASES = {
    "cpu-only": UseCase(CPU_ONLY, "tsbs_cpu", (len(CPU_FIELDS),)),
    "cpu-single": UseCase(CPU_SINGLE, "tsbs_cpu", (1,), queries=_OF_ONE_METRIC),
    "devops": UseCase(DEVOPS, "tsbs_cpu", tuple(map(len, SERVER_FIELDS.values()))),
    "iot": UseCase(IOT, "tsbs_iot", tuple(map(len, TRUCK_FIELDS.values())), arriving=0.9),
}


def _dataset(options: TsbsOptions, progress: ProgressReporter) -> Dataset:
    name = data_parameters(options).name_of(USE_CASES[options.use_case].dataset)
    return open_dataset(name, seed=options.seed, reporter=progress)


def data_parameters(options: TsbsOptions) -> TsbsParameters:
    """How much data there are. Raises UsageError if there are none."""
    span = options.timestamp_end - options.timestamp_start
    if span <= timedelta():
        raise UsageError("--timestamp-end: it is not after --timestamp-start; expected a later time")
    if options.log_interval < 1 or not float(options.log_interval).is_integer():
        raise UsageError(f"--log-interval {options.log_interval:g}s: expected whole seconds, at least one")
    parameters = TsbsParameters(
        devices=options.scale, start=options.timestamp_start, duration=span, interval=timedelta(seconds=options.log_interval)
    )
    if parameters.epochs == 0:
        raise UsageError("--log-interval: it is longer than the data; expected at least one row of each host or truck")
    return parameters


def variants_of(options: TsbsOptions, folder: Path) -> list[Variant]:
    """The targets, each with its schema. Raises UsageError for what makes no sense."""
    if twice := [text for text in options.targets if options.targets.count(text) > 1]:
        raise UsageError(f"--target {twice[0]}: it is given twice; expected each target once")
    specs, use_case = [], USE_CASES[options.use_case]
    for text in options.targets:
        target = lasting_target(text)
        schema = load_schema(options.schema_name, operations=use_case.operations, database=target.database.dialect)
        if _USE_CASE in schema.file.parameters:
            schema = schema.with_parameters({_USE_CASE: options.use_case})
        queries = tuple(name for name in all_queries(options.use_case) if schema.asks(name))
        specs.append(VariantSpec(target, schema, only_loads=not queries, operations=queries))
    return make_variants(specs, folder / DATA_FOLDER)


def all_queries(use_case: str) -> list[str]:
    """The names of all queries of a use case, in the order of TSBS's documentation."""
    known = load_operations(USE_CASES[use_case].operations).operation
    return [name for name in known if name in (USE_CASES[use_case].queries or known)]


def workload_of(options: TsbsOptions, names: Sequence[str], *, operations: int = 1, schedule: Schedule | None = None) -> Workload:
    """A workload of queries, in equal shares."""
    return Workload(
        mix=dict.fromkeys(names, 1.0),
        schedule=schedule or Schedule(concurrency=1),
        operations=operations,
        repetitions=1,
        seed=options.seed,
        pin=False,
    )


@dataclass(frozen=True)
class AtTargets:
    """The data and the schemas at targets, found to be sound."""

    validated: ValidatedComparison

    @classmethod
    def of(cls, options: TsbsOptions, folder: Path, progress: ProgressReporter) -> "AtTargets":
        """What options ask for. Raises UsageError for what makes no sense; nothing is written but the generated data, in the cache."""
        variants, name = variants_of(options, folder), USE_CASES[options.use_case].operations
        comparison = Comparison(
            kind="experiment",
            name="tsbs",
            title=f"TSBS {options.use_case}",
            dataset=_dataset(options, progress),
            operations_name=name,
            operations=load_operations(name),
            variants=variants,
            workload=workload_of(options, all_queries(options.use_case)),
            metric="mean",
        )
        return cls(validated(comparison))

    @property
    def dataset(self) -> Dataset:
        """The data."""
        return self.validated.comparison.dataset

    @property
    def variants(self) -> list[Variant]:
        """The targets, each with its schema."""
        return self.validated.comparison.variants

    def driver_schema(self, variant: Variant) -> str:
        """The schema of a variant for its driver (JSON): with all queries that it can express, whichever are executed."""
        return json.dumps(self.validated.schemas[variant.id])

    def fingerprint(self, variant: Variant) -> str:
        """What is noted of the data at a variant's target: their name and seed, and a digest of them and of the schema."""
        described = self.dataset.describe()
        digest = fingerprint_of(self.dataset.fingerprint, self.validated.schemas[variant.id], variant)
        return f"{described.name}, seed {described.seed}, schema {variant.schema.name} ({digest})"

    def check_loaded(self, variant: Variant) -> None:
        """Raises UsageError unless the data of these options, all of them, are at a variant's target."""
        at, wanted = f"--target {variant.target.text}", self.fingerprint(variant)
        said = variant.engine_target().fingerprint()
        found = json.loads(said) if said else {}
        if "fingerprint" not in found:
            raise UsageError(f"{at}: nothing of TSBS is there; load it first: sensorbench tsbs load …")
        if found["fingerprint"] != wanted:
            raise UsageError(
                f"{at}: there is {found['fingerprint']}; expected {wanted}: give the options that it was loaded with, or load it again: "
                "sensorbench tsbs load … --replace"
            )
        if said != noted(wanted, "settled"):
            raise UsageError(f"{at}: loading there was cut short; load it again: sensorbench tsbs load … --replace")


def inexpressible(schema: Schema, queries: Sequence[str]) -> dict[str, str]:
    """Of queries those that a schema cannot express, with why not."""
    return {
        name: schema.file.cannot.get(name, "the schema has no statement") for name in queries if name not in schema.file.operation
    }


def planned_tsbs(options: TsbsOptions, at: AtTargets, phase: Literal["load", "run"], workers: int) -> PlannedTsbs:
    """What the manifest of either phase says of the data."""
    described = at.dataset.describe()
    return PlannedTsbs(
        phase=phase,
        use_case=options.use_case,
        scale=options.scale,
        timestamp_start=options.timestamp_start,
        timestamp_end=options.timestamp_end,
        log_interval_s=options.log_interval,
        seed=options.seed,
        dataset=described.name,
        rows=described.readings,
        metrics=described.values,
        workers=workers,
    )
