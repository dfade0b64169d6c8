"""ClickHouse: loading by RowBinary over HTTP against its own client, which is given CSV."""

import tempfile
from pathlib import Path
from xml.sax.saxutils import escape

import pyarrow as pa
from benches.clients import curl, tools
from benches.clients.loading import LoadComparison, as_csv, our_rate, rate_of_a_tool
from benches.clients.measuring import in_turn

from sensorbench import lab
from sensorbench.lab.instance import USER
from sensorbench.lab.software import DebianPackages

# Downloaded and unpacked into the lab's cache; nothing is installed.
CLIENT = DebianPackages("clickhouse-client", "debian", ("clickhouse-client", "clickhouse-common", "libreadline8"))
NATIVE_PORT = 9000
# Servers of 2018 have no times of less than a second: a time is a number of µs.
TABLE = "(floor Int64, zone Int64, sensor String, time Int64, value Float64) ENGINE = MergeTree() ORDER BY (floor, zone, sensor, time)"


def loads(instance: lab.Instance, rows: pa.Table) -> list[LoadComparison]:
    """In the order of the table's key."""
    numbers = rows.set_column(3, "time", rows["time"].cast(pa.int64()))
    with as_csv(numbers) as file, tempfile.TemporaryDirectory() as folder:
        ours, theirs = in_turn(
            lambda: our_rate(
                f"{lab.url_of(instance)}&namespace=bench", {"statements": [f"CREATE TABLE readings {TABLE}"]}, "readings", rows
            ),
            lambda: _insert(instance, Path(folder), file, rows.num_rows),
        )
    return [LoadComparison("ClickHouse", "clickhouse-client, FORMAT CSV", ours, theirs)]


def _insert(instance: lab.Instance, folder: Path, file: Path, rows: int) -> float:
    """It takes a password only on its command line or in a file."""
    login = folder / "client.xml"
    login.touch(mode=0o600)
    password = escape(instance.password())
    login.write_text(f"<config><user>{USER}</user><password>{password}</password></config>\n", encoding="utf-8")
    software, _ = tools.unpacked(CLIENT)
    _, libraries = tools.of_server(instance)
    found = f"{libraries['LD_LIBRARY_PATH']}:{software / 'usr/lib/x86_64-linux-gnu'}:{software / 'lib/x86_64-linux-gnu'}"
    environment = {"LD_LIBRARY_PATH": found, "HOME": str(folder)}
    client: tools.Words = [
        software / "usr/bin/clickhouse-client", f"--config-file={login}", "--host", instance.nodes[0].host, "--port", NATIVE_PORT,
        "--query",
    ]  # fmt: skip
    tools.call([*client, "DROP TABLE IF EXISTS default.theirs"], environment)
    tools.call([*client, f"CREATE TABLE default.theirs {TABLE}"], environment)
    with file.open("rb") as values:
        rate = rate_of_a_tool([*client, "INSERT INTO default.theirs FORMAT CSV"], rows, environment, values)
    curl.require(int(tools.call([*client, "SELECT count() FROM default.theirs"], environment)), rows, "clickhouse-client")
    return rate
