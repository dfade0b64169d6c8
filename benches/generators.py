"""`make bench-generators`: what several load generators reach of a database that does nothing, and of a sleeping one; how far apart they begin, and
what controlling them costs; and how fast they load. With ARGS="--hosts local:4" they are on hosts, and with ARGS="--load postgresql://…" they load
that database, too.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import IO
from unittest.mock import patch

import pyarrow as pa

from sensorbench import _engine
from sensorbench.dataset import open_dataset
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
from sensorbench.runner.generators.shared_load import shared_load
from sensorbench.runner.generators.shared_run import shared_run
from sensorbench.runner.prepare import PreparedTable, prepare_tables
from sensorbench.runner.variants import parse_target
from sensorbench.schemas import load_operations, load_schema

SCHEMA = json.dumps({"operations": [{"name": "nothing"}]})
COUNTS = (1, 2, 4)
# The database sleeps this long; as many requests in flight as its operations per second are wanted.
TARGETS = {"null": ("null:", 8), "sleeping": ("null:?delay_ms=2", 256)}
LOG_EVERY = 100
OWNER = Owner("of a bench", "").to_json()
# What is loaded where nothing is stored, and elsewhere.
NULL_ROWS, BATCH_ROWS = 4_000_000, 10_000
DATASET, OPERATIONS = "beijing-air-quality", "sensors"


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
    target.create(SCHEMA, "", intent="create", owner=OWNER)
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


@dataclass(frozen=True)
class Loaded:
    """What is loaded: the driver's schema (JSON), and its rows."""

    driver_schema: str
    tables: list[PreparedTable]


def null_rows(folder: Path) -> Loaded:
    """Rows that nobody stores: how fast load generators read their parts."""
    schema = pa.schema([("id", pa.int64()), ("value", pa.float64())])
    file, zeros = folder / "rows.arrows", pa.array([0.0] * BATCH_ROWS)
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
        for first in range(0, NULL_ROWS, BATCH_ROWS):
            writer.write_batch(pa.record_batch([pa.array(range(first, first + BATCH_ROWS)), zeros], schema=schema))
    tables = {"rows": [{"name": "id", "type": "integer"}, {"name": "value", "type": "double"}]}
    prepared = PreparedTable("rows", file, NULL_ROWS, file.stat().st_size, 0.0)
    return Loaded(json.dumps({"tables": tables, "operations": []}), [prepared])


def dataset_rows(url: str, schema_name: str, scale: float) -> Loaded:
    """A part of a dataset, for a schema that the database of a URL has."""
    schema = load_schema(schema_name, operations=OPERATIONS, database=parse_target(url).database.dialect)
    dataset = open_dataset(DATASET, scale=scale)
    with dataset.connect() as workbench:
        columns = schema.loaded_columns(workbench)
        tables = prepare_tables(dataset, schema, columns, workbench, ProgressReporter(quiet=True))
    return Loaded(json.dumps(schema.driver_schema(load_operations(OPERATIONS), list(schema.file.operation), columns)), tables)


def rows_per_s(url: str, loaded: Loaded, generators: int, hosts: Sequence[ClockedHost], *, sends_parts: bool) -> float:
    """Rows per second of a load that load generators share, from their first start to their last end, of all tables. The namespace is gone then."""
    target = _engine.Target(url)
    target.create(loaded.driver_schema, "", intent="replace", owner=OWNER)
    try:
        with shared_load(target, generators, hosts, sends_parts=sends_parts) as load:
            wholes = [load.load(table, lambda _: None)[0] for table in loaded.tables]
    finally:
        target.remove(owner=OWNER)
    return sum(whole["rows"] for whole in wholes) / sum(whole["duration_s"] for whole in wholes)


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--duration", type=float, default=5.0, help="seconds of each run")
    parser.add_argument("--hosts", help="as --hosts of commands names them; processes of this machine if not given")
    parser.add_argument("--load", help="the URL of a database to load, in a namespace of its own, which is removed afterwards")
    parser.add_argument("--schema", default="natural", help="the schema that it is loaded with")
    parser.add_argument("--scale", type=float, default=1.0, help="the part of the dataset that is loaded")
    arguments = parser.parse_args()
    with HostPool(choose_hosts(arguments.hosts), ProgressReporter()) if arguments.hosts else nullcontext() as pool:
        hosts = pool.hosts if pool else []
        print_measured(arguments.duration, hosts)
        sends_parts = pool is not None and not pool.chosen.are_here
        with tempfile.TemporaryDirectory() as folder:
            print_loaded("null:", null_rows(Path(folder)), hosts, sends_parts=sends_parts)
        if arguments.load:
            rows = dataset_rows(arguments.load, arguments.schema, arguments.scale)
            print_loaded(arguments.load, rows, hosts, sends_parts=sends_parts)


def print_loaded(url: str, loaded: Loaded, hosts: Sequence[ClockedHost], *, sends_parts: bool) -> None:
    """The table of rows per second by number of load generators."""
    name = parse_target(url).database.name
    print(f"\n{'loading':<10}{'generators':>11}{'rows/s':>14}")
    for generators in COUNTS:
        rate = rows_per_s(url, loaded, generators, hosts, sends_parts=sends_parts)
        print(f"{name:<10}{generators:>11}{rate:>14,.0f}")


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
