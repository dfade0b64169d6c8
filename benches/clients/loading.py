"""Rows per second: by our loading, and by a tool of others."""

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
from benches.clients import tools
from pyarrow import csv

from sensorbench import _engine, lab
from sensorbench.results.ownership import Owner, new_id

COLUMNS = [("floor", "integer"), ("zone", "integer"), ("sensor", "text"), ("time", "timestamp"), ("value", "double")]
OWNER = Owner(new_id(), "of the benchmark of loaders")
FIELDS = [{"name": name, "type": value_type} for name, value_type in COLUMNS]


@dataclass(frozen=True)
class LoadComparison:
    """Our rows per second beside those of a tool, turn by turn, the marks of others, and what the server needed for a row (µs of CPU time) where
    that was looked at.
    """

    what: str
    tool: str
    ours: list[float]
    theirs: list[float]
    marks: str = ""
    our_server_us: list[float] = field(default_factory=list)
    their_server_us: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Loaded:
    """One load: rows per second, and the CPU time that the server needed for a row (µs)."""

    per_s: float
    server_us: float


class ServerCpu:
    """The CPU time of a server of the lab, with that of its processes that have ended meanwhile."""

    def __init__(self, instance: lab.Instance) -> None:
        self._instance = instance
        self._before_s = self._now_s()

    def us_since_start(self, rows: int) -> float:
        """What it has used for each of some rows since this was made, in µs."""
        return (self._now_s() - self._before_s) / rows * 1e6

    def _now_s(self) -> float:
        servers = [process for node in self._instance.nodes if (process := node.find())]
        living = [process for server in servers for process in (server, *server.children(recursive=True))]
        return sum(sum(process.cpu_times()[:4]) for process in living)


def readings(count: int) -> pa.Table:
    """Readings sorted by (floor, zone, sensor, time), as fills are."""
    series = 100
    each = count // series
    number = np.repeat(np.arange(series), each)
    time_us = np.tile(np.arange(each, dtype=np.int64) * 60_000_000 + 1_546_300_800_000_000, series)
    values = np.round(np.random.default_rng(1).normal(20.0, 5.0, len(number)), 2)
    return pa.table(
        {
            "floor": number // 20 + 1,
            "zone": number // 5 % 4 + 1,
            "sensor": pa.array([f"AC{number % 5 + 1}" for number in range(series)]).take(pa.array(number)),
            "time": pa.array(time_us, pa.timestamp("us")),
            "value": values,
        }
    )


@contextlib.contextmanager
def as_csv(rows: pa.Table) -> Iterator[Path]:
    """A file of the rows without a header, for as long as it is needed."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "readings.csv"
        csv.write_csv(rows, file, csv.WriteOptions(include_header=False, quoting_style="none"))
        yield file


def load(target: _engine.Target, table: str, rows: pa.Table) -> float:
    """Rows per second."""
    going = target.load(table, pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(max_chunksize=65_536)))
    while not going.wait(1.0):
        pass
    totals = json.loads(going.result())
    return float(totals["rows"] / totals["duration_s"])


@contextlib.contextmanager
def created(url: str, schema: dict[str, Any]) -> Iterator[_engine.Target]:
    """A target with the schema's empty tables, which are removed afterwards."""
    target = _engine.Target(url)
    target.create(json.dumps(schema), "", intent="replace", owner=OWNER.to_json())
    try:
        yield target
    finally:
        target.remove(owner=OWNER.to_json())


def empty(url: str, create: dict[str, Any], table: str) -> contextlib.AbstractContextManager[_engine.Target]:
    """A target with an empty table for readings."""
    return created(url, {"create": create, "tables": {table: FIELDS}})


def our_rate(url: str, create: dict[str, Any], table: str, rows: pa.Table) -> float:
    """Rows per second into a table that is made for them."""
    with empty(url, create, table) as target:
        rate = load(target, table, rows)
        require_all(target, table, rows.num_rows)
        return rate


def our_load(instance: lab.Instance, url: str, create: dict[str, Any], table: str, rows: pa.Table) -> Loaded:
    """A load into a table that is made for the rows, at a server of the lab."""
    with empty(url, create, table) as target:
        cpu = ServerCpu(instance)
        loaded = Loaded(load(target, table, rows), cpu.us_since_start(rows.num_rows))
        require_all(target, table, rows.num_rows)
        return loaded


def rate_of_a_tool(
    command: tools.Words, rows: int, environment: tools.Environment | None = None, stdin: IO[bytes] | None = None
) -> float:
    """Rows per second, from when the program is started until it has ended."""
    start_s = os.times().elapsed
    tools.call(command, environment, stdin)
    return rows / (os.times().elapsed - start_s)


def require_all(target: _engine.Target, table: str, rows: int) -> None:
    """Raises RuntimeError when a table does not hold this many rows."""
    found = target.count(table)
    if found != rows:
        raise RuntimeError(f"{target.url}: {found} rows are in {table}, {rows} were loaded")
