"""`make bench-accounting`: the memory and the time that it takes to account for up to 100 million acknowledged readings. Prints figures; asserts nothing.

A fifth of the readings comes late and one in twenty comes again with another value, of which the last counts. Each size is a run of its own in a process of
its own, whose memory is read while readings are written, while they are accounted for, and until the report is there. The target is a file of
SQLite, in the same process, whose cache is small; `--target` names another one, such as a server of the lab.
"""

import argparse
import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from benches.recorded_traffic import command
from rich.console import Console
from rich.table import Table

from sensorbench.report import formatting
from sensorbench.schemas import shipped_schemas

READINGS = (1_000_000, 10_000_000, 100_000_000)
STAGES = ("run", "accounting", "report")
BETWEEN_LOOKS_S = 0.1
EXPERIMENT = """
dataset = "beijing-air-quality"
scale = 0.002
[[target]]
url = "{url}"
schema = "{schema}"
[workload]
mix = {{ insert_reading = 1 }}
schedule = {{ concurrency = 4 }}
operations = {readings}
repetitions = 1
[workload.delivery]
disorder = {{ model = "poisson", ratio = 0.2, mean = 100 }}
duplicates = {{ share = 0.05, values = "other" }}
"""
COLUMNS = (
    "readings",
    "acknowledged",
    "written",
    *(f"memory: {stage}" for stage in STAGES),
    "accounting took",
    "on disk meanwhile",
    "not as they should be",
)


@dataclass
class Watched:
    """What one size took: the most memory of each stage (bytes), how long each was (s), and the most that the accounts had on disk (bytes)."""

    memory_bytes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(STAGES, 0))
    took_s: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STAGES, 0.0))
    disk_bytes: int = 0


def watch(process: subprocess.Popen[bytes], out: Path) -> Watched:
    """Watches a command until it ends. It accounts for readings while the folder of its accounts exists."""
    watched, of_command, stage = Watched(), psutil.Process(process.pid), STAGES[0]
    before_s = time.monotonic()
    while process.poll() is None:
        accounts = list(out.glob("accounting-*"))
        if accounts:
            stage = STAGES[1]
            watched.disk_bytes = max(watched.disk_bytes, sum(sizes_in(accounts[0])))
        elif stage == STAGES[1]:
            stage = STAGES[2]
        try:
            watched.memory_bytes[stage] = max(watched.memory_bytes[stage], of_command.memory_info().rss)
        except psutil.NoSuchProcess:
            break
        time.sleep(BETWEEN_LOOKS_S)
        now_s = time.monotonic()
        watched.took_s[stage] += now_s - before_s
        before_s = now_s
    return watched


def sizes_in(folder: Path) -> Iterator[int]:
    """Bytes of the files of a folder, of which some may be gone already."""
    for file in folder.rglob("*"):
        try:
            yield file.stat().st_size
        except FileNotFoundError:
            continue


def upserting(folder: Path) -> Path:
    """A schema for SQLite in which the last write counts."""
    text = shipped_schemas("sensors", "sqlite")["natural"].read_text(encoding="utf-8")
    file = folder / "upserting.toml"
    text = text.replace('duplicates = "first"', 'duplicates = "last"').replace("INSERT INTO", "INSERT OR REPLACE INTO")
    file.write_text(text, encoding="utf-8")
    return file


def measured(url: str, schema: str, readings: int, folder: Path) -> list[str]:
    """The figures of one size, a text for each column."""
    file, out = folder / "accounting.toml", folder / "out"
    file.write_text(EXPERIMENT.format(url=url, schema=schema, readings=readings), encoding="utf-8")
    process = subprocess.Popen(command("run", file, "--replace", "--out", out, "--no-open", "--quiet"), stdout=subprocess.DEVNULL)
    watched = watch(process, out)
    if process.wait():
        raise SystemExit(f"sensorbench run {file} ended with exit code {process.returncode}")
    result = json.loads((out / "summary.json").read_text(encoding="utf-8"))["result"]
    ((of_write,),) = (checks["accounting"] for checks in result["contents"].values())
    wrong = ("lost", "wrong_winners", "extra", "other_values", "unanswered", "unexamined", "unstable")
    return [
        f"{readings:,}",
        f"{of_write['acknowledged']:,}",
        formatting.duration(watched.took_s["run"]),
        *(formatting.size(watched.memory_bytes[stage]) for stage in STAGES),
        formatting.duration(watched.took_s["accounting"]),
        formatting.size(watched.disk_bytes),
        f"{sum(of_write[name] for name in wrong):,}",
    ]


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--readings", type=int, action="append", help="how many are delivered; may be given several times")
    parser.add_argument("--target", help="URL of a target, such as lab:postgresql")
    parser.add_argument("--schema", default="natural", help="schema at that target, of the set sensors")
    arguments = parser.parse_args()
    table = Table(*COLUMNS, box=None)
    for readings in arguments.readings or READINGS:
        with tempfile.TemporaryDirectory(prefix="sensorbench-accounting-", dir="/var/tmp") as name:
            folder = Path(name)
            url, schema = arguments.target, arguments.schema
            if url is None:
                url, schema = f"sqlite:{folder / 'readings.db'}", str(upserting(folder))
            table.add_row(*measured(url, schema, readings, folder))
    Console(width=200).print(table)


if __name__ == "__main__":
    main()
