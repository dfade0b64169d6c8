"""MariaDB: a point select against sysbench, loading against LOAD DATA by the server's own client."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from benches.clients import sql, tools
from benches.clients.loading import LoadComparison, rate_of_a_tool
from benches.clients.measuring import KEYS, Comparison, Loop, in_turn, loaded, through_a_tool, through_the_engine

from sensorbench import lab
from sensorbench.lab.databases.mariadb import program
from sensorbench.lab.software import DebianPackages

SETTINGS: dict[str, str] = {}
CONNECTIONS = 8
MARKS = "sysbench 7.6 µs, go-ycsb 12.3"
# Downloaded and unpacked into the lab's cache; nothing is installed.
SYSBENCH = DebianPackages(
    "sysbench", "debian", ("sysbench", "libluajit-5.1-2", "libluajit-5.1-common", "libmariadb3", "libaio1", "libpq5")
)
SELECT = {
    "name": "select",
    "parameters": [{"name": "id", "type": "integer"}],
    "columns": [{"name": "c", "type": "text"}],
    "statement": {"statement": "SELECT c FROM sbtest1 WHERE id = :id"},
}
SCHEMA = {
    "create": {
        "statements": ["CREATE TABLE sbtest1 (id INT PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL)"]
    },
    "tables": {
        "sbtest1": [
            {"name": "id", "type": "integer"},
            {"name": "k", "type": "integer"},
            {"name": "c", "type": "text"},
            {"name": "pad", "type": "text"},
        ]
    },
    "operations": [SELECT],
}
COLUMNS = (
    "floor integer NOT NULL, zone integer NOT NULL, sensor varchar(32) NOT NULL, time datetime(6) NOT NULL, value double NOT NULL"
)


def costs(instance: lab.Instance, share: float) -> list[Comparison]:
    """A closed loop on each connection, over the table that sysbench asks."""
    loop = Loop(int(160_000 * share), CONNECTIONS)
    numbers = pa.array(range(1, KEYS + 1))
    rows = pa.table({"id": numbers, "k": numbers, "c": ["c" * 119] * KEYS, "pad": ["p" * 59] * KEYS})
    ids = pa.table({"id": pa.array(np.random.default_rng(1).integers(1, KEYS + 1, KEYS))})
    with (
        loaded(instance, f"connections={CONNECTIONS}", SCHEMA, "sbtest1", rows) as target,
        tempfile.TemporaryDirectory() as folder,
    ):
        command, environment = _sysbench(instance, Path(folder), loop)
        ours, theirs = in_turn(
            lambda: through_the_engine(target, SELECT, loop, ids),
            lambda: through_a_tool(command, loop.operations, _rate, environment),
        )
    return [Comparison(f"MariaDB point select, {CONNECTIONS} connections", ours, theirs, MARKS)]


def _sysbench(instance: lab.Instance, folder: Path, loop: Loop) -> tuple[tools.Words, dict[str, str]]:
    """It takes a password only on its command line or in a file."""
    options = folder / "sysbench.cnf"
    options.touch(mode=0o600)
    options.write_text(f"mysql-password={instance.password()}\n", encoding="utf-8")
    software, environment = tools.unpacked(SYSBENCH)
    node = instance.nodes[0]
    command: tools.Words = [
        software / "usr/bin/sysbench", f"--config-file={options}", "--db-driver=mysql", f"--mysql-host={node.host}",
        f"--mysql-port={node.port}", "--mysql-user=sensorbench", "--mysql-db=bench", "--tables=1", f"--table-size={KEYS}",
        f"--threads={CONNECTIONS}", f"--events={loop.operations}", "--time=0", "--rand-type=uniform",
        software / "usr/share/sysbench/oltp_point_select.lua", "run",
    ]  # fmt: skip
    return command, {**environment, "LUA_PATH": f"{software}/usr/share/sysbench/?.lua"}


def _rate(output: str) -> float:
    return float(output.split("queries:")[1].split("(")[1].split()[0])


def loads(instance: lab.Instance, rows: pa.Table) -> list[LoadComparison]:
    """Into tables of SQL."""
    return sql.loads(
        instance, "MariaDB", COLUMNS, rows, "LOAD DATA", lambda columns, file: _load_data(instance, columns, file, rows.num_rows)
    )


def _load_data(instance: lab.Instance, columns: str, file: Path, rows: int) -> float:
    software, libraries = tools.of_server(instance)
    environment = {**libraries, "MYSQL_PWD": instance.password()}
    node = instance.nodes[0]
    options: tools.Words = ["--no-defaults", "-h", node.host, "-P", node.port, "-u", "sensorbench", "--local-infile=1"]
    client: tools.Words = [program(software, "mariadb"), *options]
    create = f"CREATE DATABASE IF NOT EXISTS theirs; USE theirs; DROP TABLE IF EXISTS theirs; CREATE TABLE theirs ({columns})"
    tools.call([*client, "-e", create], environment)
    statement = f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE theirs FIELDS TERMINATED BY ','"
    return rate_of_a_tool([*client, "theirs", "-e", statement], rows, environment)
