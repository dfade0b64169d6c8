"""`make bench-replay`: how late a replay of a million recorded statements is by itself, beside the timer lag of `doctor`. Asserts nothing.

A server of each kind in `SERVERS` is recorded under a mixed load with transactions (`recorded_traffic.py`); the recording is repeated until it has as
many statements as are wanted, and replayed at 1 × at that server, writes into a namespace of ours. What PostgreSQL recorded goes to the null target
first, which shows what the replayer alone can do. Where there are several processors, the server has the last one, and the replayer the first:
a server of its own machine would take none of the replayer's time.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from benches.processors import on_processor
from benches.recorded_traffic import command, make_tables, record, tile_trace
from rich.console import Console
from rich.table import Table

from sensorbench import lab
from sensorbench.report import formatting
from sensorbench.runner import timer_lag_s

SERVERS = ("postgresql", "mariadb", "cassandra")
RECORDED_S = 20.0
# The lag of timers varies: it is measured so often before a replay and as often after it, and the median counts.
REPEATS, REPEAT_S = 3, 5.0
COLUMNS = (
    "target",
    "statements",
    "ok",
    "rate",
    "own lag p50",
    "own lag p99",
    "timer lag of doctor p99",
    "lowest to highest",
    "ratio",
    "all lag p99",
    "late because",
    "client CPU",
    "memory: replay",
    "memory: 1% of it",
    "load",
)


def run(*words: object) -> resource.struct_rusage:
    """A command in a process of its own; what that used."""
    process = subprocess.Popen(command(*words), stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"sensorbench {' '.join(map(str, words))} ended with exit code {os.waitstatus_to_exitcode(status)}")
    return usage


def timer_lags_s() -> list[float]:
    """How late timers are on this machine at p99, in s, measured several times."""
    return [timer_lag_s(REPEAT_S) for _ in range(REPEATS)]


def measured(recorded: Path, target: str, shown: str, statements: int) -> list[str]:
    """The figures of a replay at a target, a text for each column."""
    with tempfile.TemporaryDirectory(prefix="sensorbench-replay-", dir="/var/tmp") as name:
        folder = Path(name)
        usage, timers_s = {}, timer_lags_s()
        for size, count in (("small", statements // 100), ("large", statements)):
            tile_trace(recorded, folder / size, count)
            out = folder / f"{size}-out"
            usage[size] = run("traffic", "replay", folder / size, target, "--allow-writes", "--out", out, "--no-open", "--quiet")
        summary = json.loads((folder / "large-out" / "summary.json").read_text(encoding="utf-8"))["result"]
        timers_s += timer_lags_s()
        log = pq.read_table(
            folder / "large-out" / "runs" / "001" / "operations.parquet", columns=["intended_start_ns", "start_ns"]
        )
    lags_s = (log["start_ns"].to_numpy() - log["intended_start_ns"].to_numpy()) / 1e9
    own, timer_s = summary["own_lag_s"], statistics.median(timers_s)
    return [
        shown,
        f"{summary['counts']['started']:,}",
        f"{summary['counts']['ok']:,}",
        f"{summary['counts']['started'] / summary['run_s']:,.0f}/s",
        formatting.duration(own["p50"]),
        formatting.duration(own["p99"]),
        formatting.duration(timer_s),
        f"{formatting.duration(min(timers_s))} to {formatting.duration(max(timers_s))}",
        f"{own['p99'] / timer_s:.2f}",
        formatting.duration(float(np.quantile(lags_s, 0.99))),
        summary["late_because"],
        f"{summary['client_health']['client_cpu']:.2f}",
        formatting.size(usage["large"].ru_maxrss * 1024),
        formatting.size(usage["small"].ru_maxrss * 1024),
        f"{os.getloadavg()[0]:.1f}",
    ]


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", action="append", choices=SERVERS, help="only this kind; may be given several times")
    parser.add_argument("--statements", type=int, default=1_000_000)
    parser.add_argument("--rate", type=float, default=5000.0, help="statements per second")
    arguments = parser.parse_args()
    table = Table(box=None)
    for column in COLUMNS:
        table.add_column(column, justify="right")
    processors = sorted(os.sched_getaffinity(0))
    for number, database in enumerate(arguments.server or SERVERS):
        with (
            lab.borrowed(lab.ServerSpec(database, name=f"bench-{database}", cpus=[processors[-1]], stays=False)) as instance,
            on_processor(processors[0]),
            tempfile.TemporaryDirectory(prefix="sensorbench-replay-", dir="/var/tmp") as folder,
        ):
            url = make_tables(instance)
            recorded = record(instance, url, Path(folder), RECORDED_S, arguments.rate)
            if number == 0:
                table.add_row(*measured(recorded, "null:", "null", arguments.statements))
            table.add_row(*measured(recorded, url, database, arguments.statements))
    Console(width=240).print(table)


if __name__ == "__main__":
    main()
