"""Loading a variant: create, load, settle, count, size."""

import hashlib
import json
import logging
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from sensorbench import lab
from sensorbench._engine import Target
from sensorbench.errors import FailedError, LostGeneratorError, NamespaceError, UsageError
from sensorbench.progress import ProgressReporter, Task
from sensorbench.results.checksums import new_checksum_of
from sensorbench.results.described import (
    BatchedLoad,
    LoadedPart,
    LoadedTable,
    LoaderReport,
    LoadProgress,
    LoadReport,
    SizeReport,
    SnapshotReport,
)
from sensorbench.results.ownership import Claim
from sensorbench.runner.batched_load import BatchLoader
from sensorbench.runner.generators.shared_load import shared_load
from sensorbench.runner.generators.sharing import ALONE, LoadGenerators, why_undivided_by
from sensorbench.runner.load_memory import memory_watch
from sensorbench.runner.memory import MemoryGuard
from sensorbench.runner.prepare import PreparedTable
from sensorbench.runner.tool_load import load_by_tool, settle_tool
from sensorbench.runner.variants import Variant
from sensorbench.runner.versions import check_version
from sensorbench.runner.waiting import wait_for
from sensorbench.runner.write_batches import WriteBatches
from sensorbench.schemas.engine_types import DriverSchema
from sensorbench.schemas.recommended_batches import recommended_for
from sensorbench.wording import counted

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LoadOrder:
    """How a driver is handed rows.

    Args:
        workers: how many load at the same time, each by connections of its own: each takes the next batch when it has sent one.
        batch_rows: rows of a batch, at most; as they were prepared if None.
        period_s: how often it is noted how many rows are in, in s; never if None.
        limit_s: how long the rows may take to go in, in s; as long as they do if None.
        batches: batches that are acknowledged one by one, instead of `workers` and `batch_rows`.

    """

    workers: int = 1
    batch_rows: int | None = None
    period_s: float | None = None
    limit_s: float | None = None
    batches: WriteBatches | None = None

    @property
    def writers(self) -> int:
        """How many targets load at the same time."""
        return self.workers if self.batches is None else self.batches.writers


@dataclass
class _Progress:
    """Notes how many rows are in, once a period, and ends a load that takes too long."""

    variant: str
    rows: int
    period_s: float | None
    limit_s: float | None
    start_s: float = field(default_factory=time.monotonic)
    noted: list[LoadProgress] = field(default_factory=list)

    def note(self, rows: int) -> None:
        elapsed_s = time.monotonic() - self.start_s
        if self.limit_s is not None and elapsed_s > self.limit_s:
            raise FailedError(
                f"{self.variant}: loading was stopped at its time limit of {self.limit_s:g} s with {rows:,} of {self.rows:,} rows in; "
                "give more time with --max-load-time"
            )
        if self.period_s is not None and elapsed_s >= self.period_s * (len(self.noted) + 1):
            self.noted.append({"time_s": time.time(), "elapsed_s": elapsed_s, "rows": rows})


@dataclass(frozen=True)
class _RowsIn:
    """Tables that were loaded, and what the way in which that was done reports besides."""

    tables: list[LoadedTable]
    loader: LoaderReport | None = None
    batched: BatchedLoad | None = None


