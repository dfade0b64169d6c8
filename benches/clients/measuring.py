"""What operations cost a client: through our engine, and in a tool of others."""

import contextlib
import json
import resource
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
from benches.clients import tools
from benches.clients.loading import created, load

from sensorbench import _engine, lab

REPEATS = 3
# Rows of the tables that are asked.
KEYS = 100_000

Measured = TypeVar("Measured")


@dataclass(frozen=True)
class Cost:
    """What an operation cost the client, how many a second there were and, if it is told, their 99th percentile."""

    cpu_us: float
    per_s: float
    p99_ms: float | None = None


@dataclass(frozen=True)
class Loop:
    """How many operations, at most how many at the same time and, if not each after another one, at which pace."""

    operations: int
    concurrency: int
    pace: dict[str, Any] | None = None


@dataclass(frozen=True)
class Comparison:
    """Our costs beside those of a tool, turn by turn, and the marks of others."""

    what: str
    ours: list[Cost]
    theirs: list[Cost]
    marks: str


@dataclass(frozen=True)
class LeftOut:
    """What was not compared, and why."""

    what: str
    why: str


def in_turn(*measures: Callable[[], Measured]) -> list[list[Measured]]:
    """What each found, turn by turn, so that a noisy machine disturbs all of them alike."""
    turns = [[measure() for measure in measures] for _ in range(REPEATS)]
    return [list(of_one) for of_one in zip(*turns, strict=True)]


@contextlib.contextmanager
def loaded(instance: lab.Instance, options: str, schema: dict[str, Any], table: str, rows: pa.Table) -> Iterator[_engine.Target]:
    """A target with a table that is filled, and removed afterwards."""
    with created(f"{lab.url_of(instance)}&namespace=bench&{options}", schema) as target:
        load(target, table, rows)
        target.settle()
        yield target


def through_the_engine(target: _engine.Target, operation: dict[str, Any], loop: Loop, parameters: pa.Table) -> Cost:
    """Processor time is that of the whole process; latencies count from when an operation was due."""
    sources = [{"source": 0, "column": column} for column in range(len(operation["parameters"]))]
    plan = {
        "seed": 1,
        "operations": [{"weight": 1.0, "operation": operation, "parameters": sources}],
        "parameter_sources": [{"rows": {"table": 0, "choice": "uniform"}}],
        "phases": [{"name": "measure", "operations": loop.operations, "pace": loop.pace}],
        "concurrency": loop.concurrency,
        "timeout_s": 60.0,
    }
    run = target.run(json.dumps(plan), [pa.RecordBatchReader.from_batches(parameters.schema, parameters.to_batches())])
    while not run.wait(0.2):
        run.take()
    whole = json.loads(run.end()[1])
    phase = whole["phases"][0]
    figures = phase["operations"][operation["name"]]
    if figures["counts"]["ok"] != loop.operations:
        raise RuntimeError(f"{figures['counts']}: {whole['errors']}")
    duration_s = (phase["end_ns"] - phase["start_ns"]) / 1e9
    cpu_us = whole["process_cpu_ns"] / loop.operations / 1e3
    return Cost(cpu_us, loop.operations / duration_s, figures["response_ns"]["p99"] / 1e6)


def through_a_tool(command: tools.Words, operations: int, rate: Callable[[str], float], environment: tools.Environment) -> Cost:
    """Processor time is what the system counted for the ended program; the rate is read from what it printed."""
    before_s = _cpu_of_children_s()
    output = tools.call(command, environment)
    return Cost((_cpu_of_children_s() - before_s) / operations * 1e6, rate(output))


def _cpu_of_children_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
