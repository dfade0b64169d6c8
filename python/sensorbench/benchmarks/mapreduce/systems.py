"""Systems of the study: where the articles lie, how Spark gets to them, and how the database does the job itself."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from sensorbench import _engine, lab
from sensorbench.benchmarks.mapreduce.clusters import ServersAndSpark, can_grow, why_files_are_local, why_fixed
from sensorbench.benchmarks.mapreduce.native_job import NativeJob, native_job
from sensorbench.benchmarks.mapreduce.spec import MapReduceSpec
from sensorbench.dataset import Dataset
from sensorbench.errors import UsageError
from sensorbench.progress import ProgressReporter
from sensorbench.results.described import LoadedRows
from sensorbench.results.ownership import Claim, Owner
from sensorbench.results.planned import SystemOfJob
from sensorbench.runner import DATA_FOLDER, Servers, TargetSpec, Variant, VariantSpec, load_variant, make_variants, prepare_tables
from sensorbench.schemas import load_operations, load_schema
from sensorbench.schemas.engine_types import DriverSchema
from sensorbench.spark.connector import FILES, HDFS, Place, connected, connector_of, connectors, files_in, files_on_hdfs, place_of
from sensorbench.spark.session import Master

OPERATION_SET, SCHEMA = "mapreduce", "inverted_index"
FINGERPRINT = "mapreduce"
ARTICLES = "articles"
FOLDER_ON_HDFS = "/sensorbench"


@dataclass(frozen=True)
class System:
    """A system whose articles are loaded."""

    name: str
    place: Place
    # Of Spark, which has its workers at the database's nodes where its connector can make use of that.
    master: Master
    target: _engine.Target | None
    native: NativeJob | None
    # How many nodes a database of the lab has now.
    nodes: int | None = None


@dataclass(frozen=True)
class LoadedArticles:
    """How loading went, by system, what was created there, and in whose name."""

    loads: dict[str, LoadedRows]
    schemas: dict[str, DriverSchema]
    owner: Owner

    def settle(self, at: Variant) -> None:
        """Waits until a database where data have moved is at rest again. Raises EngineError."""
        target = at.engine_target()
        target.attach(json.dumps(self.schemas[at.target.label]), intent="attach", owner=self.owner.to_json())
        target.settle()


def variants_of(targets: Sequence[TargetSpec], folder: Path, borders: Sequence[int] = ()) -> list[Variant]:
    """A variant for each target; tables whose parts are splits begin with one at each border. Raises UsageError for a database without connector or schema, and for one that is named twice."""
    for target in targets:
        if connector_of(target.database.name) is None:
            raise UsageError(
                f"--target {target.text}: no connector between Spark and {target.database.name} is registered; expected one of "
                f"{', '.join(sorted(connected()))}"
            )
    loaded = [load_schema(SCHEMA, operations=OPERATION_SET, database=target.database.dialect) for target in targets]
    schemas = [schema.split_at(borders) for schema in loaded]
    specs = [VariantSpec(target, schema) for target, schema in zip(targets, schemas, strict=True)]
    labels = [target.label for target in targets]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice:
        raise UsageError(f"--target {twice}: it is named twice")
    return make_variants(specs, folder / DATA_FOLDER)


def described(spec: MapReduceSpec, variants: Sequence[Variant]) -> dict[str, SystemOfJob]:
    """What results say of each system."""
    found = {variant.target.label: _described(variant, grows=spec.grows) for variant in variants}
    if spec.with_files:
        local = why_files_are_local(spec)
        of_files = connectors()[HDFS if local is None else FILES]
        found[FILES] = SystemOfJob(
            database=FILES,
            connector=of_files.title,
            splits=of_files.splits,
            native_job=None,
            grows=local is None,
            why_fixed=f"they are in a folder of this machine: {local}" if local and spec.grows else None,
        )
    return found


def _described(variant: Variant, *, grows: bool) -> SystemOfJob:
    connector, native = connector_of(variant.target.database.name), native_job(variant.target.database.dialect)
    if connector is None:
        raise AssertionError("targets without a connector were refused")
    return SystemOfJob(
        database=variant.target.database.name,
        connector=connector.title,
        splits=connector.splits,
        native_job=native.title if native else None,
        schema_summary=variant.schema.summary,
        grows=grows and can_grow(variant.target),
        why_fixed=why_fixed(variant.target) if grows else None,
    )


def load_systems(
    variants: Sequence[Variant],
    dataset: Dataset,
    workbench: duckdb.DuckDBPyConnection,
    started: Servers,
    reporter: ProgressReporter,
    claim: Claim,
) -> LoadedArticles:
    """Loads the articles into each database. Raises FailedError, UsageError and EngineError."""
    operations = load_operations(OPERATION_SET)
    loaded = LoadedArticles({}, {}, claim.owner)
    for variant in started.at_their_urls(list(variants)):
        columns = variant.schema.loaded_columns(workbench)
        tables = prepare_tables(dataset, variant.schema, columns, workbench, reporter)
        schema = variant.schema.driver_schema(operations, [], columns)
        rows, target = dataset.describe().readings, variant.engine_target()
        name = variant.target.label
        loaded.schemas[name] = schema
        loaded.loads[name] = load_variant(variant, target, schema, tables, rows, FINGERPRINT, claim=claim, reporter=reporter)
    return loaded


def systems_of(variants: Sequence[Variant], servers: ServersAndSpark) -> list[System]:
    """The databases where they are now: the nodes of those that grow are others than before."""
    return [_system(variant, at, servers) for variant, at in zip(variants, servers.at_their_urls(list(variants)), strict=True)]


def _system(variant: Variant, at: Variant, servers: ServersAndSpark) -> System:
    database = variant.target.database
    instance = servers.instances.get(variant.target.server)
    return System(
        name=variant.target.label,
        place=place_of(database.name, str(at.url)),
        master=servers.master_for(variant),
        target=at.engine_target(),
        native=native_job(database.dialect),
        nodes=len(instance.nodes) if instance is not None else None,
    )


def articles_in(folder: Path) -> list[Path]:
    """The files that `load_files` has written into a folder."""
    return sorted((folder / ARTICLES).iterdir())


def load_files(folder: Path, workbench: duckdb.DuckDBPyConnection, files: int) -> LoadedRows:
    """Writes the articles as this many Parquet files, each with a stretch of ids, in the place of those that are there."""
    place = folder / ARTICLES
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    (rows,) = workbench.execute("SELECT count(*) FROM articles").fetchone() or (0,)
    for number in range(files):
        chosen = f"SELECT id, text FROM articles WHERE id > {rows * number // files} AND id <= {rows * (number + 1) // files} ORDER BY id"
        workbench.execute(f"COPY ({chosen}) TO '{place / f'{number:03}.parquet'}' (FORMAT parquet)")
    size = sum(file.stat().st_size for file in place.iterdir())
    return {"rows": rows, "size": {"total_bytes": size}}


def system_of_files(folder: Path, servers: ServersAndSpark) -> System:
    """Files on HDFS, or those that `load_files` has written into a folder."""
    if servers.hdfs is None:
        return System(FILES, files_in(folder), servers.master_for(None), None, None)
    place = files_on_hdfs(lab.url_of(servers.hdfs), FOLDER_ON_HDFS)
    return System(FILES, place, servers.master_for(None), None, None, len(servers.hdfs.nodes))
