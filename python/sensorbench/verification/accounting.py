"""Exact accounting: every reading that a database acknowledged is there at the end, once or as often as its rule for duplicates says.

What was delivered is known without asking: the parameters of each write are a function of the plan and its number, and the log says when it was
sent, when it ended and how. DuckDB makes of it what must be there. The database is then read whole, in ranges of time of each series, and compared by
number of rows and sum of their hashes; where a range differs, each of its readings is read by itself. Nothing is held in memory but one batch:
all else lies in a database on disk.
"""

import tempfile
from collections.abc import Iterator
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
from sensorbench.results.summary.accounting import Lateness, RetentionAccounting, RollupAccounting, Rule, StreamAccounting
from sensorbench.results.summary.comparison import AnswerProblem
from sensorbench.runner import Parameters, as_json
from sensorbench.schemas import Operation, Operations, Schema
from sensorbench.schemas.arrow_types import arrow_schema, canonical_table
from sensorbench.verification.answers import shown
from sensorbench.verification.ask_each import ask_each
from sensorbench.verification.retention import Retained, expire, rolled_up

CONCURRENCY = 16
# So many deliveries are in memory at a time, and so many ranges are asked for.
_BATCH, _RANGES = 200_000, 20_000
# Readings of a range, at most, and readings of ranges that differ that are looked at one by one.
_READINGS_OF_A_RANGE, _MAX_EXAMINED = 500, 20_000
_MEMORY = "512MB"
_MAX_EXAMPLES = 10
# Runs have clocks of their own, and follow each other: what happens in one is later than everything in the run before.
_BETWEEN_RUNS_NS = 10**16
# What is read of the log.
_LOG = {"outcome": pa.string(), "start_ns": pa.uint64(), "end_ns": pa.uint64()}
_Column: TypeAlias = pa.Array | pa.ChunkedArray
_RULES: tuple[Rule, ...] = ("last", "first", "both", "highest")
# Sums of hashes are taken modulo 2^64.
WORD = 18446744073709551616

