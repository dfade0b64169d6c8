"""Cassandra: reads and inserts of single rows against latte, loading against dsbulk."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from benches.clients import dsbulk, latte
from benches.clients.loading import COLUMNS, LoadComparison, as_csv, empty, our_rate, require_all
from benches.clients.measuring import KEYS, Comparison, LeftOut, Loop, in_turn, loaded, through_the_engine

from sensorbench import _engine, lab

SETTINGS: dict[str, str] = {}
CONCURRENCY = 64
MAX_CONCURRENCY = 128
RATE_PER_S = 5_000
# latte starts what is due when its timer ticks: once a millisecond.
TICKS_PER_S = 1_000
# The server compiles what it is asked while it is asked.
WARMUP = Loop(100_000, CONCURRENCY)

FIELDS = [{"name": "id", "type": "integer"}, {"name": "value", "type": "double"}]
READ = {
    "name": "read",
    "parameters": FIELDS[:1],
    "columns": FIELDS[1:],
    # latte asks for no pages either.
    "statement": {"statement": "SELECT value FROM readings WHERE id = :id", "page_size": 0},
}
INSERT = {
    "name": "insert",
    "parameters": FIELDS,
    "columns": [],
    "statement": {"statement": "INSERT INTO written (id, value) VALUES (:id, :value)"},
}
SCHEMA = {
    "create": {
        "statements": [f"CREATE TABLE {table} (id bigint PRIMARY KEY, value double)" for table in ("readings", "written")]
    },
    "tables": {"readings": FIELDS},
    "operations": [READ, INSERT],
}
BY_SENSOR = {
    "statements": [
        "CREATE TABLE measurement_by_sensor (floor int, zone int, sensor text, time timestamp, value double, "
        "PRIMARY KEY ((floor, zone, sensor), time)) WITH CLUSTERING ORDER BY (time DESC)"
    ]
}
MARKS_AT_A_RATE = "latte 11-15 µs, go-ycsb 20-23, YCSB 125 (p99 0.6, 2.8, 17 ms)"
MARKS_OF_LOADS = "dsbulk 91,000 sorted, 30,000 unsorted; SSTables 119,000"


@dataclass(frozen=True)
class Case:
    """What both are asked, in our words and in latte's."""

    what: str
    operation: dict[str, Any]
    loop: Loop
    marks: str
    rate_per_s: int | None = None


def _cases(share: float) -> list[Case]:
    closed, timed = int(500_000 * share), int(100_000 * share)
    evenly = Loop(timed, MAX_CONCURRENCY, {"segments": [{"from_per_s": RATE_PER_S}]})
    in_bunches = Loop(timed, MAX_CONCURRENCY, _in_bunches(timed))
    read, rate = f"Cassandra read, {RATE_PER_S:,}/s", RATE_PER_S
    return [
        Case(f"Cassandra read, {CONCURRENCY} in flight", READ, Loop(closed, CONCURRENCY), "latte 4.4 µs, go-ycsb 9.7, YCSB 28"),
        Case(
            f"Cassandra insert, {CONCURRENCY} in flight", INSERT, Loop(closed, CONCURRENCY), "latte 4.1-6 µs, go-ycsb 13, YCSB 28"
        ),
        Case(f"{read}, each when it is due", READ, evenly, MARKS_AT_A_RATE, rate),
        Case(f"{read}, ours in bunches as latte's", READ, in_bunches, MARKS_AT_A_RATE, rate),
    ]


def _in_bunches(operations: int) -> dict[str, Any]:
    """The pace that latte's timer makes of an even one: as many as are due at each tick, and none in between."""
    each, tick_s, bunch_s = RATE_PER_S // TICKS_PER_S, 1 / TICKS_PER_S, 1e-6
    # A bunch starts half an operation late, so that no rounding moves one to another tick.
    half = {"from_per_s": 0.5 / bunch_s, "length_s": bunch_s}
    tick = [{"from_per_s": each / bunch_s, "length_s": bunch_s}, {"from_per_s": 0.0, "length_s": tick_s - bunch_s}]
    return {"segments": [half, *(tick * (operations // each + 1))]}


def costs(instance: lab.Instance, share: float) -> Sequence[Comparison | LeftOut]:
    """As fast as it goes, then at a rate: over one connection."""
    program = latte.find()
    if program is None:
        return [LeftOut(case.what, latte.MISSING) for case in _cases(share)]
    values = pa.array(np.arange(KEYS) / 7)
    rows = pa.table({"id": pa.array(range(KEYS)), "value": values})
    parameters = pa.table({"id": pa.array(np.random.default_rng(1).integers(0, KEYS, KEYS)), "value": values})
    with loaded(instance, "connections=1", SCHEMA, "readings", rows) as target:
        for operation in (READ, INSERT):
            through_the_engine(target, operation, WARMUP, parameters)
        return [_compared(case, target, parameters, program, instance) for case in _cases(share)]


def _compared(case: Case, target: _engine.Target, parameters: pa.Table, program: Path, instance: lab.Instance) -> Comparison:
    ours, theirs = in_turn(
        lambda: through_the_engine(target, case.operation, case.loop, parameters),
        lambda: latte.cost(program, instance, case.operation["name"], case.loop, case.rate_per_s),
    )
    return Comparison(case.what, ours, theirs, case.marks)


def loads(instance: lab.Instance, rows: pa.Table) -> list[LoadComparison]:
    """The table of the source study, newest first, by prepared writes and by SSTables; ours are sorted as fills are."""
    url, table = f"{lab.url_of(instance)}&namespace=bench", "measurement_by_sensor"

    def by_dsbulk(file: Path) -> float:
        with empty(url, BY_SENSOR, table) as target:
            rate = dsbulk.rate(instance, "bench", table, [name for name, _ in COLUMNS], file, rows.num_rows)
            require_all(target, table, rows.num_rows)
            return rate

    in_ms = rows.set_column(rows.column_names.index("time"), "time", pc.divide(rows["time"].cast(pa.int64()), 1000))
    shuffled = in_ms.take(pa.array(np.random.default_rng(2).permutation(rows.num_rows)))
    with as_csv(in_ms) as sorted_file, as_csv(shuffled) as shuffled_file:
        writes, sstables, of_sorted, of_shuffled = in_turn(
            lambda: our_rate(f"{url}&load=writes", BY_SENSOR, table, rows),
            lambda: our_rate(f"{url}&load=sstables", BY_SENSOR, table, rows),
            lambda: by_dsbulk(sorted_file),
            lambda: by_dsbulk(shuffled_file),
        )
    return [
        LoadComparison("Cassandra, prepared writes", "dsbulk, sorted rows", writes, of_sorted, MARKS_OF_LOADS),
        LoadComparison("Cassandra, prepared writes", "dsbulk, shuffled rows", writes, of_shuffled, MARKS_OF_LOADS),
        LoadComparison("Cassandra, SSTables", "dsbulk, sorted rows", sstables, of_sorted, MARKS_OF_LOADS),
    ]
