"""Redis: GET against redis-benchmark, ZADD against redis-cli --pipe."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from benches.clients import tools
from benches.clients.loading import LoadComparison, our_rate, rate_of_a_tool
from benches.clients.measuring import KEYS, Comparison, Loop, in_turn, loaded, through_a_tool, through_the_engine

from sensorbench import lab
from sensorbench.lab.databases.redis_pipe import program

# redis-benchmark takes a password only on its command line, so its default user has none.
SETTINGS = {"requirepass": ""}
CONNECTIONS = 50
MARKS = "redis-benchmark 5.5 µs (0.41 with 16 pipelined), go-ycsb 6.5, YCSB 9"
GET = {
    "name": "get",
    "parameters": [{"name": "id", "type": "integer"}],
    "columns": [{"name": "value", "type": "text"}],
    "statement": {"table": "bench", "key": "{id}", "command": ["GET"], "row": ["{value}"]},
}
SCHEMA = {
    "create": {"table": {"bench": {"key": "{id}", "write": ["SET", "{value}"], "row": "key"}}},
    "tables": {"bench": [{"name": "id", "type": "integer"}, {"name": "value", "type": "text"}]},
    "operations": [GET],
}
SORTED_SETS = {"table": {"readings": {"key": "{floor}:{zone}:{sensor}", "write": ["ZADD", "{time}", "{time}:{value}"]}}}


def costs(instance: lab.Instance, share: float) -> list[Comparison]:
    """One operation at a time on each connection, then 16."""
    return [
        _get(instance, f"Redis GET, {CONNECTIONS} connections", Loop(int(500_000 * share), CONNECTIONS)),
        _get(instance, f"Redis GET, {CONNECTIONS} connections, 16 pipelined", Loop(int(2_000_000 * share), 16 * CONNECTIONS)),
    ]


def _get(instance: lab.Instance, what: str, loop: Loop) -> Comparison:
    rows = pa.table({"id": pa.array(range(KEYS)), "value": pa.array(["abc"] * KEYS)})
    ids = pa.table({"id": pa.array(np.random.default_rng(1).integers(0, KEYS, KEYS))})
    software, environment = tools.of_server(instance)
    node = instance.nodes[0]
    benchmark: tools.Words = [
        program(software, "redis-benchmark"), "-h", node.host, "-p", node.port, "-c", CONNECTIONS, "-n", loop.operations,
        "-P", loop.concurrency // CONNECTIONS, "-r", KEYS, "-q", "-t",
    ]  # fmt: skip
    tools.call([*benchmark, "set"], environment)
    with loaded(instance, f"connections={CONNECTIONS}", SCHEMA, "bench", rows) as target:
        ours, theirs = in_turn(
            lambda: through_the_engine(target, GET, loop, ids),
            lambda: through_a_tool([*benchmark, "get"], loop.operations, _rate, environment),
        )
    return Comparison(what, ours, theirs, MARKS)


def _rate(output: str) -> float:
    return float(output.split("requests per second")[0].split()[-1])


def loads(instance: lab.Instance, rows: pa.Table) -> list[LoadComparison]:
    """Sorted sets, one for each series."""
    with tempfile.TemporaryDirectory() as folder:
        commands = Path(folder) / "commands.resp"
        _write_zadds(commands, rows)
        ours, theirs = in_turn(
            lambda: our_rate(f"{lab.url_of(instance)}&namespace=bench", SORTED_SETS, "readings", rows),
            lambda: _pipe(instance, commands, rows.num_rows),
        )
    return [LoadComparison("Redis ZADD", "redis-cli --pipe", ours, theirs)]


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


def _pipe(instance: lab.Instance, file: Path, rows: int) -> float:
    software, environment = tools.of_server(instance)
    node = instance.nodes[0]
    client: tools.Words = [program(software, "redis-cli"), "-h", node.host, "-p", node.port]
    tools.call([*client, "FLUSHALL"], environment)
    with file.open("rb") as commands:
        return rate_of_a_tool([*client, "--pipe"], rows, environment, commands)