@dataclass(frozen=True)
class _Loading:
    """The ways in which the rows of a variant get into its tables. `targets` are those that load at the same time; `sized` is asked for the size."""

    variant: Variant
    targets: Sequence[Target]
    sized: Target
    tables: list[PreparedTable]
    order: LoadOrder
    task: Task
    guard: MemoryGuard
    progress: _Progress

    def load(self, generators: LoadGenerators | None) -> _RowsIn:
        """Loads in the way that variant and order ask for; `generators` share it where there are some."""
        if self.variant.target.loader:
            return self._by_tool()
        if self.order.batches is not None:
            return self._in_batches(self.order.batches)
        return self.send(generators)

    def send(self, generators: LoadGenerators | None) -> _RowsIn:
        """Loads by the driver; `generators` share it where there are some."""
        return self._by_driver() if generators is None else self._by_generators(generators)

    def _by_tool(self) -> _RowsIn:
        went = load_by_tool(self.variant, self.targets[0], self.tables, self.task, self.guard)
        return _RowsIn(went.tables, loader=went.loader)

    def _in_batches(self, batches: WriteBatches) -> _RowsIn:
        loader = BatchLoader(self.targets, batches, lambda: known_size(self.sized)["total_bytes"], self._note)
        loaded = [loader.load(table) for table in self.tables]
        known = recommended_for(self.variant.target.database.name, self.variant.target.database.dialect)
        return _RowsIn(loaded, batched=loader.report(known.rows if known is not None else None))

    def _by_driver(self) -> _RowsIn:
        target, *others = self.targets
        loaded: list[LoadedTable] = []
        for table in self.tables:
            _log.info("%s: load %s, %s rows", self.variant.id, table.table, f"{table.rows:,}")
            load = target.load(table.table, table.open(), with_targets=others, batch_rows=self.order.batch_rows)
            wait_for(load, _rows(loaded), self.task, self.guard, self.progress.note)
            loaded.append(_loaded(table, json.loads(load.result())))
        return _RowsIn(loaded)

    def _by_generators(self, generators: LoadGenerators) -> _RowsIn:
        loaded: list[LoadedTable] = []
        count, table = generators.count, self.tables[0].table if self.tables else ""
        try:
            with shared_load(
                self.targets[0], count, generators.on, batch_rows=self.order.batch_rows, sends_parts=not generators.are_here
            ) as load:
                for prepared in self.tables:
                    table = prepared.table
                    _log.info("%s: load %s, %s rows, by %s load generators", self.variant.id, table, f"{prepared.rows:,}", count)
                    whole, each = load.load(prepared, lambda rows: self._note(_rows(loaded) + rows))
                    entry = _loaded(prepared, whole)
                    entry["generators"] = each
                    loaded.append(entry)
        except LostGeneratorError as error:
            raise FailedError(
                f"{self.variant.id}, table {table}: {error}; the load has failed, and none of its rows are sent again; load again with --resume or --replace"
            ) from None
        return _RowsIn(loaded)

    def _note(self, rows: int) -> None:
        """Notes how many rows of all tables are in."""
        self.guard.check(rows)
        self.task.advance_to(rows, f"{rows:,} rows")
        self.progress.note(rows)


def _rows(loaded: Sequence[LoadedTable]) -> int:
    return sum(entry["rows"] for entry in loaded)


def fingerprint_of(data: str, schema: DriverSchema, variant: Variant) -> str:
    """A digest that changes when anything about what lies at a target does; `data` is the fingerprint of the dataset."""
    what = json.dumps(
        [
            data,
            schema,
            variant.schema.file.model_dump(mode="json"),
            variant.schema.parameters,
            # What a driver loaded is as it was before there were tools.
            *([variant.target.loader] if variant.target.loader else []),
        ],
        sort_keys=True,
    )
    return hashlib.sha256(what.encode()).hexdigest()[:16]


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
    with_snapshot: bool = False,
    values_per_reading: float = 1,
    order: LoadOrder = LoadOrder(),
    generators: LoadGenerators = ALONE,
) -> LoadReport:
    """Loads a variant into its target and returns how that went. Several load `generators` share it where the database permits that.

    Raises NamespaceError, FailedError when rows or a load generator are lost, and UsageError where the schema needs a later version of the database.
    """
    _log_statements(variant, schema)
    check_version(variant, target)
    undivided = why_undivided_by(generators, variant)
    if undivided is not None:
        reporter.say(f"  {undivided}")
    before = _snapshot(variant, target) if with_snapshot else None
    target.create(json.dumps(schema), noted(fingerprint, "loading"), intent=claim.intent, owner=claim.owner.to_json())

    def another() -> Target:
        other = variant.engine_target()
        other.attach(json.dumps(schema), intent="resume", owner=claim.owner.to_json())
        return other

    others = [another() for _ in range(order.writers - 1)]
    # A target does one thing at a time: where it loads, asking it for the size would wait for the last batch.
    sized = another() if order.batches is not None and not variant.target.database.embedded else target
    rows = sum(table.rows for table in tables)
    guard, memory = MemoryGuard(variant, rows), memory_watch(variant, target.url)
    with reporter.task(f"loading {variant.id}", total=rows) as task, memory.watching():
        progress = _Progress(variant.id, rows, order.period_s, order.limit_s)
        loading = _Loading(variant, [target, *others], sized, tables, order, task, guard, progress)
        went = loading.load(generators if generators.count > 1 and undivided is None else None)
        load_s = sum(entry["duration_s"] for entry in went.tables)
        task.advance_to(rows, "settling")
        start_s = time.monotonic()
        _log.info("%s: settle", variant.id)
        settle_tool(variant, target, lambda: guard.check(rows))
        target.settle()
        settle_s = time.monotonic() - start_s
        held = _counted(variant, target, tables)
        target.set_fingerprint(noted(fingerprint, "settled"))
        size = known_size(target)
        snapshot = _snapshot(variant, target, before) if before else None
        lost = f", {rows - held:,} of them lost" if held < rows else ""
        task.end(f"{counted(rows, 'row')} in {load_s:.1f} s{lost}, settled after {settle_s:.1f} s more, {_described_size(size)}")
    there = readings if held == rows else round(readings * held / rows)
    report: LoadReport = {
        "variant": variant.id,
        "tables": went.tables,
        "rows": held,
        "readings": there,
        "load_s": load_s,
        "settle_s": settle_s,
        "values_per_reading": values_per_reading,
        "readings_per_s": there / load_s if load_s else None,
        "settled_readings_per_s": there / (load_s + settle_s) if load_s + settle_s else None,
        "size": size,
        "description": json.loads(target.describe()),
        "schema_sha256": new_checksum_of(variant.schema.path),
    }
    if went.loader is not None:
        report["loader"] = went.loader
    if held < rows:
        report["rows_sent"] = rows
    if snapshot:
        report["snapshot"] = snapshot
    if undivided is not None:
        report["undivided"] = undivided
    if progress.noted:
        report["progress"] = progress.noted
    if went.batched is not None:
        report["batched"] = went.batched
    if (used := memory.report()) is not None:
        report["memory"] = used
    return report


