"""Loading a variant: create, load, settle, count, size."""

import json
import logging
import time

from sensorbench._engine import Load, Target
from sensorbench.errors import FailedError, NamespaceError, UsageError
from sensorbench.progress import ProgressReporter, Task
from sensorbench.results.described import LoadedPart, LoadedTable, LoadReport, SizeReport
from sensorbench.results.ownership import Claim
from sensorbench.runner.memory import MemoryGuard
from sensorbench.runner.prepare import PreparedTable
from sensorbench.runner.variants import Variant
from sensorbench.schemas.engine_types import DriverSchema

SLICE_S = 0.2
_log = logging.getLogger(__name__)


def load_variant(
    variant: Variant,
    target: Target,
    schema: DriverSchema,
    tables: list[PreparedTable],
    readings: int,
    fingerprint: str,
    *,
    claim: Claim,
    reporter: ProgressReporter,
) -> LoadReport:
    """Loads a variant into its target and tells how that went. Raises NamespaceError, and FailedError when rows are lost."""
    _log_statements(variant, schema)
    target.create(json.dumps(schema), noted(fingerprint, "loading"), intent=claim.intent, owner=claim.owner.to_json())
    rows = sum(table.rows for table in tables)
    guard = MemoryGuard(variant, rows)
    with reporter.task(f"loading {variant.id}", total=rows) as task:
        loaded: list[LoadedTable] = []
        for table in tables:
            _log.info("%s: load %s, %s rows", variant.id, table.table, f"{table.rows:,}")
            load = target.load(table.table, table.open())
            wait_for(load, sum(entry["rows"] for entry in loaded), task, guard)
            went: LoadedPart = json.loads(load.result())
            loaded.append({"table": table.table, "prepare_s": table.prepare_s, "prepared_bytes": table.bytes, **went})
        load_s = sum(entry["duration_s"] for entry in loaded)
        task.advance_to(rows, "settling")
        start_s = time.monotonic()
        _log.info("%s: settle", variant.id)
        target.settle()
        settle_s = time.monotonic() - start_s
        _check_counts(variant, target, tables)
        target.set_fingerprint(noted(fingerprint, "settled"))
        size = known_size(target)
        task.end(f"{rows:,} rows in {load_s:.1f} s, settled after {settle_s:.1f} s more, {_described_size(size)}")
    return {
        "variant": variant.id,
        "tables": loaded,
        "rows": rows,
        "readings": readings,
        "load_s": load_s,
        "settle_s": settle_s,
        "readings_per_s": readings / load_s if load_s else None,
        "settled_readings_per_s": readings / (load_s + settle_s) if load_s + settle_s else None,
        "size": size,
        "description": json.loads(target.describe()),
    }


def _log_statements(variant: Variant, schema: DriverSchema) -> None:
    """Says what creates the tables, and what operations do with them, as the schema has it."""
    _log.info("%s, create: %s", variant.id, json.dumps(schema["create"], ensure_ascii=False))
    for operation in schema["operations"]:
        _log.info("%s, %s: %s", variant.id, operation["name"], json.dumps(operation["statement"], ensure_ascii=False))


def check_namespace(target: Target, claim: Claim) -> None:
    """Raises UsageError when what is wanted of the target's namespace is refused, and TargetError when nobody answers."""
    try:
        target.check(intent=claim.intent, owner=claim.owner.to_json())
    except NamespaceError as error:
        raise UsageError(str(error)) from None


def known_size(target: Target) -> SizeReport:
    """Bytes on disk; None in total, with the reason, where the database does not tell."""
    size: SizeReport = json.loads(target.size())
    return {**size, "total_bytes": None} if size.get("unknown") else size


def _described_size(size: SizeReport) -> str:
    total = size["total_bytes"]
    return "size not known" if total is None else f"{total / 1e6:.1f} MB"


def noted(fingerprint: str, state: str) -> str:
    """What is noted at a target about what lies there."""
    return json.dumps({"fingerprint": fingerprint, "state": state})


def wait_for(load: Load, before: int, task: Task, guard: MemoryGuard) -> None:
    """Waits until a load is over, behind `before` rows of others, and tells how far it is; one that is cut short is stopped."""
    try:
        while not load.wait(SLICE_S):
            guard.check(before + load.rows)
            task.advance_to(before + load.rows, f"{before + load.rows:,} rows")
    except BaseException:
        load.stop()
        load.wait(60.0)
        raise


def _check_counts(variant: Variant, target: Target, tables: list[PreparedTable]) -> None:
    """Rows in must be rows counted."""
    went_in: dict[str, int] = {}
    for table in tables:
        went_in[table.table] = went_in.get(table.table, 0) + table.rows
    for name, rows in went_in.items():
        counted = target.count(name)
        if counted != rows:
            raise FailedError(f"{variant.id}: {rows:,} rows went into {name}, but {counted:,} are there")
