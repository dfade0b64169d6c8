"""Traffic that a server of the lab has really recorded, and as much of it as a bench needs: one recording after the other, with sessions of its own.

The load is mixed: reads of a row and of a range, and transactions that insert and update. Sessions begin at different times and have some hundred
statements each.
"""

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sensorbench import _engine, lab
from sensorbench.traffic import STATEMENTS, StatementWriter, read_trace, statements_file
from sensorbench.traffic.trace import TRACE_FILE, Trace

NAMESPACE = "sensorbench_replay"
SENSORS, READINGS = 500, 20
_SLOTS = 40
_OF_EACH = (100, 400)
_WRITES = 0.1
# Between two recordings that follow one another (µs).
_GAP_US = 10_000
# The recorder has switched its log on by then, and the load has come to its end before it switches it off.
_BEFORE_S, _AFTER_S = 4.0, 6.0
_TEMPLATES = [
    ("SELECT value FROM readings WHERE sensor = $1 AND number = $2", "read"),
    ("SELECT avg(value) FROM readings WHERE sensor = $1 AND number BETWEEN $2 AND $3", "read"),
    ("INSERT INTO readings (sensor, number, value) VALUES ($1, $2, $3)", "write"),
    ("UPDATE sensors SET value = $2 WHERE sensor = $1", "write"),
]
_READ, _RANGE, _INSERT, _UPDATE, _BEGIN, _COMMIT = range(len(_TEMPLATES) + 2)
_SQL_TABLES = (
    "CREATE TABLE readings (sensor integer, number integer, value double precision)",
    "CREATE INDEX readings_by_sensor ON readings (sensor, number)",
    "CREATE TABLE sensors (sensor integer PRIMARY KEY, value double precision)",
)


@dataclass(frozen=True)
class _Dialect:
    """What differs between servers: whose statements a trace has, how transactions begin and end, and the tables."""

    database: str
    begins: str
    ends: str
    tables: Sequence[str]
    takes_many_rows: bool = True


_DIALECTS = {
    "postgresql": _Dialect("postgresql", "BEGIN", "COMMIT", _SQL_TABLES),
    "mariadb": _Dialect("mysql", "BEGIN", "COMMIT", _SQL_TABLES),
    "cassandra": _Dialect(
        "cassandra",
        "BEGIN UNLOGGED BATCH",
        "APPLY BATCH",
        (
            "CREATE TABLE readings (sensor int, number int, value double, PRIMARY KEY (sensor, number))",
            "CREATE TABLE sensors (sensor int PRIMARY KEY, value double)",
        ),
        takes_many_rows=False,
    ),
}
# A line of a log that `traffic record` has PostgreSQL write: time, session, the rest.
_LINE = re.compile(rb"sensorbench (\S+ \S+) UTC (\S+) (.*)", re.DOTALL)


# The columns of a trace.
_Row = tuple[int, int, int, int | None, int, str, None, None, None]


@dataclass
class _Load:
    """Statements as they are being thought up: rows of a trace."""

    rows: list[_Row] = field(default_factory=list)

    def add_session(self, random: np.random.Generator, number: int, start_s: float, gap_s: float) -> float:
        """One session; when it ends (s)."""
        at_s, sequence, transactions = start_s, 0, 0
        until = int(random.integers(*_OF_EACH))

        def add(template: int, parameters: Sequence[object], transaction: int | None = None) -> None:
            nonlocal sequence
            at_us = 1_767_225_600_000_000 + round(at_s * 1e6)
            self.rows.append((at_us, number, sequence, transaction, template, json.dumps(parameters), None, None, None))
            sequence += 1

        while sequence < until:
            at_s += float(random.exponential(gap_s))
            sensor, reading = int(random.integers(1, SENSORS + 1)), int(random.integers(1, READINGS + 1))
            if random.random() >= _WRITES:
                is_row = random.random() < 0.75
                add(_READ if is_row else _RANGE, [sensor, reading] if is_row else [sensor, reading, reading + 3])
                continue
            value = round(float(random.normal(20, 5)), 3)
            for template, parameters in (
                (_BEGIN, []),
                (_INSERT, [sensor, READINGS + sequence, value]),
                (_UPDATE, [sensor, value]),
                (_COMMIT, []),
            ):
                add(template, parameters, transactions)
                at_s += 0.001
            transactions += 1
        return at_s


def write_load(folder: Path, server: str, length_s: float, rate_per_s: float) -> None:
    """Writes a trace of the load for a kind of server."""
    random = np.random.default_rng(1)
    load = _Load()
    of_unit = 1 - _WRITES + 4 * _WRITES
    gap_s = _SLOTS * of_unit / rate_per_s
    sessions = 0
    for slot in range(_SLOTS):
        # They do not begin together, but for the first ones.
        at_s = float(slot / rate_per_s)
        while at_s < length_s:
            at_s = load.add_session(random, sessions, at_s, gap_s)
            sessions += 1
    rows = sorted(row for row in load.rows if row[0] <= 1_767_225_600_000_000 + length_s * 1e6)
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, STATEMENTS, strict=True)]
    folder.mkdir()
    with StatementWriter(folder) as writer:
        writer.write(pa.record_batch(arrays, schema=STATEMENTS))
    dialect = _DIALECTS[server]
    every = [*_TEMPLATES, (dialect.begins, "begin"), (dialect.ends, "commit")]
    templates = [{"number": number, "statement": text, "kind": kind} for number, (text, kind) in enumerate(every)]
    (folder / TRACE_FILE).write_text(json.dumps({"database": dialect.database, "templates": templates}), encoding="utf-8")


