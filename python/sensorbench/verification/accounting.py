"""Exact accounting: every reading that a database acknowledged is there at the end, once or as often as its rule for duplicates says.

What was delivered is known without asking: the parameters of each write are a function of the plan and its number, and the log says when it was
sent, when it ended and how. DuckDB makes of it what must be there (`accounting_queries.py`). The database is then read whole, in ranges of time of each
series, and compared by number of rows and sum of their hashes; where a range differs, each of its readings is read by itself.

Deliveries lie in a database on disk, sorted by reading, which spills; what must be there is made of a part of the readings at a time, read, compared and
added up, so that DuckDB keeps within its limit of memory. `make bench-accounting` measures what the whole process takes.
"""

import json
import math
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sensorbench import _engine
from sensorbench.dataset import Dataset
from sensorbench.results import RunResult
from sensorbench.results.engine_plan import EnginePlan
from sensorbench.results.freshness import read_markers
from sensorbench.results.summary.accounting import Lateness, RetentionAccounting, Rule, StreamAccounting
from sensorbench.results.summary.comparison import AnswerProblem
from sensorbench.runner import Parameters, as_json
from sensorbench.schemas import Operation, Operations, Schema
from sensorbench.schemas.arrow_types import arrow_schema, canonical_table
from sensorbench.schemas.types import canonical_columns
from sensorbench.verification.accounting_queries import (
    CUT,
    DIFFERENT,
    GROUP,
    JUDGE,
    LATENESS,
    LOADED_NS,
    PLACE,
    RIGHT,
    SINGLE,
    WORD,
    expect,
)
from sensorbench.verification.answers import shown
from sensorbench.verification.ask_each import ask_each
from sensorbench.verification.retention import Retained, aged, enter_counted, expire, rolled_up

CONCURRENCY = 16
# This many deliveries are entered at a time, this many are accounted for at a time, and this many ranges are queried.
_BATCH, _PART, _RANGES = 50_000, 250_000, 20_000
# Readings of a range, at most, and readings of ranges that differ that are looked at one by one.
_READINGS_OF_A_RANGE, _MAX_EXAMINED = 500, 20_000
# What DuckDB may take. Each thread needs some of it.
_MEMORY, _MAX_THREADS = "512MB", 4
_MAX_EXAMPLES = 10
# Runs have clocks of their own, and follow each other: what happens in one is later than everything in the run before.
_BETWEEN_RUNS_NS = 10**16
# What is read of the log.
_LOG = {"outcome": pa.string(), "start_ns": pa.uint64(), "end_ns": pa.uint64()}
_Column: TypeAlias = pa.Array | pa.ChunkedArray
# What may explain what was found; whatever `last` explains is explained by `any`, too.
_RULES: tuple[Rule, ...] = ("last", "first", "both", "highest", "distinct", "any")
# Of a part of the readings: what was delivered in runs, the ranges that were read, the readings that were looked at one by one, those that must be gone,
# and the ranges that differ.
_SUMS = (
    """
    SELECT coalesce(sum(acknowledged), 0) AS acknowledged, coalesce(sum(deliveries - acknowledged), 0) AS unknown,
      count(*) FILTER (WHERE acknowledged > 0) AS readings, coalesce(sum(greatest(acknowledged - 1, 0)), 0) AS again FROM grouped
    WHERE coalesce(last_start_ns, 0) > {loaded}
    """,
    """
    SELECT count(*) AS segments, count(*) FILTER (WHERE found_rows IS NULL) AS unanswered_segments
    FROM ranges LEFT JOIN found USING (part)
    """,
    """
    SELECT count(*) FILTER (WHERE NOT is_sure) AS undecided,
      count(*) FILTER (WHERE acknowledged = 0 AND found_rows > 0 AND NOT (is_expired OR may_be_gone)) AS unknown_found
    FROM looked_at
    """,
    "SELECT count(*) FILTER (WHERE is_expired) AS expired, count(*) FILTER (WHERE NOT (is_expired OR may_be_gone)) AS kept FROM expected",
    """
    SELECT count(*) FILTER (WHERE before < {max} AND part NOT IN (SELECT part FROM looked_at WHERE verdict <> 'right')) AS unstable
    FROM different
    """,
    """
    SELECT count(*) FILTER (WHERE before >= {max}) AS unexamined,
      coalesce(sum(readings) FILTER (WHERE before < {max}), 0) AS examined
    FROM different JOIN ranges USING (part)
    """,
)
_WRONG = """
CREATE TABLE wrong AS
SELECT {key}, CAST(0 AS BIGINT) AS deliveries, CAST(0 AS BIGINT) AS expected_rows, CAST(0 AS BIGINT) AS found_rows, '' AS verdict
FROM deliveries LIMIT 0
"""
_LATE = "CREATE TABLE late (late_s DOUBLE, places BIGINT)"
# Readings of which several rules say different things.
_DISPUTABLE = "deliveries > 1 AND NOT is_expired AND verdict <> 'aged'"
# This many deliveries are looked at first where the end of those that are alike is looked for.
_ALIKE = 1000
_QUANTILES = {"p50": 0.5, "p99": 0.99, "max": 1.0}
_SAYS = {
    "lost": "it was acknowledged, and is not there",
    "wrong_winner": "it has the value of a delivery that should not count",
    "extra": "it is there more often than it should be",
    "other_value": "it has a value that was never delivered",
    "not_expired": "it is older than what is kept, and is there",
}


