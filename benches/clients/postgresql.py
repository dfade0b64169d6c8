"""PostgreSQL: a point select against pgbench, loading against COPY by psql."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from benches.clients import sql, tools
from benches.clients.loading import LoadComparison, rate_of_a_tool
from benches.clients.measuring import KEYS, Comparison, Loop, in_turn, loaded, through_a_tool, through_the_engine

from sensorbench import lab
from sensorbench.lab.software import DebianPackages

SETTINGS: dict[str, str] = {}
CONNECTIONS = 8
MARKS = "pgbench 10.3 µs, go-ycsb and YCSB 14.2"
# Downloaded and unpacked into the lab's cache; nothing is installed.
CLIENTS = DebianPackages("pgbench", "debian", ("libpq5", "postgresql-15", "postgresql-client-15"))
PROGRAMS = Path("usr/lib/postgresql/15/bin")
SELECT = {
    "name": "select",
    "parameters": [{"name": "id", "type": "integer"}],
    "columns": [{"name": "value", "type": "double"}],
    "statement": {"statement": "SELECT value FROM bench WHERE id = :id"},
}
SCHEMA = {
    "create": {"statements": ["CREATE TABLE bench (id integer PRIMARY KEY, value double precision NOT NULL)"]},
    "settle": {"statements": ["VACUUM (ANALYZE) bench"]},
    "tables": {"bench": [{"name": "id", "type": "integer"}, {"name": "value", "type": "double"}]},
    "operations": [SELECT],
}
COLUMNS = "floor integer NOT NULL, zone integer NOT NULL, sensor varchar(32) NOT NULL, time timestamp NOT NULL, value double precision NOT NULL"


def costs(instance: lab.Instance, share: float) -> list[Comparison]:
    """A closed loop on each connection."""
    loop = Loop(int(160_000 * share), CONNECTIONS)
    rows = pa.table({"id": pa.array(range(KEYS)), "value": pa.array(np.arange(KEYS) / 7)})
    ids = pa.table({"id": pa.array(np.random.default_rng(1).integers(0, KEYS, KEYS))})
    with loaded(instance, f"connections={CONNECTIONS}", SCHEMA, "bench", rows) as target, tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "select.sql"
        script.write_text(f"\\set id random(0, {KEYS - 1})\nSELECT value FROM bench.bench WHERE id = :id;\n", encoding="utf-8")
        options: tools.Words = [
            "-n",
            "-M",
            "prepared",
            "-f",
            script,
            "-c",
            CONNECTIONS,
            "-j",
            1,
            "-t",
            loop.operations // CONNECTIONS,
        ]
        command, environment = _client(instance, "pgbench")
        ours, theirs = in_turn(
            lambda: through_the_engine(target, SELECT, loop, ids),
            lambda: through_a_tool([*command, *options, "postgres"], loop.operations, _rate, environment),
        )
    return [Comparison(f"PostgreSQL point select, {CONNECTIONS} connections", ours, theirs, MARKS)]


def _rate(output: str) -> float:
    return float(output.split("tps = ")[1].split()[0])


def _client(instance: lab.Instance, program: str) -> tuple[tools.Words, dict[str, str]]:
    """One of the server's own clients with where the server is; the password goes by the environment."""
    folder, environment = tools.unpacked(CLIENTS)
    node = instance.nodes[0]
    command: tools.Words = [folder / PROGRAMS / program, "-h", node.host, "-p", node.port, "-U", "sensorbench"]
    return command, {**environment, "PGPASSWORD": instance.password()}


def loads(instance: lab.Instance, rows: pa.Table) -> list[LoadComparison]:
    """Into tables of SQL."""
    return sql.loads(
        instance, "PostgreSQL", COLUMNS, rows, "psql \\copy", lambda columns, file: _copy(instance, columns, file, rows.num_rows)
    )


def _copy(instance: lab.Instance, columns: str, file: Path, rows: int) -> float:
    command, environment = _client(instance, "psql")
    psql = [*command, "-q", "-v", "ON_ERROR_STOP=1", "postgres", "-c"]
    tools.call([*psql, "DROP TABLE IF EXISTS theirs", "-c", f"CREATE TABLE theirs ({columns})"], environment)
    return rate_of_a_tool([*psql, f"\\copy theirs FROM '{file}' WITH (FORMAT csv)"], rows, environment)
