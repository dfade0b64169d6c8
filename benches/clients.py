"""`make bench-clients`: our client against the databases' own (redis-benchmark, pgbench, sysbench), and our loading against their
tools: the same server, connections, operations in flight and pinning, in turn. Prints figures and ratios, also those above 1;
asserts nothing.

The tools are Debian's packages, downloaded and unpacked into the lab's cache; nothing is installed.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv
from rich.console import Console
from rich.table import Table

from sensorbench import _engine, lab
from sensorbench.lab.databases import mariadb, redis
from sensorbench.lab.software import DebianPackages

REPEATS = 3
KEYS = 100_000
# redis-benchmark takes a password only on its command line, so its default user has none.
SETTINGS = {"redis": {"requirepass": ""}}
TOOLS = DebianPackages(
    "bench-tools",
    "debian",
    (
        "sysbench",
        "libluajit-5.1-2",
        "libluajit-5.1-common",
        "libmariadb3",
        "libaio1",
        "libpq5",
        "postgresql-15",
        "postgresql-client-15",
    ),
)
MARKS = {
    "Redis GET": "redis-benchmark 5.5 µs (0.41 with 16 pipelined), go-ycsb 6.5, YCSB 9",
    "PostgreSQL point select": "pgbench 10.3 µs, go-ycsb and YCSB 14.2",
    "MariaDB point select": "sysbench 7.6 µs, go-ycsb 12.3",
}


@dataclass(frozen=True)
class Cost:
    """What an operation cost the client, and how many a second there were."""

    cpu_us: float
    per_s: float


def measured_child(command: Sequence[str | Path], operations: Callable[[str], float], **more: Any) -> Cost:
    """Runs a tool on this thread's processors; its processor time by what the system counted for ended children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True, **more)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    count, per_s = operations(ended.stdout), _rate(ended.stdout)
    return Cost(cpu_s / count * 1e6, per_s)


def _rate(output: str) -> float:
    """The rate that a tool tells of itself."""
    for line in output.splitlines():
        if "requests per second" in line:
            return float(line.split("requests per second")[0].split()[-1])
        if line.startswith("tps = "):
            return float(line.split()[2])
        if "queries:" in line:
            return float(line.split("(")[1].split()[0])
    raise ValueError(f"no rate in {output!r}")


def through_the_engine(
    target: _engine.Target, operation: dict[str, Any], operations: int, in_flight: int, column: pa.Array
) -> Cost:
    """A closed loop of point reads; the client's processor time is that of its thread."""
    plan = {
        "seed": 1,
        "operations": [{"weight": 1.0, "operation": operation, "parameters": [{"draw": 0, "column": 0}]}],
        "draws": [{"rows": {"table": 0, "choice": "uniform"}}],
        "phases": [{"name": "measure", "operations": operations}],
        "in_flight": in_flight,
        "timeout_s": 60.0,
    }
    rows = pa.table({"id": column})
    run = target.run(json.dumps(plan), [pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches())])
    while not run.wait(0.2):
        run.take()
    whole = json.loads(run.end()[1])
    phase = whole["phases"][0]
    counts = phase["operations"][operation["name"]]["counts"]
    if counts["ok"] != operations:
        raise RuntimeError(f"{counts}: {whole['errors']}")
    return Cost(whole["process_cpu_ns"] / operations / 1e3, operations / ((phase["end_ns"] - phase["start_ns"]) / 1e9))


def in_turn(ours: Callable[[], Cost], theirs: Callable[[], Cost]) -> tuple[Cost, Cost]:
    """The median costs of runs in turn."""
    pairs = [(ours(), theirs()) for _ in range(REPEATS)]
    return tuple(  # type: ignore[return-value]
        Cost(statistics.median(pair[side].cpu_us for pair in pairs), statistics.median(pair[side].per_s for pair in pairs))
        for side in (0, 1)
    )


