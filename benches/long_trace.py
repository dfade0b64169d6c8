"""`make bench-replay-memory`: the memory that importing, describing and replaying a log takes that grows to 20 million statements. Asserts nothing.

PostgreSQL logs a mixed load (`recorded_traffic.py`); that log is written over and over into a named pipe, from which it is imported, so that it never lies
on disk. The trace is replayed at the null target as fast as that answers.
"""

import argparse
import os
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from benches.recorded_traffic import RecordedLog, make_tables, record
from benches.replay import run
from rich.console import Console
from rich.table import Table

from sensorbench import lab
from sensorbench.report import formatting
from sensorbench.traffic import read_trace

STATEMENTS = (500_000, 5_000_000, 20_000_000)
RECORDED_S, RATE_PER_S = 20.0, 2500.0
_LINES = 1000


@dataclass(frozen=True)
class Step:
    """One command over the trace: how long it took (s), and the most memory that it had (bytes)."""

    took_s: float
    memory_bytes: int

    @property
    def shown(self) -> str:
        """Memory and time."""
        return f"{formatting.size(self.memory_bytes)} in {formatting.duration(self.took_s)}"


def step(*words: object) -> Step:
    """Runs a command."""
    started_s = time.monotonic()
    usage = run(*words)
    return Step(time.monotonic() - started_s, usage.ru_maxrss * 1024)


def write_log(log: RecordedLog, pipe: Path, statements: int) -> None:
    """Writes a log of this many statements into a pipe, whole recordings of it."""
    with pipe.open("wb") as file:
        waiting: list[bytes] = []
        for line in log.lines(-(-statements // log.statements)):
            waiting.append(line)
            if len(waiting) == _LINES:
                file.write(b"".join(waiting))
                waiting.clear()
        file.write(b"".join(waiting))


def measured(log: RecordedLog, folder: Path, statements: int) -> list[str]:
    """The figures of one size, a text for each column."""
    pipe, trace = folder / "log", folder / "trace"
    os.mkfifo(pipe)
    writing = threading.Thread(target=write_log, args=(log, pipe, statements))
    writing.start()
    imported = step("traffic", "import", pipe, "--log-format", "postgresql-recorded", "--out", trace, "--json")
    writing.join()
    described = step("traffic", "describe", trace, "--no-open", "--json")
    out = folder / "out"
    replayed = step("traffic", "replay", trace, "null:", "--speed", "max", "--allow-writes", "--out", out, "--no-open", "--quiet")
    on_disk = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    made = read_trace(trace)
    counts = (made.statements or 0, made.sessions or 0)
    return [*(f"{count:,}" for count in counts), imported.shown, described.shown, replayed.shown, formatting.size(on_disk)]


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--statements", type=int, action="append", help="how many; may be given several times")
    arguments = parser.parse_args()
    table = Table("statements", "sessions", "import", "describe", "replay", "on disk at the end", box=None)
    with (
        lab.borrowed(lab.ServerSpec("postgresql", name="bench-postgresql", stays=False)) as instance,
        tempfile.TemporaryDirectory(prefix="sensorbench-replay-", dir="/var/tmp") as name,
    ):
        recorded = record(instance, make_tables(instance), Path(name), RECORDED_S, RATE_PER_S)
        log = RecordedLog(Path(name) / "log.txt", read_trace(recorded).statements or 1)
    for statements in arguments.statements or STATEMENTS:
        with tempfile.TemporaryDirectory(prefix="sensorbench-replay-", dir="/var/tmp") as name:
            table.add_row(*measured(log, Path(name), statements))
    Console(width=200).print(table)


if __name__ == "__main__":
    main()
