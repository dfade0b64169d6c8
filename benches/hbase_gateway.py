"""What HBase's Thrift gateway costs: the same scans by the driver, which goes through it, and by HBase's own Java client, which does not.

Prints times and ratios with their intervals; asserts nothing. Both have one scan in flight, and take as many rows at a time.
"""

import argparse
import contextlib
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
from benches.clients import tools
from benches.clients.measuring import Loop, loaded, through_the_engine
from rich.console import Console
from rich.table import Table

from sensorbench import lab
from sensorbench.analysis.intervals import spread_over_runs
from sensorbench.errors import SensorbenchError
from sensorbench.lab.databases.hbase import HELPERS, JAVA, ZOOKEEPER_PORT
from sensorbench.lab.helpers import class_path, compiled
from sensorbench.lab.jvm import require_java

SERIES, READINGS = 200, 500
PAGE = 1000
# Turns before figures count: both virtual machines compile what they do often.
WARMUP, TURNS = 3, 12
FIELDS = [{"name": "series", "type": "integer"}, {"name": "time", "type": "timestamp"}, {"name": "value", "type": "double"}]
CREATE = {"table": {"readings": {"key": FIELDS[:2], "columns": FIELDS[2:]}}}


@dataclass(frozen=True)
class Scanned:
    """A scan: how it is asked here and there, how often in one turn, and how many rows it finds."""

    what: str
    operation: dict[str, Any]
    keys: str
    repeats: int
    rows: int


# The keys are those of the driver: 0x15 is an integer of one byte.
SCANS = (
    Scanned(
        f"a series, {READINGS} rows",
        {
            "name": "series",
            "parameters": FIELDS[:1],
            "columns": FIELDS[1:],
            "statement": {"scan": {"table": "readings", "prefix": [":series"]}},
        },
        "1507 1508",
        200,
        READINGS,
    ),
    Scanned(
        f"all {SERIES * READINGS:,} rows",
        {"name": "all", "parameters": [], "columns": FIELDS, "statement": {"scan": {"table": "readings"}}},
        "- -",
        2,
        SERIES * READINGS,
    ),
)


def readings() -> pa.Table:
    """None of the values is 0."""
    minutes = np.tile(np.arange(READINGS, dtype=np.int64), SERIES)
    return pa.table(
        {
            "series": np.repeat(np.arange(SERIES, dtype=np.int64) + 1, READINGS),
            "time": pa.array(1_546_300_800_000_000 + minutes * 60_000_000, pa.timestamp("us")),
            "value": np.random.default_rng(1).normal(20.0, 5.0, SERIES * READINGS),
        }
    )


@contextlib.contextmanager
def java_client(instance: lab.Instance, table: str) -> Iterator[subprocess.Popen[str]]:
    """HBase's client in a process of its own, which scans on request."""
    if instance.coordinator is None:
        raise AssertionError("HBase has a coordinator")
    software, _ = tools.of_server(instance)
    java = require_java(JAVA)
    classes = compiled(HELPERS, software, java)
    command: list[str | Path] = [
        java.java, "-cp", class_path(software, classes), "HbaseScan", instance.coordinator.host, str(ZOOKEEPER_PORT), table, str(PAGE),
    ]  # fmt: skip
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            yield process
        finally:
            pipe(process.stdin).close()


def pipe(of: IO[str] | None) -> IO[str]:
    """One that was asked for is there."""
    if of is None:
        raise AssertionError("it is a pipe")
    return of


def by_java_s(process: subprocess.Popen[str], scan: Scanned) -> float:
    """Seconds that one scan takes HBase's own client."""
    pipe(process.stdin).write(f"{scan.keys} {scan.repeats}\n")
    pipe(process.stdin).flush()
    output = pipe(process.stdout).readline().split()
    if len(output) != 2 or int(output[0]) != scan.rows * scan.repeats:
        raise SystemExit(f"HBase's client found {output or 'nothing'}, expected {scan.rows * scan.repeats} rows")
    return int(output[1]) / scan.repeats / 1e9


def main() -> None:
    """Starts HBase with one region server, measures both in turn, prints."""
    parser = argparse.ArgumentParser(prog="benches.hbase_gateway", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a quarter of the turns")
    turns = TURNS // 4 if parser.parse_args().quick else TURNS
    table = Table(title="milliseconds a scan", box=None)
    for column in ("scan", "through the gateway", "Java client", "ratio", "95% interval"):
        table.add_column(column)
    schema = {"create": CREATE, "tables": {"readings": FIELDS}, "operations": [scan.operation for scan in SCANS]}
    chosen = pa.table({"series": pa.array([7])})
    with (
        lab.borrowed(lab.ServerSpec("hbase", name="bench-hbase", stays=False)) as instance,
        loaded(instance, f"page={PAGE}", schema, "readings", readings()) as target,
        java_client(instance, "bench:readings") as process,
    ):
        for scan in SCANS:
            loop = Loop(scan.repeats, 1)
            pairs = [
                (1.0 / through_the_engine(target, scan.operation, loop, chosen).per_s, by_java_s(process, scan))
                for _ in range(WARMUP + turns)
            ][WARMUP:]
            ours, theirs = (np.array(side) for side in zip(*pairs, strict=True))
            ratio = spread_over_runs(ours / theirs)
            times = [f"{np.median(side) * 1e3:.2f}" for side in (ours, theirs)]
            between = "-" if ratio.low is None or ratio.high is None else f"{ratio.low:.2f} to {ratio.high:.2f}"
            table.add_row(scan.what, *times, f"{ratio.value:.2f}", between)
    Console(width=120).print(table)


if __name__ == "__main__":
    try:
        main()
    except SensorbenchError as error:
        raise SystemExit(f"{error}") from None