def text_parameter(name: str, value_type: str) -> list[dict[str, str]]:
    return [{"name": name, "type": value_type}]


def redis_get(instance: lab.Instance, connections: int, in_flight: int, operations: int) -> tuple[Cost, Cost]:
    software = lab.LAB_DATABASES["redis"].source(instance.version).get()
    environment = {**os.environ, **lab.LAB_DATABASES["redis"].environment(software)}
    node = instance.nodes[0]
    target = _engine.Target(f"{lab.url_of(instance)}&connections={connections}&namespace=bench")
    schema = {
        "create": {"table": {"bench": {"key": "{id}", "write": ["SET", "{value}"], "row": "key"}}},
        "tables": {"bench": [{"name": "id", "type": "integer"}, {"name": "value", "type": "text"}]},
        "operations": [
            {
                "name": "get",
                "parameters": text_parameter("id", "integer"),
                "columns": [{"name": "value", "type": "text"}],
                "statement": {"table": "bench", "key": "{id}", "command": ["GET"], "row": ["{value}"]},
            }
        ],
    }
    target.create(json.dumps(schema), "", True)
    _load(target, "bench", pa.table({"id": pa.array(range(KEYS)), "value": pa.array(["abc"] * KEYS)}))
    ids = pa.array(np.random.default_rng(1).integers(0, KEYS, KEYS))
    command = [
        redis._program(software, "redis-benchmark"), "-h", node.host, "-p", str(node.port), "-c", str(connections), "-n", str(operations),
        "-P", str(in_flight // connections), "-r", str(KEYS), "-t", "get", "-q",
    ]  # fmt: skip
    fill = [*command]
    fill[fill.index("get")] = "set"
    subprocess.run([str(word) for word in fill], env=environment, capture_output=True, check=True)
    pair = in_turn(
        lambda: through_the_engine(target, schema["operations"][0], operations, in_flight, ids),
        lambda: measured_child(command, lambda _: operations, env=environment),
    )
    target.remove()
    return pair


def postgresql_select(instance: lab.Instance, connections: int, operations: int) -> tuple[Cost, Cost]:
    node, tools = instance.nodes[0], TOOLS.get()
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tools / "usr/lib/x86_64-linux-gnu"), "PGPASSWORD": instance.password()}
    target = _engine.Target(f"{lab.url_of(instance)}&connections={connections}&namespace=bench")
    schema = {
        "create": {"statements": ["CREATE TABLE bench (id integer PRIMARY KEY, value double precision NOT NULL)"]},
        "settle": {"statements": ["VACUUM (ANALYZE) bench"]},
        "tables": {"bench": [{"name": "id", "type": "integer"}, {"name": "value", "type": "double"}]},
        "operations": [
            {
                "name": "select",
                "parameters": text_parameter("id", "integer"),
                "columns": [{"name": "value", "type": "double"}],
                "statement": {"statement": "SELECT value FROM bench WHERE id = :id"},
            }
        ],
    }
    target.create(json.dumps(schema), "", True)
    _load(target, "bench", pa.table({"id": pa.array(range(KEYS)), "value": pa.array(np.arange(KEYS) / 7)}))
    target.settle()
    ids = pa.array(np.random.default_rng(1).integers(0, KEYS, KEYS))
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "select.sql"
        script.write_text(f"\\set id random(0, {KEYS - 1})\nSELECT value FROM bench.bench WHERE id = :id;\n", encoding="utf-8")
        command = [
            tools / "usr/lib/postgresql/15/bin/pgbench", "-h", node.host, "-p", str(node.port), "-U", "sensorbench", "-n", "-M", "prepared",
            "-f", script, "-c", str(connections), "-j", "1", "-t", str(operations // connections), "postgres",
        ]  # fmt: skip
        pair = in_turn(
            lambda: through_the_engine(target, schema["operations"][0], operations, connections, ids),
            lambda: measured_child(command, lambda _: operations, env=environment),
        )
    target.remove()
    return pair


def mariadb_select(instance: lab.Instance, connections: int, operations: int) -> tuple[Cost, Cost]:
    node, tools = instance.nodes[0], TOOLS.get()
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": str(tools / "usr/lib/x86_64-linux-gnu"),
        "LUA_PATH": f"{tools}/usr/share/sysbench/?.lua",
    }
    target = _engine.Target(f"{lab.url_of(instance)}&connections={connections}&namespace=bench")
    schema = {
        "create": {"statements": ["CREATE TABLE sbtest1 (id INT PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL)"]},
        "tables": {"sbtest1": [{"name": "id", "type": "integer"}, {"name": "k", "type": "integer"}, {"name": "c", "type": "text"}, {"name": "pad", "type": "text"}]},
        "operations": [
            {
                "name": "select",
                "parameters": text_parameter("id", "integer"),
                "columns": [{"name": "c", "type": "text"}],
                "statement": {"statement": "SELECT c FROM sbtest1 WHERE id = :id"},
            }
        ],
    }  # fmt: skip
    target.create(json.dumps(schema), "", True)
    numbers = pa.array(range(1, KEYS + 1))
    _load(target, "sbtest1", pa.table({"id": numbers, "k": numbers, "c": ["c" * 119] * KEYS, "pad": ["p" * 59] * KEYS}))
    ids = pa.array(np.random.default_rng(1).integers(1, KEYS + 1, KEYS))
    with tempfile.TemporaryDirectory() as folder:
        # sysbench takes a password only on its command line or in a file.
        options = Path(folder) / "sysbench.cnf"
        options.touch(mode=0o600)
        options.write_text(f"mysql-password={instance.password()}\n", encoding="utf-8")
        command = [
            tools / "usr/bin/sysbench", f"--config-file={options}", "--db-driver=mysql", f"--mysql-host={node.host}", f"--mysql-port={node.port}",
            "--mysql-user=sensorbench", "--mysql-db=bench", "--tables=1", f"--table-size={KEYS}", f"--threads={connections}",
            f"--events={operations}", "--time=0", "--rand-type=uniform", tools / "usr/share/sysbench/oltp_point_select.lua", "run",
        ]  # fmt: skip
        pair = in_turn(
            lambda: through_the_engine(target, schema["operations"][0], operations, connections, ids),
            lambda: measured_child(command, lambda _: operations, env=environment),
        )
    target.remove()
    return pair


