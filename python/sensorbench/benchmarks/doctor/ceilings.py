"""The client's own ceilings, each measured through the engine entry that every study uses."""

import json
import math
import os
import time
from collections.abc import Callable

import psutil

from sensorbench import _engine, lab
from sensorbench.dataset import cu_bems
from sensorbench.progress import ProgressReporter
from sensorbench.results.engine_report import snapshot_of
from sensorbench.runner import at_rate, databases, do_nothing, driver_ceiling, response_of

# What other clients reach doing nothing, from their own repositories' issue threads and our own runs of them.
TARGETS = {
    "null_ops_per_s": "YCSB's empty driver 4.9 million, latte's empty function 3.0 million",
    "generator_rows_per_s": "TSBS 10 million values/s a core, as text",
}

# One figure, or several by name; a ceiling that only a server could show is unknown.
Figure = float | dict[str, float] | dict[str, float | None]

OPEN_LOOP_RATE = 200_000
STALL_RATE = 10_000
STALL_S = 1.0


def measure(reporter: ProgressReporter, *, quick: bool = False) -> dict[str, Figure | None]:
    """All figures. `quick` measures about a tenth as long."""
    share = 0.1 if quick else 1.0
    steps: dict[str, Callable[[], Figure]] = {
        "null_ops_per_s": lambda: null_ops_per_s(int(30_000_000 * share)),
        "open_loop_p99_us": lambda: {
            "timer": open_loop_p99_us(5.0 * share, spin=False),
            "spinning": open_loop_p99_us(5.0 * share, spin=True),
        },
        "stall_p999_error": lambda: stall_p999_error(20.0 if not quick else 10.0),
        "generator_rows_per_s": generator_rows_per_s,
        "rss_growth_bytes": lambda: rss_growth_bytes(int(100_000_000 * share)),
        "driver_ceiling": lambda: {
            name: driver_ceiling(database, duration_s=3.0 * share)
            for name, database in databases().items()
            if lab.has_library(name)
        },
    }
    figures: dict[str, Figure] = {}
    for name, step in steps.items():
        with reporter.task(name.replace("_", " ")) as task:
            figures[name] = step()
            task.end("done")
    return {**figures, "quick": quick, "processors": os.cpu_count()}


def null_ops_per_s(operations: int) -> float:
    """One thread, closed loop, response and service histograms, no record of each operation: the best of three, because
    anything else on the machine only takes away.
    """
    rates = []
    for _ in range(3):
        phase = do_nothing({"name": "measure", "operations": operations})
        rates.append(operations / (phase.length_s or math.inf))
    return max(rates)


def open_loop_p99_us(duration_s: float, *, spin: bool) -> float:
    """The p99 of the response time at 200,000/s on a database that does nothing: all of it is the client's lateness."""
    phase = do_nothing(at_rate(OPEN_LOOP_RATE, duration_s), concurrency=64, spin=spin)
    return response_of(phase)["p99"] / 1e3


def stall_p999_error(duration_s: float) -> float:
    """How far the p99.9 of the response time is from arithmetic when the database holds every call for one second, once.

    Of the operations, those that fall into the stall wait evenly from one second down to nothing.
    """
    url = f"null:?stall_at_ms={duration_s * 500:g}&stall_ms={STALL_S * 1000:g}"
    phase = do_nothing(at_rate(STALL_RATE, duration_s), url, concurrency=2 * STALL_RATE)
    measured_s = response_of(phase)["p999"] / 1e9
    expected_s = STALL_S - 0.001 * duration_s
    return abs(measured_s / expected_s - 1.0)


def generator_rows_per_s() -> float:
    """Rows of cu-bems measurements a second, one thread."""
    series = json.dumps([{"site": 1, "zone": zone, "sensor": "AC1", "kind": "air_conditioning"} for zone in range(20)])
    start_s = time.perf_counter()
    generator = _engine.generate_building(series, 1, int(cu_bems.START.timestamp() * 1e6), cu_bems.MINUTES)
    rows = sum(batch.num_rows for batch in generator.rows(threads=1))
    return float(rows / (time.perf_counter() - start_s))


def rss_growth_bytes(operations: int) -> int:
    """How much the process grows between the millionth and the last operation."""
    process = psutil.Process()
    sizes: list[tuple[int, int]] = []

    def on_segment(run: _engine.Run, _: object) -> None:
        sizes.append((snapshot_of(run)["phases"][0]["started"], process.memory_info().rss))

    do_nothing({"name": "measure", "operations": operations}, on_segment=on_segment)
    after_a_million = [size for started, size in sizes if started >= 1_000_000]
    return max(0, after_a_million[-1] - after_a_million[0]) if after_a_million else 0
