"""`make bench-report`: what the report of a comparison costs over the number of its operations. Prints figures; asserts nothing.

Two schemas of an embedded database execute this many operations each, of which all are logged and all answers are compared; then `report` runs in a
process of its own.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from sensorbench.report import formatting
from sensorbench.results import read_comparison

EXPERIMENT = """
dataset = "beijing-air-quality"
scale = 0.002
[[target]]
url = "fjall"
schema = "by_sensor"
[[target]]
url = "fjall"
schema = "by_sensor_day"
[workload]
mix = {{ get_sensor_data = 1, get_peak_data = 1 }}
operations = {operations}
warmup = "1s"
repetitions = 1
log = "all"
"""
COLUMNS = ("operations", "measured", "command in all", "report: CPU", "report: elapsed", "report: memory", "page")


def row_of(operations: int, folder: Path) -> list[str]:
    """What a comparison of two variants with this many operations each takes, and its report."""
    experiment, out = folder / "report.toml", folder / f"report-{operations}"
    experiment.write_text(EXPERIMENT.format(operations=operations), encoding="utf-8")
    started_s = time.monotonic()
    _run("run", str(experiment), "--out", str(out))
    whole_s = time.monotonic() - started_s

    runs = [run for of_variant in read_comparison(out).runs.values() for run in of_variant]
    measured_s = sum((phase.end_ns or 0) - (phase.start_ns or 0) for run in runs for phase in run.manifest.measured) / 1e9
    started_s = time.monotonic()
    usage = _run("report", str(out))
    elapsed_s = time.monotonic() - started_s
    return [
        f"2 x {operations:,}",
        f"{measured_s:.1f} s",
        f"{whole_s:.1f} s",
        f"{usage.ru_utime + usage.ru_stime:.1f} s",
        f"{elapsed_s:.1f} s",
        formatting.size(usage.ru_maxrss * 1024),
        formatting.size((out / "report.html").stat().st_size),
    ]


def _run(*words: str) -> resource.struct_rusage:
    """Runs a command to its end; what it used."""
    process = subprocess.Popen([sys.executable, "-m", "sensorbench", *words, "--no-open", "--quiet"], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"sensorbench {' '.join(words)} ended with exit code {os.waitstatus_to_exitcode(status)}")
    return usage


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", default="100000,1000000", help="operations of each variant, between commas")
    table = Table(box=None)
    for column in COLUMNS:
        table.add_column(column, justify="right")
    with tempfile.TemporaryDirectory(prefix="sensorbench-report-") as folder:
        for operations in map(int, parser.parse_args().operations.split(",")):
            table.add_row(*row_of(operations, Path(folder)))
    Console().print(table)


if __name__ == "__main__":
    main()