def _load(target: _engine.Target, table: str, rows: pa.Table) -> float:
    """Rows a second."""
    load = target.load(table, pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(max_chunksize=65_536)))
    while not load.wait(1.0):
        pass
    told = json.loads(load.result())
    return float(told["rows"] / told["duration_s"])


READINGS_COLUMNS = [("floor", "integer"), ("zone", "integer"), ("sensor", "text"), ("time", "timestamp"), ("value", "double")]


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
            "sensor": pa.array([f"AC{one % 5 + 1}" for one in range(series)]).take(pa.array(number)),
            "time": pa.array(time_us, pa.timestamp("us")),
            "value": values,
        }
    )


def load_rates(instances: dict[str, lab.Instance], count: int) -> list[tuple[str, float, float]]:
    """For each database: our rows a second, and those of its own tool, on equal rows into equal tables."""
    rows = readings(count)
    fields = [{"name": name, "type": value_type} for name, value_type in READINGS_COLUMNS]
    with tempfile.TemporaryDirectory() as folder:
        file, commands = Path(folder) / "readings.csv", Path(folder) / "commands.resp"
        csv.write_csv(rows, file, csv.WriteOptions(include_header=False, quoting_style="none"))
        _write_zadds(commands, rows)
        found = [rates for key in ("", KEY) for rates in _sql_load_rates(instances, key, fields, rows, file)]
        zadds = _alternately(
            lambda: _our_zadds(instances["redis"], fields, rows), lambda: _pipe(instances["redis"], commands, rows.num_rows)
        )
    return [*found, ("Redis ZADD", *zadds)]