@dataclass(frozen=True)
class Accounted:
    """What became of a stream, and examples of what is wrong."""

    accounting: StreamAccounting
    problems: list[AnswerProblem]


@dataclass(frozen=True)
class Writes:
    """The runs of a variant that wrote to the data which lie there, each with its plan."""

    names: list[str]
    runs: list[RunResult]
    plans: list[EnginePlan]
    parameters: Parameters


def account(
    target: _engine.Target,
    dataset: Dataset,
    operations: Operations,
    schema: Schema,
    write: str,
    writes: Writes,
    folder: Path,
    *,
    has_markers: bool = False,
    late_after_s: float | None = None,
    retained: Retained | None = None,
) -> Accounted:
    """Accounts for all readings that one kind of write delivered.

    Args:
        target: where they were written; what it acknowledged is visible.
        dataset: what was loaded before.
        operations: with the write and the question that it is read by.
        schema: how they are asked.
        write: its name.
        writes: the runs.
        folder: where the accounts lie until they are closed.
        has_markers: whether the runs have markers, which were made by this write.
        late_after_s: how much older than the newest a reading is that is called late.
        retained: what expired, where readings do.

    """
    with (
        tempfile.TemporaryDirectory(prefix="accounting-", dir=folder) as place,
        duckdb.connect(f"{place}/accounts.duckdb") as accounts,
    ):
        threads = min(os.cpu_count() or 1, _MAX_THREADS)
        accounts.execute(f"SET memory_limit = '{_MEMORY}'; SET threads = {threads}; SET temp_directory = '{place}/spilled'")
        accounts.execute("SET preserve_insertion_order = false")
        books = _Accounts(accounts, target, operations, schema, write, retained)
        books.enter(writes, has_markers=has_markers)
        books.enter_loaded(dataset)
        return books.close(late_after_s)