# What was delivered of each reading.
GROUP = """
CREATE TABLE grouped AS
SELECT {key}, count(*) AS deliveries, count(*) FILTER (WHERE is_ok) AS acknowledged, any_value(hash) AS any_hash,
  max(start_ns) FILTER (WHERE is_ok) AS last_start_ns, min(end_ns) FILTER (WHERE is_ok) AS first_end_ns,
  max(ranked) FILTER (WHERE is_ok) AS highest, CAST(coalesce(sum(hash) FILTER (WHERE is_ok), 0) % {word} AS UBIGINT) AS sum_hash
FROM delivered GROUP BY {key}
"""
# Which of several deliveries may be the one that counts, where one does. Of two that overlapped in time, either may have come last or first; one
# of unknown outcome may take effect at any time after it was sent.
_ADMITS: dict[Rule, str] = {
    "last": "NOT is_ok OR end_ns >= last_start_ns",
    "first": "start_ns <= coalesce(first_end_ns, start_ns)",
    "highest": "ranked >= coalesce(highest, ranked)",
}
# What must be there of each reading: `rows` with one of the sums of hashes `choices`; with some of `maybe` besides where deliveries add up.
_EXPECT_ONE = """
CREATE TABLE {table} AS
WITH several AS (
  SELECT {key}, list_distinct(list(hash)) AS admitted FROM delivered JOIN {source} USING ({key})
  WHERE deliveries > 1 AND ({admits}) GROUP BY {key})
SELECT {key}, deliveries, acknowledged, false AS adds, CAST(acknowledged > 0 AS BIGINT) AS rows, coalesce(admitted, [any_hash]) AS choices,
  CAST([] AS UBIGINT[]) AS maybe, acknowledged > 0 AND len(coalesce(admitted, [any_hash])) = 1 AS is_sure
FROM {source} LEFT JOIN several USING ({key})
"""
_EXPECT_ALL = """
CREATE TABLE {table} AS
WITH unknown AS (SELECT {key}, list(hash) AS of_unknown FROM delivered WHERE NOT is_ok GROUP BY {key})
SELECT {key}, deliveries, acknowledged, true AS adds, acknowledged AS rows, [sum_hash] AS choices,
  coalesce(of_unknown, CAST([] AS UBIGINT[])) AS maybe, deliveries = acknowledged AS is_sure
FROM {source} LEFT JOIN unknown USING ({key})
"""
# Whether what was found of a reading is as it must be. Of three and more deliveries of unknown outcome only the number of rows is known.
RIGHT = """
(acknowledged = 0 AND found_rows = 0)
OR (NOT adds AND found_rows = 1 AND list_contains(choices, found_hash))
OR (adds AND found_rows BETWEEN rows AND rows + len(maybe) AND CASE found_rows - rows
  WHEN 0 THEN found_hash = choices[1]
  WHEN len(maybe) THEN found_hash = (CAST(choices[1] AS HUGEINT) + list_sum(maybe)) % {word}
  WHEN 1 THEN list_contains([(CAST(choices[1] AS HUGEINT) + one) % {word} FOR one IN maybe], CAST(found_hash AS HUGEINT))
  ELSE true END)
"""
# Series are cut into ranges that are read whole. Of a reading that may be one of several, a range has nothing else.
_PLACE = """
CREATE TABLE placed AS
WITH neighbours AS (
  SELECT *, row_number() OVER along AS place, coalesce(lag(is_sure) OVER along, true) AS was_sure,
    {time} AS "from", coalesce(lead({time}) OVER along, {time} + INTERVAL 1 MILLISECOND) AS "to"
  FROM expected WINDOW along AS ({partition} ORDER BY {time}))
SELECT *, sum(CAST(place % {per_range} = 1 OR NOT is_sure OR NOT was_sure AS BIGINT)) OVER (ORDER BY {key} ROWS UNBOUNDED PRECEDING) - 1 AS part
FROM neighbours
"""
_CUT = """
CREATE TABLE ranges AS
SELECT part, {series} min("from") AS "from", max("to") AS "to", count(*) AS readings, bool_and(is_sure) AS is_sure, sum(rows) AS rows,
  CAST(sum(choices[1]) % {word} AS UBIGINT) AS hash
FROM placed GROUP BY {series} part
"""
_DIFFERENT = """
CREATE TABLE different AS
SELECT part, sum(readings) OVER (ORDER BY part ROWS UNBOUNDED PRECEDING) - readings AS before
FROM ranges JOIN found USING (part) WHERE is_sure AND (found_rows <> rows OR found_hash <> hash)
"""
_SINGLE = """
CREATE TABLE single AS
SELECT row_number() OVER (ORDER BY {key}) - 1 AS number, * FROM placed SEMI JOIN (FROM different WHERE before < {max}) USING (part)
"""
# The readings that were looked at one by one, and what each is.
_JUDGE = """
CREATE TABLE readings AS
WITH looked_at AS (
  SELECT single.*, found_rows, found_hash FROM single LEFT JOIN found_single USING (number)
  UNION ALL BY NAME
  SELECT placed.*, found_rows, found_hash FROM placed LEFT JOIN found USING (part) WHERE NOT placed.is_sure)
SELECT *, CASE
  WHEN found_rows IS NULL THEN 'unanswered'
  WHEN is_expired AND found_rows > 0 THEN 'not_expired'
  WHEN {right} THEN 'right'
  WHEN found_rows < rows THEN 'lost'
  WHEN found_rows > greatest(rows, 1) + len(maybe) THEN 'extra'
  WHEN EXISTS (FROM delivered WHERE {same} AND delivered.hash = looked_at.found_hash) THEN 'wrong_winner'
  ELSE 'other_value' END AS verdict
FROM looked_at
"""
_TOTALS = """
SELECT coalesce(sum(acknowledged), 0), coalesce(sum(deliveries - acknowledged), 0), count(*) FILTER (WHERE acknowledged > 0),
  coalesce(sum(greatest(acknowledged - 1, 0)), 0) FROM grouped WHERE coalesce(last_start_ns, 0) >= 0
"""
# A delivery is out of order when one of its series that is newer came before.
_LATENESS = """
WITH arrived AS (
  SELECT {time} AS time, max({time}) OVER ({partition} ORDER BY start_ns, arrival ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS newest,
    row_number() OVER ({partition} ORDER BY start_ns, arrival) - row_number() OVER ({partition} ORDER BY {time}, start_ns, arrival) AS places
  FROM delivered WHERE is_ok AND start_ns >= 0),
late AS (SELECT coalesce((epoch_us(newest) - epoch_us(time)) / 1e6, 0.0) AS late_s, greatest(places, 0) AS places FROM arrived)
SELECT count(*), avg(CAST(late_s > 0 AS DOUBLE)), avg(CAST(late_s > {late} AS DOUBLE)), {quantiles} FROM late
"""
_QUANTILES = {"p50": 0.5, "p99": 0.99, "max": 1.0}
_SAYS = {
    "lost": "it was acknowledged, and is not there",
    "wrong_winner": "it has the value of a delivery that should not count",
    "extra": "it is there more often than it should be",
    "other_value": "it has a value that nobody delivered",
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
        accounts.execute(
            f"SET memory_limit = '{_MEMORY}'; SET temp_directory = '{place}/spilled'; SET preserve_insertion_order = false"
        )
        books = _Accounts(accounts, target, operations, schema, write, retained)
        books.enter(writes, has_markers=has_markers)
        books.enter_loaded(dataset)
        return books.close(late_after_s)


class _Accounts:
    """The accounts of one kind of write, in tables of a DuckDB database: delivered, expected, ranges, found, readings."""

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
        self._rollup: RollupAccounting | None = None
        self._rollup_problems: list[AnswerProblem] = []
        self._operation: Operation = operations.operation[write]
        self._reader = str(self._operation.read_by)
        self._rule: Rule = schema.duplicate_rule or "last"
        self._series = ", ".join(map(_quoted, self._operation.series))
        self._time = _quoted(self._operation.time)
        self._key = ", ".join(filter(None, [self._series, self._time]))
        self._hashed = [column.name for column in operations.operation[self._reader].columns if not column.computed]
        values = [name for name in self._hashed if name != self._operation.time]
        self._value = values[0] if values else self._operation.time

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
        self._sql.execute("CREATE TABLE IF NOT EXISTS delivered AS SELECT CAST(0 AS BIGINT) AS arrival, * FROM entries LIMIT 0")
        (so_far,) = self._one("SELECT count(*) FROM delivered")
        self._sql.execute(f"INSERT INTO delivered SELECT {so_far} + row_number() OVER (), * FROM entries")

    def enter_loaded(self, dataset: Dataset) -> None:
        """Enters what the dataset has of the time and series that were written: it was there first. Where readings expire, all of it: old ones must
        be gone.
        """
        (first,) = self._one(f"SELECT min({self._time}) FROM delivered") if self._retained is None else (None,)
        relation = str(self._operation.writes)
        columns = ", ".join(map(_quoted, dict.fromkeys([*self._operation.key, *self._hashed])))
        with dataset.connect() as workbench:
            rows = canonical_table(
                workbench.sql(
                    f"SELECT {columns} FROM {relation} WHERE CAST($first AS TIMESTAMP) IS NULL OR {self._time} >= CAST($first AS TIMESTAMP)",
                    params={"first": first},
                )
            )
        if rows.num_rows:
            before = pa.array(np.full(rows.num_rows, -1, dtype=np.int64))
            self._append(self._table(rows, pa.array(np.full(rows.num_rows, True)), before, before))

    def close(self, late_after_s: float | None) -> Accounted:
        """Compares with what is there, and says what became of the readings."""
        self._sql.execute(GROUP.format(key=self._key, word=WORD))
        expect(self._sql, self._rule, self._key, "admitted", "grouped")
        if self._retained is not None:
            self._rollup, self._rollup_problems = rolled_up(self._sql, self._write, self._operation, self._rule, self._retained)
        expire(self._sql, self._time, self._retained)
        self._sql.execute(
            _PLACE.format(key=self._key, time=self._time, partition=self._partition, per_range=_READINGS_OF_A_RANGE)
        )
        series = "".join(f"{_quoted(name)}, " for name in self._operation.series)
        self._sql.execute(_CUT.format(series=series, word=WORD))
        self._ask("ranges", "part", "found")
        self._sql.execute(_DIFFERENT)
        self._sql.execute(_SINGLE.format(key=self._key, max=_MAX_EXAMINED))
        self._ask("single", "number", "found_single")
        same = " AND ".join(f"delivered.{_quoted(name)} = looked_at.{_quoted(name)}" for name in self._operation.key)
        self._sql.execute(_JUDGE.format(right=RIGHT.format(word=WORD), same=same))
        return self._balance(late_after_s)

    def _balance(self, late_after_s: float | None) -> Accounted:
        counts: dict[str, int] = dict(self._sql.execute("SELECT verdict, count(*) FROM readings GROUP BY verdict").fetchall())
        acknowledged, unknown, readings, again = self._one(_TOTALS)
        segments, unanswered = self._one(
            "SELECT count(*), count(*) FILTER (WHERE found_rows IS NULL) FROM ranges LEFT JOIN found USING (part)"
        )
        undecided, unknown_found = self._one(
            "SELECT count(*) FILTER (WHERE NOT is_sure), count(*) FILTER (WHERE acknowledged = 0 AND found_rows > 0 AND NOT is_expired) FROM readings"
        )
        (unexamined,) = self._one(f"SELECT count(*) FROM different WHERE before >= {_MAX_EXAMINED}")
        (unstable,) = self._one(
            f"SELECT count(*) FROM different ANTI JOIN (FROM readings WHERE verdict <> 'right') USING (part) WHERE before < {_MAX_EXAMINED}"
        )
        accounting = StreamAccounting(
            write=self._write,
            rule=self._schema.duplicate_rule,
            readings=readings,
            acknowledged=acknowledged,
            again=again,
            unknown=unknown,
            segments=segments,
            unanswered=unanswered,
            lost=counts.get("lost", 0),
            wrong_winners=counts.get("wrong_winner", 0),
            extra=counts.get("extra", 0),
            other_values=counts.get("other_value", 0),
            undecided=undecided,
            unknown_found=unknown_found,
            unexamined=unexamined,
            unstable=unstable,
            explained_by=self._explanation() if counts.keys() & {"wrong_winner", "extra", "lost"} else None,
            lateness=self._lateness(late_after_s),
            retention=self._retention(counts.get("not_expired", 0)) if self._retained else None,
        )
        return Accounted(accounting, [*self._problems(counts), *self._rollup_problems])

    def _retention(self, not_expired: int) -> RetentionAccounting:
        (expired, kept) = self._one(
            "SELECT count(*) FILTER (WHERE is_expired), count(*) FILTER (WHERE NOT is_expired) FROM expected"
        )
        before = self._retained.before if self._retained else None
        return RetentionAccounting(
            before=before.isoformat() if before else None,
            expired=expired,
            not_expired=not_expired,
            kept=kept,
            rollup=self._rollup,
        )

    @property
    def _partition(self) -> str:
        return f"PARTITION BY {self._series}" if self._series else ""

    def _ask(self, table: str, number: str, answers: str) -> None:
        """Asks for the ranges of a table. Answers have `found_rows` and `found_hash`; of what failed there is none."""
        self._sql.execute(f"CREATE TABLE {answers} ({number} BIGINT, found_rows BIGINT, found_hash UBIGINT)")
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

    def _explanation(self) -> Rule | None:
        """The rule by which all that was found of readings that were delivered several times is right."""
        self._sql.execute(
            f"CREATE TABLE disputed AS FROM grouped SEMI JOIN (FROM readings WHERE deliveries > 1 AND NOT is_expired) USING ({self._key})"
        )
        for rule in _RULES:
            if rule == self._rule:
                continue
            expect(self._sql, rule, self._key, f"by_{rule}", "disputed")
            wrong, several = self._one(
                f"SELECT count(*) FILTER (WHERE NOT ({RIGHT.format(word=WORD)})), count(*) "
                f"FROM by_{rule} JOIN (SELECT {self._key}, found_rows, found_hash FROM readings WHERE NOT is_expired) USING ({self._key})"
            )
            if several and not wrong:
                return rule
        return None

    def _lateness(self, late_after_s: float | None) -> Lateness | None:
        quantiles = ", ".join(
            f"quantile_cont({column}, {share}) FILTER (WHERE late_s > 0)"
            for column in ("late_s", "places")
            for share in _QUANTILES.values()
        )
        late = "NULL" if late_after_s is None else str(late_after_s)
        arrived, out_of_order, share, *found = self._one(
            _LATENESS.format(time=self._time, partition=self._partition, late=late, quantiles=quantiles)
        )
        if not arrived:
            return None
        time_s, rows = (
            dict(zip(_QUANTILES, (float(value or 0.0) for value in part), strict=True)) for part in (found[:3], found[3:])
        )
        return Lateness(out_of_order=out_of_order, time_s=time_s, rows=rows, late_after_s=late_after_s, late=share)

    def _problems(self, counts: dict[str, int]) -> list[AnswerProblem]:
        """The first readings of each kind that are wrong, and of how many each is one."""
        problems = []
        for verdict, says in _SAYS.items():
            for row in self._rows(
                f"SELECT {self._key}, deliveries, rows AS expected_rows, found_rows FROM readings WHERE verdict = '{verdict}' "
                f"ORDER BY {self._key} LIMIT {_MAX_EXAMPLES}"
            ):
                deliveries, expected, found = (row.pop(name) for name in ("deliveries", "expected_rows", "found_rows"))
                detail = f"delivered {deliveries} times, {expected} expected, {found} found; {counts[verdict]:,} such readings"
                problems.append(AnswerProblem(operation=self._write, parameters=shown(row), problem=f"{says} ({detail})"))
        return problems

    def _one(self, query: str) -> tuple[Any, ...]:
        """The only row of a query."""
        found: tuple[Any, ...] = self._sql.execute(query).fetchall()[0]
        return found

    def _rows(self, query: str) -> list[dict[str, object]]:
        rows: list[dict[str, object]] = self._sql.sql(query).to_arrow_table().to_pylist()
        return rows


def expect(accounts: duckdb.DuckDBPyConnection, rule: Rule, key: str, table: str, source: str) -> None:
    """Makes the table of what must be there by a rule: `rows` of each reading with a sum of hashes that is one of `choices`; where deliveries add
    up (`adds`), with some of `maybe` besides. A reading `is_sure` where that is one thing.

    Args:
        accounts: has the table `delivered`, and `grouped`, which GROUP makes of it.
        rule: which of several deliveries counts.
        key: the columns that identify a reading.
        table: what is made.
        source: the readings it is made for, a part of `grouped`.

    """
    if rule == "both":
        accounts.execute(_EXPECT_ALL.format(key=key, table=table, source=source))
    else:
        accounts.execute(_EXPECT_ONE.format(key=key, table=table, source=source, admits=_ADMITS[rule]))


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