KEY = ", PRIMARY KEY (floor, zone, sensor, time)"


def _sql_load_rates(
    instances: dict[str, lab.Instance], key: str, fields: list[dict[str, str]], rows: pa.Table, file: Path
) -> list[tuple[str, float, float]]:
    what, count = "with the key" if key else "without a key", rows.num_rows
    of_postgresql = f"(floor integer NOT NULL, zone integer NOT NULL, sensor varchar(32) NOT NULL, time timestamp NOT NULL, value double precision NOT NULL{key})"
    of_mariadb = of_postgresql.replace("time timestamp", "time datetime(6)").replace("double precision", "double")
    postgresql = _alternately(
        lambda: _our_load(instances["postgresql"], f"CREATE TABLE readings {of_postgresql}", fields, rows),
        lambda: _copy(instances["postgresql"], f"CREATE TABLE theirs {of_postgresql}", file, count),
    )
    mariadb_ = _alternately(
        lambda: _our_load(instances["mariadb"], f"CREATE TABLE readings {of_mariadb}", fields, rows),
        lambda: _load_data(instances["mariadb"], f"CREATE TABLE theirs {of_mariadb}", file, count),
    )
    return [(f"PostgreSQL {what}", *postgresql), (f"MariaDB {what}", *mariadb_)]


def _alternately(ours: Callable[[], float], theirs: Callable[[], float]) -> tuple[float, float]:
    pairs = [(ours(), theirs()) for _ in range(REPEATS)]
    return statistics.median(pair[0] for pair in pairs), statistics.median(pair[1] for pair in pairs)


def _our_load(instance: lab.Instance, create: str, fields: list[dict[str, str]], rows: pa.Table) -> float:
    target = _engine.Target(f"{lab.url_of(instance)}&namespace=bench")
    target.create(json.dumps({"create": {"statements": [create]}, "tables": {"readings": fields}}), "", True)
    rate = _load(target, "readings", rows)
    target.remove()
    return rate


def _our_zadds(instance: lab.Instance, fields: list[dict[str, str]], rows: pa.Table) -> float:
    target = _engine.Target(f"{lab.url_of(instance)}&namespace=bench")
    table = {"key": "{floor}:{zone}:{sensor}", "write": ["ZADD", "{time}", "{time}:{value}"]}
    target.create(json.dumps({"create": {"table": {"readings": table}}, "tables": {"readings": fields}}), "", True)
    rate = _load(target, "readings", rows)
    target.remove()
    return rate


def _timed(command: Sequence[str | Path], count: int, **more: Any) -> float:
    start_s = os.times().elapsed
    subprocess.run([str(word) for word in command], check=True, capture_output=True, **more)
    return count / (os.times().elapsed - start_s)


def _copy(instance: lab.Instance, create: str, file: Path, count: int) -> float:
    node, tools = instance.nodes[0], TOOLS.get()
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tools / "usr/lib/x86_64-linux-gnu"), "PGPASSWORD": instance.password()}
    psql = [
        tools / "usr/lib/postgresql/15/bin/psql",
        "-h",
        node.host,
        "-p",
        str(node.port),
        "-U",
        "sensorbench",
        "-q",
        "-v",
        "ON_ERROR_STOP=1",
        "postgres",
    ]
    subprocess.run([*psql, "-c", "DROP TABLE IF EXISTS theirs", "-c", create], env=environment, check=True, capture_output=True)
    return _timed([*psql, "-c", f"\\copy theirs FROM '{file}' WITH (FORMAT csv)"], count, env=environment)


