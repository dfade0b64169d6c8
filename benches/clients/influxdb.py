"""InfluxDB 1: loading against the import of its own client, in the same line protocol."""

import tempfile
from pathlib import Path

import pyarrow as pa
from benches.clients import curl, tools
from benches.clients.loading import LoadComparison, our_rate, rate_of_a_tool
from benches.clients.measuring import in_turn

from sensorbench import lab
from sensorbench.lab.software import DebianPackages

# Downloaded and unpacked into the lab's cache; nothing is installed.
CLIENT = DebianPackages("influxdb-client", "debian", ("influxdb-client",))
POINTS = {"points": {"readings": {"tags": ["floor", "zone", "sensor"], "fields": ["value"]}}}
HEAD = "# DDL\nCREATE DATABASE theirs\n# DML\n# CONTEXT-DATABASE: theirs\n"


def loads(instance: lab.Instance, rows: pa.Table) -> list[LoadComparison]:
    """Points of a hundred series."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "readings.txt"
        curl.write_lines(file, map(_line, rows.set_column(3, "time", rows["time"].cast(pa.int64())).to_pylist()), HEAD)
        ours, theirs = in_turn(
            lambda: our_rate(f"{lab.url_of(instance)}?namespace=bench", POINTS, "readings", rows),
            lambda: _import(instance, file, rows.num_rows),
        )
    return [LoadComparison("InfluxDB", "influx -import", ours, theirs)]


def _line(row: dict[str, object]) -> str:
    return "readings,floor={floor},zone={zone},sensor={sensor} value={value} {time}\n".format(**row)


def _import(instance: lab.Instance, file: Path, rows: int) -> float:
    software, environment = tools.unpacked(CLIENT)
    node = instance.nodes[0]
    client: tools.Words = [software / "usr/bin/influx", "-host", node.host, "-port", node.port]
    tools.call([*client, "-execute", "DROP DATABASE theirs"], environment)
    rate = rate_of_a_tool([*client, "-import", "-path", file, "-precision", "u"], rows, environment)
    count = [*client, "-database", "theirs", "-format", "csv", "-execute", "SELECT count(value) FROM readings"]
    curl.require(int(tools.call(count, environment).strip().rsplit(",", 1)[1]), rows, "influx -import")
    return rate
