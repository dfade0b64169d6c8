"""`make bench-replay`: how late a replay of a long trace is by itself, beside the timer lag of `doctor`, and how much memory it takes. Asserts nothing.

The trace is generated: Poisson arrivals, sessions of a few hundred statements that follow one another, three templates of reads. It goes to the
null target and to a server of each kind in `SERVERS`, which the lab starts for this alone; with `--target`, to those that are named.
"""

import argparse
import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from sensorbench import lab
from sensorbench.report import formatting
from sensorbench.runner import timer_lag_s
from sensorbench.runner.variants import parse_target
from sensorbench.traffic import STATEMENTS, StatementWriter

SERVERS = ("postgresql", "mariadb")
TEMPLATES = {
    "postgresql": (
        "SELECT $1::int + 1",
        "SELECT n FROM generate_series(1, 10) AS n WHERE n > $1",
        "SELECT $1::text, $2::numeric, $3::int",
    ),
    "mysql": (
        "SELECT $1 + 1",
        "WITH RECURSIVE s AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM s WHERE n < 10) SELECT n FROM s WHERE n > $1",
        "SELECT $1, CAST($2 AS DECIMAL(10, 2)), $3",
    ),
}
LITERALS = ("[{0}]", "[{0}]", '["text {0}", {0}.50, null]')
SESSIONS_AT_ONCE, OF_EACH = 40, 250
BATCH = 100_000
COLUMNS = (
    "target",
    "statements",
    "ok",
    "rate",
    "own lag p50",
    "own lag p99",
    "timer lag of doctor p99",
    "ratio",
    "all lag p99",
    "late because",
    "client CPU",
    "memory: replay",
    "memory: 1 % of it",
    "load",
)


def write_trace(folder: Path, database: str, statements: int, rate_per_s: float) -> None:
    """Writes a trace, some of its rows at a time."""
    folder.mkdir()
    random = np.random.default_rng(1)
    at_us = 1.7e15
    with StatementWriter(folder) as writer:
        for first in range(0, statements, BATCH):
            count = min(BATCH, statements - first)
            times_us = at_us + np.cumsum(random.exponential(1e6 / rate_per_s, count))
            at_us = float(times_us[-1])
            numbers = np.arange(first, first + count)
            place = numbers // SESSIONS_AT_ONCE
            session = place // OF_EACH * SESSIONS_AT_ONCE + numbers % SESSIONS_AT_ONCE
            template = random.choice(len(LITERALS), count, p=[0.6, 0.3, 0.1])
            values = random.integers(0, 10, count)
            literals = [LITERALS[kind].format(value) for kind, value in zip(template, values, strict=True)]
            columns = (
                times_us.astype(np.int64),
                session.astype(np.int32),
                place % OF_EACH,
                pa.nulls(count, pa.int64()),
                template.astype(np.int32),
                literals,
                np.full(count, 0.001),
                pa.nulls(count, pa.int64()),
                pa.nulls(count, pa.string()),
            )
            arrays = [pa.array(column, field.type) for column, field in zip(columns, STATEMENTS, strict=True)]
            writer.write(pa.record_batch(arrays, schema=STATEMENTS))
    templates = [
        {"number": number, "statement": statement, "kind": "read", "parameters": []}
        for number, statement in enumerate(TEMPLATES[database])
    ]
    described = {"database": database, "version": "", "templates": templates}
    (folder / "trace.json").write_text(json.dumps(described), encoding="utf-8")


def replay(trace: Path, target: str, out: Path) -> resource.struct_rusage:
    """Replays a trace in a process of its own; what that used."""
    words = ("-m", "sensorbench", "traffic", "replay", str(trace), target, "--out", str(out), "--no-open", "--quiet")
    process = subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"sensorbench {' '.join(words[2:])} ended with exit code {os.waitstatus_to_exitcode(status)}")
    return usage


def measured(target: str, statements: int, rate_per_s: float) -> list[str]:
    """The figures of a replay at a target, a text for each column."""
    replays = parse_target(target).database.replays or ""
    with tempfile.TemporaryDirectory(prefix="sensorbench-replay-") as name:
        folder = Path(name)
        usage = {}
        for size, count in (("small", statements // 100), ("large", statements)):
            write_trace(folder / size, replays if replays in TEMPLATES else "postgresql", count, rate_per_s)
            usage[size] = replay(folder / size, target, folder / f"{size}-out")
        summary = json.loads((folder / "large-out" / "summary.json").read_text(encoding="utf-8"))["result"]
        timer_s = timer_lag_s(5.0)
        log = pq.read_table(
            folder / "large-out" / "runs" / "001" / "operations.parquet", columns=["intended_start_ns", "start_ns"]
        )
    lags_s = (log["start_ns"].to_numpy() - log["intended_start_ns"].to_numpy()) / 1e9
    own = summary["own_lag_s"]
    return [
        target,
        f"{summary['counts']['started']:,}",
        f"{summary['counts']['ok']:,}",
        f"{summary['counts']['started'] / summary['run_s']:,.0f}/s",
        formatting.duration(own["p50"]),
        formatting.duration(own["p99"]),
        formatting.duration(timer_s),
        f"{own['p99'] / timer_s:.2f}",
        formatting.duration(float(np.quantile(lags_s, 0.99))),
        summary["late_because"],
        f"{summary['client_health']['client_cpu']:.2f}",
        formatting.size(usage["large"].ru_maxrss * 1024),
        formatting.size(usage["small"].ru_maxrss * 1024),
        f"{os.getloadavg()[0]:.1f}",
    ]


def targets(named: list[str] | None) -> Generator[str]:
    """Those that are named, else the null target and servers of the lab, one at a time."""
    if named:
        yield from named
        return
    yield "null:"
    for name in SERVERS:
        with lab.borrowed(lab.ServerSpec(name, name=f"bench-{name}", stays=False)):
            yield f"lab:bench-{name}"


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", action="append", help="a URL, or lab:NAME; may be given several times")
    parser.add_argument("--statements", type=int, default=1_000_000)
    parser.add_argument("--rate", type=float, default=5000.0, help="statements per second")
    arguments = parser.parse_args()
    table = Table(box=None)
    for column in COLUMNS:
        table.add_column(column, justify="right")
    with contextlib.closing(targets(arguments.target)) as found:
        for target in found:
            table.add_row(*measured(target, arguments.statements, arguments.rate))
    Console(width=240).print(table)


if __name__ == "__main__":
    main()
