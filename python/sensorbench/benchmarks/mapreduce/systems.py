"""Systems of the study: where the articles lie, how Spark gets to them, and how the database does the job itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from sensorbench import _engine
from sensorbench.benchmarks.mapreduce.native_job import NativeJob, native_job
from sensorbench.dataset import Dataset
from sensorbench.errors import UsageError
from sensorbench.progress import ProgressReporter
from sensorbench.results.described import LoadedRows
from sensorbench.results.ownership import Claim
from sensorbench.results.planned import SystemOfJob
from sensorbench.runner import DATA_FOLDER, Servers, TargetSpec, Variant, VariantSpec, load_variant, make_variants, prepare_tables
from sensorbench.schemas import load_operations, load_schema
from sensorbench.spark.connector import FILES, Place, connected, connector_of, connectors, files_in, place_of

OPERATION_SET, SCHEMA = "mapreduce", "inverted_index"
FINGERPRINT = "mapreduce"
ARTICLES = "articles"


@dataclass(frozen=True)
class System:
    """A system whose articles are loaded."""

    name: str
    place: Place
    target: _engine.Target | None
    native: NativeJob | None


def variants_of(targets: Sequence[TargetSpec], folder: Path) -> list[Variant]:
    """A variant for each target. Raises UsageError for a database without connector or schema, and for one that is named twice."""
    for target in targets:
        if connector_of(target.database.name) is None:
            raise UsageError(
                f"--target {target.text}: no connector between Spark and {target.database.name} is registered; expected one of "
                f"{', '.join(sorted(connected()))}"
            )
    schemas = [load_schema(SCHEMA, operations=OPERATION_SET, database=target.database.dialect) for target in targets]
    specs = [VariantSpec(target, schema) for target, schema in zip(targets, schemas, strict=True)]
    labels = [target.label for target in targets]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice:
        raise UsageError(f"--target {twice}: it is named twice")
    return make_variants(specs, folder / DATA_FOLDER)


def described(variants: Sequence[Variant], *, with_files: bool) -> dict[str, SystemOfJob]:
    """What results say of each system."""
    found = {variant.target.label: _described(variant) for variant in variants}
    if with_files:
        of_files = connectors()[FILES]
        found[FILES] = SystemOfJob(database=FILES, connector=of_files.title, splits=of_files.splits, native_job=None)
    return found


def _described(variant: Variant) -> SystemOfJob:
    connector, native = connector_of(variant.target.database.name), native_job(variant.target.database.dialect)
    if connector is None:
        raise AssertionError("targets without a connector were refused")
    return SystemOfJob(
        database=variant.target.database.name,
        connector=connector.title,
        splits=connector.splits,
        native_job=native.title if native else None,
        schema_summary=variant.schema.summary,
    )


def load_systems(
    variants: Sequence[Variant],
    dataset: Dataset,
    workbench: duckdb.DuckDBPyConnection,
    started: Servers,
    reporter: ProgressReporter,
    claim: Claim,
) -> tuple[list[System], dict[str, LoadedRows]]:
    """Loads the articles into each database; how that went. Raises FailedError, UsageError and EngineError."""
    operations = load_operations(OPERATION_SET)
    systems, loads = [], dict[str, LoadedRows]()
    for variant in started.at_their_urls(list(variants)):
        columns = variant.schema.loaded_columns(workbench)
        tables = prepare_tables(dataset, variant.schema, columns, workbench, reporter)
        target = variant.engine_target()
        schema = variant.schema.driver_schema(operations, [], columns)
        rows = dataset.describe().readings
        name = variant.target.label
        loads[name] = load_variant(variant, target, schema, tables, rows, FINGERPRINT, claim=claim, reporter=reporter)
        database = variant.target.database
        systems.append(System(name, place_of(database.name, str(variant.url)), target, native_job(database.dialect)))
    return systems, loads


def load_files(folder: Path, workbench: duckdb.DuckDBPyConnection, files: int) -> tuple[System, LoadedRows]:
    """Writes the articles as so many Parquet files, each with a stretch of ids."""
    place = folder / ARTICLES
    place.mkdir(parents=True)
    (rows,) = workbench.execute("SELECT count(*) FROM articles").fetchone() or (0,)
    for number in range(files):
        chosen = f"SELECT id, text FROM articles WHERE id > {rows * number // files} AND id <= {rows * (number + 1) // files} ORDER BY id"
        workbench.execute(f"COPY ({chosen}) TO '{place / f'{number:03}.parquet'}' (FORMAT parquet)")
    size = sum(file.stat().st_size for file in place.iterdir())
    return System(FILES, files_in(folder), None, None), {"rows": rows, "size": {"total_bytes": size}}