class _Accounts:
    """The accounts of one kind of write, in tables of a DuckDB database: `arrivals` are deliveries in the order in which they were put down, `deliveries`
    the same sorted by reading. Of one part of the readings after the other there are `delivered`, `expected`, `ranges`, `found` and `looked_at`.
    """

    def __init__(
        self,
        accounts: duckdb.DuckDBPyConnection,
        target: _engine.Target,
        operations: Operations,
        schema: Schema,
        write: str,
        retained: Retained | None,
    ) -> None:
        self._sql = accounts
        self._target = target
        self._operations = operations
        self._schema = schema
        self._write = write
        self._retained = retained
        self._operation: Operation = operations.operation[write]
        self._reader = str(self._operation.read_by)
        self._declared = schema.duplicate_rule_at(json.loads(target.describe())["settings"])
        self._rule: Rule = self._declared or "last"
        self._series = ", ".join(map(_quoted, self._operation.series))
        self._time = _quoted(self._operation.time)
        self._key = ", ".join(filter(None, [self._series, self._time]))
        self._hashed = [column.name for column in operations.operation[self._reader].columns if not column.computed]
        values = [name for name in self._hashed if name != self._operation.time]
        self._value = values[0] if values else self._operation.time
        self._arrived = 0
        self._totals: Counter[str] = Counter()
        self._may_explain = [rule for rule in _RULES if rule != self._rule]

    def enter(self, writes: Writes, *, has_markers: bool) -> None:
        """Enters what the runs delivered, and their markers."""
        number = writes.names.index(self._write)
        nothing = pa.table({name: pa.array([], of) for name, of in _LOG.items()})
        self._append(self._entries(arrow_schema(self._operation.parameters).empty_table(), nothing, 0))
        for of_run, (run, plan) in enumerate(zip(writes.runs, writes.plans, strict=True)):
            markers = read_markers(run.folder) if has_markers else None
            if markers is not None:
                self._append(self._entries(markers, markers, _BETWEEN_RUNS_NS * of_run))
            for phase in range(len(run.manifest.phases)):
                for log in _logged(run, phase, number):
                    rows = _engine.parameters(as_json(plan), writes.parameters.readers(), phase, number, log["k"].to_pylist())
                    self._append(self._entries(pa.Table.from_batches([rows]), log, _BETWEEN_RUNS_NS * of_run))

    def _entries(self, rows: pa.Table, log: pa.Table, later_ns: int) -> pa.Table:
        """A line for each reading of each write. Of a write of several readings, all have its outcome."""
        readings = rows.num_rows // max(1, log.num_rows)
        of_write = pa.array(np.repeat(np.arange(log.num_rows), readings))
        start, end = (pc.add(log[name].cast(pa.int64()), later_ns).take(of_write) for name in ("start_ns", "end_ns"))
        return self._table(rows, pc.equal(log["outcome"], "ok").take(of_write), start, end)

    def _table(self, table: pa.Table, is_ok: _Column, start_ns: _Column, end_ns: _Column) -> pa.Table:
        hashes = _engine.row_hashes(table.to_reader(), self._hashed)["hash"]
        value = table[self._value]
        is_number = pa.types.is_floating(value.type) or pa.types.is_integer(value.type)
        ranked = value.cast(pa.float64()) if is_number else pa.nulls(len(value), pa.float64())
        columns = {"start_ns": start_ns, "end_ns": end_ns, "is_ok": is_ok, "hash": hashes, "ranked": ranked}
        return pa.table({**columns, **{name: table[name] for name in self._operation.key}})

    def _append(self, entries: pa.Table) -> None:
        self._sql.register("entries", entries)
        self._sql.execute("CREATE TABLE IF NOT EXISTS arrivals AS SELECT CAST(0 AS BIGINT) AS arrival, * FROM entries LIMIT 0")
        self._sql.execute(f"INSERT INTO arrivals SELECT {self._arrived} + row_number() OVER (), * FROM entries")
        self._sql.unregister("entries")
        self._arrived += entries.num_rows

    def enter_loaded(self, dataset: Dataset) -> None:
        """Enters what the dataset has of the time and series that were written: it was there first. Where readings expire, all of it: old ones must
        be gone.
        """
        (first,) = self._one(f"SELECT min({self._time}) FROM arrivals") if self._retained is None else (None,)
        relation = str(self._operation.writes)
        columns = ", ".join(map(_quoted, dict.fromkeys([*self._operation.key, *self._hashed])))
        with dataset.connect() as workbench:
            loaded = workbench.sql(
                f"SELECT {columns} FROM {relation} WHERE CAST($first AS TIMESTAMP) IS NULL OR {self._time} >= CAST($first AS TIMESTAMP)",
                params={"first": first},
            )
            canonical = arrow_schema(canonical_columns(loaded))
            for batch in loaded.to_arrow_reader(_BATCH):
                before = pa.array(np.full(batch.num_rows, LOADED_NS, dtype=np.int64))
                rows = pa.Table.from_batches([batch]).cast(canonical)
                self._append(self._table(rows, pa.array(np.full(batch.num_rows, True)), before, before))

    def close(self, late_after_s: float | None) -> Accounted:
        """Compares with what is there, and says what became of the readings."""
        self._sql.execute(
            f"CREATE TABLE deliveries AS FROM arrivals ORDER BY {self._key}, start_ns, arrival; DROP TABLE arrivals"
        )
        self._sql.execute(_WRONG.format(key=self._key))
        for first, end in self._parts(self._operation.key):
            self._sql.execute(
                f"CREATE OR REPLACE TEMP TABLE delivered AS FROM deliveries WHERE rowid >= {first} AND rowid < {end};"
                f"CREATE OR REPLACE TEMP TABLE next_reading AS SELECT {self._key} FROM deliveries WHERE rowid = {end}"
            )
            self._compare()
            self._add_up()
        return self._balance(late_after_s)

    def _parts(self, columns: Sequence[str]) -> Iterator[tuple[int, int]]:
        """The numbers of the deliveries of each part: from the first one on, until before the other. Those that are alike in some columns are in
        one part.
        """
        first = 0
        while first < self._arrived:
            end = min(first + _PART, self._arrived)
            yield first, (end := self._end_of_alike(columns, end))
            first = end

    def _end_of_alike(self, columns: Sequence[str], end: int) -> int:
        """The number of the first delivery, from number `end` on, that differs from the one before `end`."""
        names = ", ".join(map(_quoted, columns))
        differs = " OR ".join(f"{_quoted(name)} IS DISTINCT FROM ${number}" for number, name in enumerate(columns, 1))
        looked_at = _ALIKE
        while end < self._arrived:
            values = self._one(f"SELECT {names} FROM deliveries WHERE rowid = {end - 1}") if columns else ()
            within = f"rowid >= {end} AND rowid < {end + looked_at}"
            (found,) = self._one(f"SELECT min(rowid) FROM deliveries WHERE {within} AND ({differs or 'false'})", values)
            if found is not None:
                return int(found)
            end, looked_at = min(end + looked_at, self._arrived), 2 * looked_at
        return end

    def _compare(self) -> None:
        """Compares a part of the readings with what is there."""
        self._sql.execute(GROUP.format(key=self._key, word=WORD))
        expect(self._sql, self._rule, self._key, "admitted", "grouped")
        if self._retained is not None:
            enter_counted(self._sql, self._operation, self._rule, self._retained)
        expire(self._sql, self._key, self._time, self._retained)
        self._sql.execute(PLACE.format(key=self._key, time=self._time, partition=self._partition, per_range=_READINGS_OF_A_RANGE))
        series = "".join(f"{_quoted(name)}, " for name in self._operation.series)
        self._sql.execute(CUT.format(series=series, word=WORD))
        self._ask("ranges", "part", "found")
        self._sql.execute(DIFFERENT)
        self._sql.execute(SINGLE.format(key=self._key, max=self._may_be_examined))
        self._ask("single", "number", "found_single")
        same = " AND ".join(f"delivered.{_quoted(name)} = answered.{_quoted(name)}" for name in self._operation.key)
        self._sql.execute(JUDGE.format(right=RIGHT, same=same, aged=aged(self._retained)))

    @property
    def _may_be_examined(self) -> int:
        return max(0, _MAX_EXAMINED - self._totals["examined"])

    def _add_up(self) -> None:
        """Adds what became of a part of the readings to the accounts."""
        verdicts: dict[str, int] = dict(self._sql.execute("SELECT verdict, count(*) FROM looked_at GROUP BY verdict").fetchall())
        self._totals.update(verdicts)
        for query in _SUMS:
            relation = self._sql.execute(query.format(max=self._may_be_examined, loaded=LOADED_NS))
            self._totals.update(dict(zip([name for name, *_ in relation.description or []], relation.fetchall()[0], strict=True)))
        self._sql.execute(
            f"INSERT INTO wrong SELECT {self._key}, deliveries, rows, found_rows, verdict FROM looked_at WHERE verdict <> 'right'"
        )
        self._look_for_explanations()

    def _look_for_explanations(self) -> None:
        """Keeps the rules by which all that was found of readings that were delivered several times is right."""
        self._sql.execute(
            f"CREATE OR REPLACE TEMP TABLE disputed AS FROM grouped SEMI JOIN (FROM looked_at WHERE {_DISPUTABLE}) USING ({self._key})"
        )
        several, wrong = self._one(
            f"SELECT count(*), count(*) FILTER (WHERE verdict NOT IN ('right', 'unanswered')) FROM looked_at WHERE {_DISPUTABLE}"
        )
        self._totals["disputed"] += wrong
        if not several:
            return
        for rule in tuple(self._may_explain):
            expect(self._sql, rule, self._key, "by_rule", "disputed")
            (wrong,) = self._one(
                f"SELECT count(*) FILTER (WHERE NOT ({RIGHT})) "
                f"FROM by_rule JOIN (SELECT {self._key}, found_rows, found_hash FROM looked_at WHERE {_DISPUTABLE}) USING ({self._key})"
            )
            if wrong:
                self._may_explain.remove(rule)

    def _balance(self, late_after_s: float | None) -> Accounted:
        totals = self._totals
        retention, problems = self._retention()
        accounting = StreamAccounting(
            write=self._write,
            rule=self._declared,
            readings=totals["readings"],
            acknowledged=totals["acknowledged"],
            again=totals["again"],
            unknown=totals["unknown"],
            segments=totals["segments"],
            unanswered=totals["unanswered_segments"],
            lost=totals["lost"],
            wrong_winners=totals["wrong_winner"],
            extra=totals["extra"],
            other_values=totals["other_value"],
            undecided=totals["undecided"] + totals["aged"],
            unknown_found=totals["unknown_found"],
            unexamined=totals["unexamined"],
            unstable=totals["unstable"],
            explained_by=next(iter(self._may_explain), None) if totals["disputed"] else None,
            lateness=self._lateness(late_after_s),
            retention=retention,
        )
        return Accounted(accounting, [*self._problems(), *problems])

    def _retention(self) -> tuple[RetentionAccounting | None, list[AnswerProblem]]:
        if self._retained is None:
            return None, []
        rollup, problems = rolled_up(self._sql, self._write, self._operation, self._rule, self._retained)
        before = self._retained.before
        found = RetentionAccounting(
            before=before.isoformat() if before else None,
            ttl_s=self._retained.life.ttl_s if self._retained.life else None,
            expired=self._totals["expired"],
            not_expired=self._totals["not_expired"],
            kept=self._totals["kept"],
            rollup=rollup,
        )
        return found, problems

    @property
    def _partition(self) -> str:
        return f"PARTITION BY {self._series}" if self._series else ""

    def _ask(self, table: str, number: str, answers: str) -> None:
        """Asks for the ranges of a table. Answers have `found_rows` and `found_hash`; of what failed there is none."""
        self._sql.execute(f"CREATE OR REPLACE TEMP TABLE {answers} ({number} BIGINT, found_rows BIGINT, found_hash UBIGINT)")
        operation = self._operations.operation[self._reader]
        columns = ", ".join(map(_quoted, operation.parameters))
        for first in count(0, _RANGES):
            wanted = f"{number} >= {first} AND {number} < {first + _RANGES}"
            rows = canonical_table(self._sql.sql(f"SELECT {columns} FROM {table} WHERE {wanted} ORDER BY {number}"))
            if not rows.num_rows:
                return
            given = ask_each(self._target, self._reader, operation, self._schema, rows, concurrency=CONCURRENCY).answers
            found = pa.table({"k": given["k"].cast(pa.int64()), "rows": given["rows"].cast(pa.int64()), "hash": given["hash"]})
            self._sql.register("given", found)
            self._sql.execute(f"INSERT INTO {answers} SELECT k + {first}, rows, hash FROM given")
            self._sql.unregister("given")

    def _lateness(self, late_after_s: float | None) -> Lateness | None:
        """How far deliveries came after newer ones of their series, some series at a time."""
        self._sql.execute(_LATE)
        for first, end in self._parts(self._operation.series):
            self._sql.execute(LATENESS.format(time=self._time, partition=self._partition, first=first, end=end))
        late = "NULL" if late_after_s is None else str(late_after_s)
        arrived, behind, share = self._one(
            f"SELECT count(*), count(*) FILTER (WHERE late_s > 0), avg(CAST(late_s > {late} AS DOUBLE)) FROM late"
        )
        if not arrived:
            return None
        time_s, rows = self._quantiles("late_s", behind), self._quantiles("places", behind)
        return Lateness(out_of_order=behind / arrived, time_s=time_s, rows=rows, late_after_s=late_after_s, late=share)

    def _quantiles(self, column: str, number: int) -> dict[str, float]:
        """Quantiles of those that are out of order, of which there are this many. Sorting spills, which DuckDB's own quantiles do not."""
        if not number:
            return dict.fromkeys(_QUANTILES, 0.0)
        self._sql.execute(
            f"CREATE OR REPLACE TABLE in_order AS SELECT CAST({column} AS DOUBLE) AS value FROM late WHERE late_s > 0 ORDER BY value"
        )
        quantiles = {}
        for name, share in _QUANTILES.items():
            place = share * (number - 1)
            between = f"rowid >= {math.floor(place)} AND rowid <= {math.ceil(place)}"
            lower, upper = self._one(f"SELECT min(value), max(value) FROM in_order WHERE {between}")
            quantiles[name] = lower + (upper - lower) * (place % 1)
        return quantiles

    def _problems(self) -> list[AnswerProblem]:
        """The first readings of each kind that are wrong, and of how many each is one."""
        problems = []
        for verdict, says in _SAYS.items():
            for row in self._rows(f"FROM wrong WHERE verdict = '{verdict}' ORDER BY {self._key} LIMIT {_MAX_EXAMPLES}"):
                del row["verdict"]
                deliveries, expected, found = (row.pop(name) for name in ("deliveries", "expected_rows", "found_rows"))
                detail = (
                    f"delivered {deliveries} times, {expected} expected, {found} found; {self._totals[verdict]:,} such readings"
                )
                problems.append(AnswerProblem(operation=self._write, parameters=shown(row), problem=f"{says} ({detail})"))
        return problems

    def _one(self, query: str, values: Sequence[object] = ()) -> tuple[Any, ...]:
        """The only row of a query."""
        found: tuple[Any, ...] = self._sql.execute(query, values).fetchall()[0]
        return found

    def _rows(self, query: str) -> list[dict[str, object]]:
        rows: list[dict[str, object]] = self._sql.sql(query).to_arrow_table().to_pylist()
        return rows


def _quoted(name: str) -> str:
    return f'"{name}"'


def _logged(run: RunResult, phase: int, operation: int) -> Iterator[pa.Table]:
    """The logged operations of one kind and phase, in the order in which they were put down."""
    for batch in run.operation_batches(_BATCH):
        table = pa.Table.from_batches([batch])
        wanted = pc.and_(
            pc.equal(table["phase"], pa.scalar(phase, table["phase"].type)),
            pc.equal(table["operation"], pa.scalar(operation, table["operation"].type)),
        )
        of_kind = table.filter(wanted).sort_by("k")
        if of_kind.num_rows:
            yield of_kind