def make_tables(instance: lab.Instance) -> str:
    """Makes the tables of the load in a namespace of ours at a server of the lab; the URL of that."""
    address, _, options = lab.url_of(instance).partition("?")
    kept = [option for option in options.split("&") if option.startswith("credentials=")]
    url = f"{address}?{'&'.join([*kept, f'namespace={NAMESPACE}'])}"
    dialect = _DIALECTS[instance.database]
    readings = [f"({sensor}, {number}, 20.5)" for sensor in range(1, SENSORS + 1) for number in range(1, READINGS + 1)]
    sensors = [f"({sensor}, 0)" for sensor in range(1, SENSORS + 1)]
    filled = [
        f"INSERT INTO {table} VALUES {values}"
        for table, rows in (("readings (sensor, number, value)", readings), ("sensors (sensor, value)", sensors))
        for values in ([", ".join(rows)] if dialect.takes_many_rows else rows)
    ]
    create = json.dumps({"create": {"statements": [*dialect.tables, *filled]}})
    _engine.Target(url).create(create, "", intent="create", owner=json.dumps({"id": "bench", "folder": "bench"}))
    return url


def command(*words: object) -> list[str]:
    """A command of this installation."""
    return [sys.executable, "-m", "sensorbench", *map(str, words)]


def record(instance: lab.Instance, url: str, folder: Path, length_s: float, rate_per_s: float) -> Path:
    """Records the server while it is under the load; the folder of the trace. In the same folder `log.txt` is what PostgreSQL logged meanwhile."""
    load, recorded = folder / "load", folder / "recorded"
    write_load(load, instance.database, length_s, rate_per_s)
    log_before = instance.log.stat().st_size
    recording = subprocess.Popen(
        command("traffic", "record", f"lab:{instance.name}", "--for", f"{_BEFORE_S + length_s + _AFTER_S}s", "--out", recorded),
        stdout=subprocess.DEVNULL,
    )
    time.sleep(_BEFORE_S)
    loading = command("traffic", "replay", load, url, "--out", folder / "loaded", "--no-open", "--quiet")
    subprocess.run(loading, stdout=subprocess.DEVNULL, check=True)
    if recording.wait():
        raise SystemExit(f"recording {instance.name} ended with exit code {recording.returncode}")
    with instance.log.open("rb") as log, (folder / "log.txt").open("wb") as copy:
        log.seek(log_before)
        copy.writelines(line for line in log if line.startswith((b"sensorbench ", b"\t")))
    return recorded


def tile_trace(recorded: Path, folder: Path, statements: int) -> int:
    """Writes a trace of this many statements: a recorded one over and over, each time with sessions of its own. Returns how many it has."""
    trace, table = read_trace(recorded), pq.read_table(statements_file(recorded))
    first, last = (int(pc.cast(table["at"][place], pa.int64()).as_py()) for place in (0, -1))
    period_us, sessions = last - first + _GAP_US, (trace.sessions or 0)
    folder.mkdir()
    with StatementWriter(folder) as writer:
        for number in range(-(-statements // table.num_rows)):
            part = table.slice(0, min(table.num_rows, statements - number * table.num_rows))
            at = pc.add(part["at"].cast(pa.int64()), number * period_us).cast(STATEMENTS.field("at").type)
            session = pc.add(part["session"].cast(pa.int64()), number * sessions).cast(pa.int32())
            moved = part.set_column(0, "at", at).set_column(1, "session", session).cast(STATEMENTS)
            for batch in moved.to_batches():
                writer.write(batch)
    made = Trace.model_validate(trace.model_dump() | {"statements": writer.rows})
    (folder / TRACE_FILE).write_text(made.model_dump_json(), encoding="utf-8")
    return writer.rows


@dataclass(frozen=True)
class _Entry:
    """A line of a recorded log: when (ms), whose, and what."""

    at_ms: int
    session: bytes
    rest: bytes


class RecordedLog:
    """A log that PostgreSQL wrote, to be written again with as many statements as are wanted."""

    def __init__(self, log: Path, statements: int) -> None:
        """`statements`: how many the log has."""
        self.statements = statements
        self._entries: list[_Entry] = []
        with log.open("rb") as file:
            for line in file:
                found = _LINE.match(line)
                if found:
                    self._entries.append(_Entry(_ms(found[1]), found[2], found[3]))
                elif self._entries and line.startswith(b"\t"):
                    before = self._entries[-1]
                    self._entries[-1] = _Entry(before.at_ms, before.session, before.rest + line)
        if not self._entries:
            raise SystemExit(f"{log}: the server logged nothing while it was recorded")

    def lines(self, times: int) -> Iterator[bytes]:
        """The log this many times, each time later and with other sessions."""
        first, last = (self._entries[place].at_ms for place in (0, -1))
        period_ms = last - first + _GAP_US // 1000
        second_of, text = -1, b""
        for number in range(times):
            ahead_ms, suffix = number * period_ms, f".{number} ".encode()
            for entry in self._entries:
                second, ms = divmod(entry.at_ms + ahead_ms, 1000)
                if second != second_of:
                    second_of, text = second, f"sensorbench {datetime.fromtimestamp(second, UTC):%Y-%m-%d %H:%M:%S}".encode()
                yield b"%b.%03d UTC %b%b%b" % (text, ms, entry.session, suffix, entry.rest)


def _ms(text: bytes) -> int:
    return round(datetime.fromisoformat(text.decode()).replace(tzinfo=UTC).timestamp() * 1000)