def _load_data(instance: lab.Instance, create: str, file: Path, count: int) -> float:
    database = lab.LAB_DATABASES["mariadb"]
    software, node = database.source(instance.version).get(), instance.nodes[0]
    environment = {**os.environ, **database.environment(software), "MYSQL_PWD": instance.password()}
    client = [
        software / mariadb._FILES / "bin" / "mariadb",
        "--no-defaults",
        "-h",
        node.host,
        "-P",
        str(node.port),
        "-u",
        "sensorbench",
        "--local-infile=1",
    ]
    subprocess.run(
        [*client, "-e", f"CREATE DATABASE IF NOT EXISTS theirs; USE theirs; DROP TABLE IF EXISTS theirs; {create}"],
        env=environment,
        check=True,
        capture_output=True,
    )
    return _timed(
        [*client, "theirs", "-e", f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE theirs FIELDS TERMINATED BY ','"],
        count,
        env=environment,
    )


def _write_zadds(file: Path, rows: pa.Table) -> None:
    with file.open("wb") as out:
        for row in rows.to_pylist():
            stamp = int(row["time"].timestamp() * 1e6)
            words = [
                b"ZADD",
                f"theirs:{row['floor']}:{row['zone']}:{row['sensor']}".encode(),
                str(stamp).encode(),
                f"{stamp}:{row['value']}".encode(),
            ]
            out.write(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))


def _pipe(instance: lab.Instance, file: Path, count: int) -> float:
    software = lab.LAB_DATABASES["redis"].source(instance.version).get()
    environment = {**os.environ, **lab.LAB_DATABASES["redis"].environment(software)}
    client = [redis._program(software, "redis-cli"), "-h", instance.nodes[0].host, "-p", str(instance.nodes[0].port)]
    subprocess.run([*client, "FLUSHALL"], env=environment, check=True, capture_output=True)
    with file.open("rb") as commands:
        return _timed([*client, "--pipe"], count, env=environment, stdin=commands)


def main() -> None:
    """Starts servers on one processor, measures clients on another, prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth as much")
    arguments = parser.parse_args()
    share = 0.1 if arguments.quick else 1.0
    cpus = sorted(os.sched_getaffinity(0))
    instances = {}
    try:
        for name in ("redis", "postgresql", "mariadb"):
            instances[name] = lab.up(
                lab.Wish(name, name=f"bench-{name}", cpus=[cpus[-1]], settings=SETTINGS.get(name, {}), stays=False)
            )
        os.sched_setaffinity(0, [cpus[0]])
        costs = {
            "Redis GET, 50 connections": redis_get(instances["redis"], 50, 50, int(500_000 * share)),
            "Redis GET, 50 connections, 16 pipelined": redis_get(instances["redis"], 50, 800, int(2_000_000 * share)),
            "PostgreSQL point select, 8 connections": postgresql_select(instances["postgresql"], 8, int(160_000 * share)),
            "MariaDB point select, 8 connections": mariadb_select(instances["mariadb"], 8, int(160_000 * share)),
        }
        loads = load_rates(instances, int(1_000_000 * share))
    finally:
        for instance in instances.values():
            lab.down(instance.name)
    table = Table(title="µs of client processor time an operation", box=None)
    for column in ("what", "ours", "theirs", "ratio", "ours/s", "theirs/s", "marks"):
        table.add_column(column)
    for what, (ours, theirs) in costs.items():
        mark = next(text for key, text in MARKS.items() if what.startswith(key))
        table.add_row(
            what,
            f"{ours.cpu_us:.2f}",
            f"{theirs.cpu_us:.2f}",
            f"{ours.cpu_us / theirs.cpu_us:.2f}",
            f"{ours.per_s:,.0f}",
            f"{theirs.per_s:,.0f}",
            mark,
        )
    Console(width=200).print(table)
    table = Table(title="rows loaded a second", box=None)
    for column in ("what", "ours", "its own tool", "ours / its own"):
        table.add_column(column)
    for what, our_rate, their_rate in loads:
        table.add_row(what, f"{our_rate:,.0f}", f"{their_rate:,.0f}", f"{our_rate / their_rate:.2f}")
    Console(width=200).print(table)


if __name__ == "__main__":
    main()
