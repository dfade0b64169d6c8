"""Registers while nodes fail: what was seen is counted beside what the variant promises."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from sensorbench import lab
from tests.conftest import Cli

pytestmark = pytest.mark.cluster

EXPERIMENT = """
dataset = "beijing-air-quality"
scale = 0.002
operations = "registers"

[[target]]
url = "lab:{target}"
schema = "registers"

[workload]
mix = {{ write_register = 1, read_register = 1 }}
schedule = {schedule}
duration = "{duration}"
repetitions = 1
timeout = "1s"
"""


def guaranteed(cli: Cli, folder: Path, *more: str, **keys: str) -> dict[str, Any]:
    file = folder / "experiment.toml"
    file.write_text(EXPERIMENT.format(**keys), encoding="utf-8")
    ended = cli("run", file, *more, "--out", folder / "out", "--no-open")
    assert ended.exit_code == 0, ended.err
    return json.loads((folder / "out" / "summary.json").read_text(encoding="utf-8"))["result"]["guarantees"]


@contextmanager
def in_the_middle(out: Path, runs: list[str], do: Callable[[threading.Event], None]) -> Iterator[None]:
    """Does something a little after each of these runs has begun. The event says that all is over."""
    has_ended = threading.Event()

    def watch() -> None:
        for run in runs:
            while not list(out.glob(f"experiments/{run}/run-1/segments/intervals-*.parquet")):
                if has_ended.wait(0.05):
                    return
            do(has_ended)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        has_ended.set()
        watcher.join()


def process_of(node: lab.Node) -> psutil.Process:
    process = node.process.find() if node.process else None
    assert process is not None
    return process


@pytest.fixture(scope="module")
def cassandra(lab_home: Path) -> Iterator[lab.Instance]:
    settings = {"jvm.heap": "400M", "hinted_handoff_enabled": "false"}
    with lab.borrowed(lab.ServerSpec("cassandra", name="paused", nodes=3, settings=settings)) as instance:
        yield instance


def test_a_node_of_cassandra_that_was_paused_answers_with_old_values_at_one_and_not_at_quorum(
    cli: Cli, cassandra: lab.Instance, tmp_path: Path
) -> None:
    node = process_of(cassandra.nodes[2])

    def pause(has_ended: threading.Event) -> None:
        node.suspend()
        has_ended.wait(6.0)
        node.resume()

    levels = ("one", "quorum")
    with in_the_middle(tmp_path / "out", [f"*consistency={level}" for level in levels], pause):
        found = guaranteed(
            cli,
            tmp_path,
            "--sweep",
            "consistency=one,quorum",
            target="paused?replication=3",
            schedule='{ rate = 300, arrival = "poisson" }',
            duration="14s",
        )
    by_one, by_quorum = (next(of for variant, of in found.items() if variant.endswith(level)) for level in levels)
    assert not by_one["promised"]["stale_reads"]["is_made"]
    assert by_quorum["promised"]["stale_reads"]["is_made"]
    assert by_one["seen"]["stale_reads"]["count"] > 0
    assert by_one["seen"]["stale_reads"]["age_ns"]["max"] > 1_000_000_000, "older than what a node lags behind without a pause"
    assert by_quorum["seen"]["stale_reads"]["count"] == 0, by_quorum["seen"]["stale_reads"]
    for of_level in (by_one, by_quorum):
        assert of_level["broken"] == []
        assert of_level["counts"]["unknown"] > 0, "operations that the paused node was to coordinate"
        assert of_level["seen"]["lost_writes"]["of"] > 400


@pytest.fixture
def redis(lab_home: Path) -> Iterator[lab.Instance]:
    # A master lets go of a replica that has not answered for three seconds.
    settings = {"repl-timeout": "3", "repl-ping-replica-period": "1"}
    with lab.borrowed(lab.ServerSpec("redis+cluster", name="failing", nodes=3, replicas=1, settings=settings)) as instance:
        yield instance


def test_what_asynchronous_replication_loses_when_a_master_is_killed_is_counted(
    cli: Cli, redis: lab.Instance, tmp_path: Path
) -> None:
    master, replicas = process_of(redis.nodes[0]), [process_of(node) for node in redis.nodes[3:]]

    def fail_over_to_a_replica_that_lags(has_ended: threading.Event) -> None:
        for replica in replicas:
            replica.suspend()
        has_ended.wait(6.0)
        master.kill()
        for replica in replicas:
            replica.resume()

    # The run ends before the fail-over does; the reads at the end wait for it.
    with in_the_middle(tmp_path / "out", ["*"], fail_over_to_a_replica_that_lags):
        (found,) = guaranteed(cli, tmp_path, target="failing", schedule="{ rate = 400 }", duration="9s").values()
    assert not found["promised"]["lost_writes"]["is_made"]
    assert found["broken"] == []
    lost = found["seen"]["lost_writes"]
    assert 0 < lost["count"] < 300, "keys of one master of three"
    assert lost["of"] > 400, "all masters answer at the end"
    for example in lost["examples"]:
        assert example["write"]["outcome"] == "ok"
        assert example["stale_reads_at_end"] == 3
    assert found["seen"]["stale_reads"]["count"] >= 3 * lost["count"]
    assert found["seen"]["never_written"]["count"] == 0
