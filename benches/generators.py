"""`make bench-generators`: what several load generators reach of a database that does nothing, and of a sleeping one; how far apart they begin, and
what controlling them costs. With ARGS="--hosts local:4" they are on hosts.
"""

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import count
from typing import IO
from unittest.mock import patch

import pyarrow as pa

from sensorbench import _engine
from sensorbench.hosts import dask_host
from sensorbench.hosts.chosen import choose_hosts
from sensorbench.hosts.outcomes import value_of
from sensorbench.hosts.pool import HostPool
from sensorbench.progress import ProgressReporter
from sensorbench.results.engine_plan import EnginePlan
from sensorbench.results.manifest import RunTotals
from sensorbench.results.ownership import Owner
from sensorbench.runner.generators import local
from sensorbench.runner.generators.hosted import ClockedHost
from sensorbench.runner.generators.messages import Message, receive
from sensorbench.runner.generators.shared_run import shared_run

SCHEMA = json.dumps({"operations": [{"name": "nothing"}]})
COUNTS = (1, 2, 4)
# The database sleeps so long; as many requests in flight as its operations per second are wanted.
TARGETS = {"null": ("null:", 8), "sleeping": ("null:?delay_ms=2", 256)}
LOG_EVERY = 100


@dataclass(frozen=True)
class Measured:
    """One run: operations per second, the distance between the first and the last begin (µs), and control per load generator and second."""

    per_s: float
    spread_us: float
    controller_cpu: float
    control_bytes: float


@contextmanager
def counted_bytes() -> Iterator[list[int]]:
    """The sizes of what load generators answer."""
    sizes: list[int] = []

    def counting(stream: IO[bytes]) -> tuple[Message, list[bytes]] | None:
        received = receive(stream)
        if received is not None:
            message, parts = received
            sizes.append(len(message.model_dump_json()) + sum(map(len, parts)))
        return received

    def counting_outcomes(outcome: bytes) -> object:
        sizes.append(len(outcome))
        return value_of(outcome)

    with patch.object(local, "receive", counting), patch.object(dask_host, "value_of", counting_outcomes):
        yield sizes


def measure(url: str, concurrency: int, generators: int, duration_s: float, hosts: Sequence[ClockedHost]) -> Measured:
    """A closed loop, with segments taken as a run that is written down has them."""
    target = _engine.Target(url)
    target.create(SCHEMA, "", intent="create", owner=Owner("of a bench", "").to_json())
    plan: EnginePlan = {
        "seed": 1,
        "operations": [{"weight": 1.0, "operation": {"name": "nothing"}}],
        "phases": [{"name": "measure", "duration_s": duration_s}],
        "concurrency": concurrency,
        "timeout_s": 10.0,
        "log_every": LOG_EVERY,
    }
    operations = []
    with counted_bytes() as sizes, shared_run(target, plan, [], generators, hosts) as run:
        before_s = time.process_time()
        # As often as a run that is written down.
        for number in count(1):
            if run.wait(0.25):
                break
            run.snapshot()
            if number % 4 == 0:
                operations.append(run.take()["operations"])
        segment, whole = run.end()
        cpu_s = time.process_time() - before_s
    log = pa.Table.from_batches([*operations, segment["operations"]])
    first = log.group_by("generator").aggregate([("start_ns", "min")])["start_ns_min"].to_pylist()
    totals = RunTotals.model_validate_json(whole)
    of_each = generators * duration_s
    return Measured(totals.phases[0].started / duration_s, (max(first) - min(first)) / 1e3, cpu_s / of_each, sum(sizes) / of_each)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--duration", type=float, default=5.0, help="seconds of each run")
    parser.add_argument("--hosts", help="as --hosts of commands names them; processes of this machine if not given")
    arguments = parser.parse_args()
    with HostPool(choose_hosts(arguments.hosts), ProgressReporter()) if arguments.hosts else nullcontext() as pool:
        print_measured(arguments.duration, pool.hosts if pool else [])


def print_measured(duration_s: float, hosts: Sequence[ClockedHost]) -> None:
    """The table of all targets and numbers of load generators."""
    print(f"{'database':<10}{'generators':>11}{'operations/s':>14}{'begin within':>14}{'controller CPU':>16}{'bytes/s':>10}")
    for name, (url, concurrency) in TARGETS.items():
        for generators in COUNTS:
            found = measure(url, concurrency, generators, duration_s, hosts)
            print(
                f"{name:<10}{generators:>11}{found.per_s:>14,.0f}{found.spread_us:>11,.0f} µs"
                f"{found.controller_cpu:>14.2%}/g{found.control_bytes:>10,.0f}/g"
            )


if __name__ == "__main__":
    main()
