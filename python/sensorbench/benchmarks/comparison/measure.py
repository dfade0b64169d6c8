"""What is done with one variant of a comparison: it is loaded, and each of its runs is measured."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypedDict

import duckdb
import pyarrow as pa

from sensorbench import _engine
from sensorbench._engine import batch_cost
from sensorbench.dataset.dataset import MEASUREMENTS, readings_of
from sensorbench.errors import EngineError, FailedError
from sensorbench.paths import remove_results
from sensorbench.progress import ProgressReporter
from sensorbench.results import ComparisonWriter, has_results, read_run
from sensorbench.results.described import EncodingCost, LoadReport
from sensorbench.results.engine_plan import EnginePlan, KeptRetention
from sensorbench.results.engine_report import EngineRun, Snapshot, elapsed_s
from sensorbench.results.files import release_reserve
from sensorbench.results.freshness import write_markers
from sensorbench.results.manifest import PhaseFigures, now
from sensorbench.results.ownership import Claim, Intent, Owner
from sensorbench.results.retention import write_retention
from sensorbench.results.summary.comparison import QueryPlan, QueryPlans
from sensorbench.results.writer import LOAD_FILE, run_folder, variant_folder
from sensorbench.runner import (
    Comparison,
    ConnectedComparison,
    FreshnessWatch,
    LoadOrder,
    Parameters,
    PreparedTable,
    RetentionWatch,
    Variant,
    build_plan,
    fingerprint_of,
    is_of_registers,
    load_variant,
    marker_write,
    noted,
    parameters_of,
    retained_stream,
    run_plan,
    watch_markers,
    with_keys_of_run,
)
from sensorbench.schemas import Operation, Operations, Schema
from sensorbench.schemas.arrow_types import canonical_table
from sensorbench.schemas.explains import Explain, explain_of
from sensorbench.verification import keep_history
from sensorbench.wording import counted


def query_plans(
    target: _engine.Target, variant: Variant, operations: Operations, names: list[str], parameters: Parameters
) -> QueryPlans:
    """For each operation that reads by one statement, and not what was just written: the plan's text, and the access path in a few
    words; for one that cannot be explained why not. Nothing for databases that have no plans.
    """
    explain = explain_of(variant.target.database.dialect)
    if explain is None:
        return QueryPlans({})
    plans: dict[str, QueryPlan] = {}
    for name in names:
        operation = operations.operation[name]
        work = variant.schema.work(name, operation)
        has_candidates = all(draw in parameters.tables for draw in operation.parameter_sources)
        if operation.writes is not None or not has_candidates or work["derive"] or work.get("for_each") or work.get("tables"):
            continue
        try:
            rows = _explained(target, explain, name, operation, variant.schema.statement(name), parameters)
        except EngineError as error:
            plans[name] = QueryPlan(access=None, text=f"could not be had: {error}")
            continue
        text = "\n".join(str(row[-1]) for row in rows)
        plans[name] = QueryPlan(access=explain.access(text), text=text)
    return QueryPlans(plans)


def _explained(
    target: _engine.Target,
    explain: Explain,
    name: str,
    operation: Operation,
    statement: Mapping[str, Any],
    parameters: Parameters,
) -> list[list[Any]]:
    columns = [{"name": column.name, "type": column.type, "computed": False} for column in explain.columns]
    requested = {
        **operation.driver_operation(name),
        "columns": columns,
        "order": [],
        "statement": {**statement, "statement": f"{explain.words}{statement['statement'].strip()}"},
    }
    rows: list[list[Any]] = json.loads(target.execute_once(json.dumps(requested), _first_values(operation, parameters)))
    return rows


def _first_values(operation: Operation, parameters: Parameters) -> pa.RecordBatchReader:
    """The first candidate for each parameter."""
    drawn = [parameters.tables[draw] for draw in operation.parameter_sources if draw in parameters.tables]
    columns = {name: next(table[name] for table in drawn if name in table.column_names) for name in operation.parameters}
    if not columns:
        return pa.table({}).to_reader()
    return pa.table({name: column.slice(0, 1) for name, column in columns.items()}).to_reader()


# This many readings of one sensor are encoded and decoded, again and again.
READINGS = 50_000


def encoding_cost(
    schema: Schema, tables: Sequence[PreparedTable], readings: int, workbench: duckdb.DuckDBPyConnection
) -> EncodingCost | None:
    """Of a schema with batches: the encoding, the readings of a batch, bytes per reading, and processor time a reading in ns of encoding
    and of decoding. None for other schemas.
    """
    batched = [(fill.batching, table.rows) for fill, table in zip(schema.load_queries(), tables, strict=True) if fill.batching]
    batches = sum(rows for _, rows in batched)
    if not batches:
        return None
    return _described_cost(workbench, str(batched[0][0]["encoding"]), max(1, round(readings / batches)))


def _described_cost(workbench: duckdb.DuckDBPyConnection, encoding: str, size: int) -> EncodingCost:
    cost = _cost(workbench, encoding, size)
    return {
        "encoding": encoding,
        "readings_a_batch": size,
        "bytes_a_reading": cost["bytes"] / cost["readings"],
        "encode_ns": cost["encode_ns"],
        "decode_ns": cost["decode_ns"],
    }


# The encodings of batches that studies compare: that of the sensor-schema study's clients, and two that know what readings are.
ENCODINGS = ("text", "packed", "gorilla")
# This many readings are a batch where no schema says it: ten minutes of seconds.
READINGS_IN_BATCH = 600


def encoding_costs(workbench: duckdb.DuckDBPyConnection) -> list[EncodingCost]:
    """What the readings of one sensor of a dataset cost as batches, by each encoding, whatever databases do with them."""
    return [_described_cost(workbench, encoding, READINGS_IN_BATCH) for encoding in ENCODINGS]


class _BatchCost(TypedDict):
    """What encoding and decoding batches costs, as the engine measured it; CPU time is of a reading."""

    bytes: int
    readings: int
    encode_ns: float
    decode_ns: float


@cache
def _cost(workbench: duckdb.DuckDBPyConnection, encoding: str, batch: int) -> _BatchCost:
    """What `batch_cost` returns, measured once for all variants of a comparison: they share a workbench."""
    found: _BatchCost = json.loads(batch_cost(canonical_table(workbench.sql(_OF_ONE_SENSOR)).to_reader(), encoding, batch))
    return found


_READINGS = readings_of([MEASUREMENTS])
_SERIES = ", ".join(_READINGS.series)
_OF_ONE_SENSOR = f"""
SELECT {_READINGS.time} AS time, value
FROM {_READINGS.relation} SEMI JOIN (SELECT {_SERIES} FROM {_READINGS.relation} ORDER BY ALL LIMIT 1) USING ({_SERIES})
ORDER BY time LIMIT {READINGS}
"""


def writes_anything(comparison: Comparison, names: list[str]) -> bool:
    """Whether a comparison changes what it reads of the dataset: by its operations, or by markers beside them."""
    writes = (comparison.operations.operation[name].writes is not None for name in names if not is_of_registers(name))
    return comparison.workload.freshness is not None or any(writes)


def is_finished(variant: Variant, folder: Path, repeats: int) -> bool:
    """Whether results in `folder` have all of a variant: its load, and as many complete runs as wanted."""
    runs = [] if variant.only_loads else [run_folder(folder, variant.id, repeat) for repeat in range(1, repeats + 1)]
    return (variant_folder(folder, variant.id) / LOAD_FILE).exists() and all(is_complete(run) for run in runs)


def is_complete(run: Path) -> bool:
    """Whether a run is there that came to its end."""
    return has_results(run) and read_run(run).state == "complete"


def load_one(
    connected: ConnectedComparison,
    variant: Variant,
    tables: list[PreparedTable],
    writer: ComparisonWriter,
    reporter: ProgressReporter,
    *,
    intent: Intent,
    repeats: Sequence[int],
    was_interrupted: bool,
) -> LoadReport | None:
    """Loads a variant, unless its data lie there, and asks for the plans of its queries.

    Args:
        connected: the comparison, with the variant's server up.
        variant: what is loaded.
        tables: its rows.
        writer: of the results.
        reporter: reports progress.
        intent: what is wanted of the target's namespace.
        repeats: the numbers of the runs that are measured on what is loaded.
        was_interrupted: whether a run that was cut short has written: it would write the same rows again beside those, of which not all are known.

    Returns:
        How it was loaded; None if its data lay there.

    Raises:
        FailedError: if it cannot be loaded, and where its rows did not become as wide as its schema says.

    """
    target, fingerprint = (
        connected.targets[variant.id],
        fingerprint_of(connected.comparison.dataset.fingerprint, connected.schemas[variant.id], variant),
    )
    has_load = (writer.variant_folder(variant.id) / LOAD_FILE).exists()
    if was_interrupted and has_load:
        reporter.say(f"  {variant.id}: loaded again with all of its runs, because a run that was interrupted had written")
    elif has_load and target.fingerprint() == noted(fingerprint, "settled"):
        # Also what --replace would load again is used when just that is there.
        used = "resume" if intent == "resume" and variant.temporary is None else "attach"
        target.attach(json.dumps(connected.schemas[variant.id]), intent=used, owner=writer.owner.to_json())
        reporter.say(f"  {variant.id}: already loaded")
        return None
    if writes_anything(connected.comparison, connected.names):
        # What earlier runs wrote is gone with the data that they wrote it to: they are measured again.
        for repeat in repeats:
            remove_results(writer.run_folder(variant.id, repeat))
    if variant.temporary is not None:
        variant.temporary.parent.mkdir(parents=True, exist_ok=True)
    described = connected.comparison.dataset.describe()
    readings = described.readings
    claim = claim_of(variant, writer.owner, intent)
    load = load_variant(
        variant,
        target,
        connected.schemas[variant.id],
        tables,
        readings,
        fingerprint,
        claim=claim,
        reporter=reporter,
        with_snapshot=connected.comparison.snapshots,
        values_per_reading=described.values_per_reading,
        generators=connected.comparison.generators,
        order=LoadOrder(limit_s=connected.comparison.max_load_s, batches=variant.batches),
    )
    width = variant.schema.row_width()
    if width is not None and (why := width.why_not_as_reported(load["size"].get("largest_partitions", {}))):
        raise FailedError(f"{variant.id}: {why}")
    cost = encoding_cost(variant.schema, tables, readings, connected.workbench)
    writer.write_load(variant.id, {**load, "encoding": cost} if cost else load)
    if not variant.only_loads:
        queried = [name for name in connected.names if variant.answers(name)]
        plans = query_plans(target, variant, connected.comparison.operations, queried, connected.parameters)
        if plans.root:
            writer.write_plans(variant.id, plans)
    return load


def claim_of(variant: Variant, owner: Owner, intent: Intent) -> Claim:
    """What is wanted of a variant's namespace. One that lies below the results is this folder's own, also where a marker of an earlier
    version does not say so.
    """
    return Claim(owner, "replace" if variant.temporary is not None and intent == "resume" else intent)


def run_one(
    connected: ConnectedComparison, variant: Variant, repeat: int, writer: ComparisonWriter, reporter: ProgressReporter
) -> None:
    """Measures one run of a variant, unless that was done before."""
    comparison = connected.comparison
    folder = writer.run_folder(variant.id, repeat)
    if is_complete(folder):
        reporter.say(f"  {variant.id}, run {repeat}: already measured")
        return
    remove_results(folder)
    created = now()
    parameters = with_keys_of_run(connected.parameters, comparison.operations, created, repeat)
    plan = build_plan(comparison.operations, variant.schema, parameters, variant.workload(comparison.workload), repeat - 1)
    writer.variant_folder(variant.id).mkdir(parents=True, exist_ok=True)
    with (
        reporter.task(f"{variant.id}, run {repeat} of {comparison.workload.repetitions}", total=1.0) as task,
        _markers_beside(connected, variant, repeat) as markers,
        _retention_beside(connected, variant, parameters) as retention,
    ):

        def follow(run: EngineRun, snapshot: Snapshot) -> None:
            task.advance_to(*_progress(snapshot, plan))
            if retention is not None:
                retention.advance(run, snapshot)

        def keep(run: EngineRun, is_complete: bool) -> None:
            keep_history(connected, variant, folder, run, plan, parameters, is_complete=is_complete)
            if markers is not None:
                write_markers(folder, markers.end(run))
            if retention is not None:
                write_retention(folder, retention.end(run, is_complete=is_complete))

        run = run_plan(
            connected.targets[variant.id],
            variant,
            plan,
            list(parameters.tables.values()),
            folder,
            connected.servers,
            follow,
            number=repeat,
            generators=comparison.generators,
            temperature="hot" if comparison.workload.has_warmup else "warm",
            created=created,
            described={"retention": _described(variant)} if retention is not None else None,
            at_end=keep,
            on_full_disk=lambda: release_reserve(writer.folder),
        )
        task.end(_outcome(run.manifest.phase_figures[-1]))


@contextmanager
def _markers_beside(connected: ConnectedComparison, variant: Variant, repeat: int) -> Iterator[FreshnessWatch | None]:
    """Markers of freshness while the context lasts, where the workload wants them."""
    comparison = connected.comparison
    freshness = comparison.workload.freshness
    if freshness is None:
        yield None
        return
    write = str(marker_write(comparison))
    parameters = parameters_of(comparison.operations, [write], connected.workbench, "workload.freshness")
    markers = watch_markers(connected.targets[variant.id], comparison, variant, parameters, freshness, repeat - 1)
    try:
        yield markers
    finally:
        markers.close()


@contextmanager
def _retention_beside(
    connected: ConnectedComparison, variant: Variant, parameters: Parameters
) -> Iterator[RetentionWatch | None]:
    """What expires while the context lasts, where the workload wants it."""
    comparison = connected.comparison
    wanted = comparison.workload.retention
    if wanted is None:
        yield None
        return
    watch = RetentionWatch(retained_stream(connected.targets[variant.id], comparison, variant, parameters, wanted))
    try:
        yield watch
    finally:
        watch.close()


def _described(variant: Variant) -> KeptRetention:
    """By what means readings of a variant expire and are rolled up."""
    declared = variant.schema.file.retention
    if declared is None:
        raise AssertionError("a schema without retention is refused before anything runs")
    return {
        "expires_by": declared.expires_by,
        "rolls_up_by": declared.rolls_up_by,
        "is_kept_by_database": declared.rollup_rows is not None and declared.rollup is None,
    }


def _progress(snapshot: Snapshot, plan: EnginePlan) -> tuple[float, str]:
    """Share of the current phase that is done, and what is going on."""
    number = snapshot["current_phase"]
    if number >= len(plan["phases"]):
        return 1.0, "ending"
    phase, planned = snapshot["phases"][number], plan["phases"][number]
    operations, duration_s = planned.get("operations"), planned.get("duration_s")
    by_count = phase["started"] / operations if operations else 0.0
    by_time = elapsed_s(snapshot) / duration_s if duration_s else 0.0
    return min(1.0, max(by_count, by_time)), f"{phase['name'].replace('_', ' ')}: {phase['started']:,} operations"


def _outcome(phase: PhaseFigures) -> str:
    counts = [operation["counts"] for operation in phase.operations.values()]
    ok, bad = sum(count["ok"] for count in counts), sum(count["error"] + count["timeout"] for count in counts)
    duration_s = ((phase.end_ns or 0) - (phase.start_ns or 0)) / 1e9
    failed = f", {bad:,} failed or timed out" if bad else ""
    return f"{counted(ok, 'operation')} in {duration_s:.1f} s{failed}"