def load_more(
    variant: Variant,
    target: Target,
    tables: list[PreparedTable],
    title: str,
    *,
    reporter: ProgressReporter,
    generators: LoadGenerators = ALONE,
) -> None:
    """Loads further rows by the driver into tables that `load_variant` has loaded. They are not settled.

    Args:
        variant: what was loaded.
        target: where, with its tables.
        tables: the rows.
        title: of the task that the reporter shows.
        reporter: reports progress.
        generators: those that share the load, where they share that of the variant.

    Raises:
        FailedError: a load generator is lost, or there is too little memory or disk.
        EngineError: for what the database refuses.

    """
    rows = sum(table.rows for table in tables)
    is_shared = generators.count > 1 and why_undivided_by(generators, variant) is None
    guard = MemoryGuard(variant, rows)
    with reporter.task(title, total=rows) as task:
        progress = _Progress(variant.id, rows, None, None)
        loading = _Loading(variant, [target], target, tables, LoadOrder(), task, guard, progress)
        loading.send(generators if is_shared else None)


def _loaded(table: PreparedTable, went: LoadedPart) -> LoadedTable:
    return {
        "table": table.table,
        "prepare_s": table.prepare_s,
        "prepared_bytes": table.bytes,
        "rows": went["rows"],
        "duration_s": went["duration_s"],
        "batches": went["batches"],
        "batch_s": went["batch_s"],
        "retries": went.get("retries", 0),
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
    """Bytes on disk; None in total, with the reason, where the database does not report it."""
    size: SizeReport = json.loads(target.size())
    return {**size, "total_bytes": None} if size.get("unknown") else size


def _described_size(size: SizeReport) -> str:
    total = size["total_bytes"]
    return "size not known" if total is None else f"{total / 1e6:.1f} MB"


def noted(fingerprint: str, state: str) -> str:
    """What is noted at a target about what lies there."""
    return json.dumps({"fingerprint": fingerprint, "state": state})


def _counted(variant: Variant, target: Target, tables: list[PreparedTable]) -> int:
    """How many rows are there, by looking at them: all that went in, unless the variant may lose some."""
    went_in: Counter[str] = Counter()
    missing: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for table in tables:
        went_in[table.table] += table.rows
        missing[table.table].update(table.missing)
    there = 0
    for name, rows in went_in.items():
        held = target.count(name, missing[name])
        if held != rows and not (variant.may_lose_rows and held < rows):
            raise FailedError(f"{variant.id}: {rows:,} rows went into {name}, but {held:,} are there")
        there += held
    return there


def _snapshot(variant: Variant, target: Target, before: SnapshotReport | None = None) -> SnapshotReport | None:
    """What a snapshot of a server takes that was started for this run alone, beyond what it took before; None of other servers, and of those that
    have none.
    """
    instance = lab.instance_at(target.url) if variant.target.place == "started" else None
    took = lab.snapshot(instance.name) if instance else None
    if took is None:
        return None
    if before is None:
        return {"total_bytes": took.total_bytes, "took_s": took.took_s}
    return {
        "total_bytes": took.total_bytes - before["total_bytes"],
        "took_s": took.took_s,
        "others_bytes": before["total_bytes"],
        "others_took_s": before["took_s"],
    }
