"""Three nodes, three copies. With a quorum, one node is killed in the middle of a run, and nothing that was acknowledged is lost; with one
replica, all that was acknowledged is counted.
"""

import json
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sensorbench import _engine, lab
from sensorbench.lab.processes import wait_until
from sensorbench.results import read_comparison
from tests.conftest import TEST_OWNER, Cli

pytestmark = pytest.mark.cluster

EXPERIMENT = """
title = "One node of three dies"
dataset = "beijing-air-quality"
scale = 0.002
operations = "sensors"

[[target]]
url = "lab:loss?replication=3&consistency=quorum"
schema = "by_sensor"

[workload]
mix = { insert_reading = 1, get_written_reading = 1 }
schedule = { rate = 200, arrival = "poisson" }
warmup = "2s"
duration = "20s"
repetitions = 1
timeout = "2s"
"""


@pytest.fixture(scope="module")
def cluster(lab_home: Path) -> Iterator[lab.Instance]:
    with lab.borrowed(lab.ServerSpec("cassandra", name="loss", nodes=3, settings={"jvm.heap": "400M"})) as instance:
        yield instance


def test_levels_of_several_replicas_are_asked_of_data_alone(cli: Cli, cluster: lab.Instance, tmp_path: Path) -> None:
    """The server's own tables have a copy on each node that is not a replica of another."""
    file = tmp_path / "experiment.toml"
    of_two = EXPERIMENT.replace("consistency=quorum", "consistency=two&namespace=sensorbench_two")
    for old, new in (
        ('schedule = { rate = 200, arrival = "poisson" }', "schedule = { concurrency = 4 }"),
        ('duration = "20s"', "operations = 50"),
    ):
        of_two = of_two.replace(old, new)
    file.write_text(of_two.replace('warmup = "2s"', 'warmup = "100ms"'), encoding="utf-8")
    ended = cli("run", file, "--out", tmp_path / "out", "--no-open")
    assert ended.exit_code == 0, ended.err


def test_rows_that_a_replica_lacks_are_counted(cluster: lab.Instance) -> None:
    """A write that waits for one replica is acknowledged before the others have it. Without hints, the node that was away never gets it."""
    away, rows = cluster.nodes[2], 300

    def nodetool(node: lab.Node, command: str) -> None:
        subprocess.run([cluster.folder / "nodetool", "-h", node.host, command], check=True, timeout=60.0)

    target = _engine.Target(f"{lab.url_of(cluster)}&replication=3&consistency=one&namespace=sensorbench_lacking")
    columns = [{"name": "id", "type": "integer"}, {"name": "value", "type": "double"}]
    schema = {
        "create": {"statements": ["CREATE TABLE series (id BIGINT PRIMARY KEY, value DOUBLE)"]},
        "tables": {"series": columns},
        "operations": [],
    }
    target.create(json.dumps(schema), "", intent="create", owner=TEST_OWNER.to_json())
    for node in cluster.nodes:
        nodetool(node, "disablehandoff")
    # Clients do not reach it either: it would keep what it coordinates for itself.
    nodetool(away, "disablebinary")
    nodetool(away, "disablegossip")
    try:
        assert wait_until(lambda: lab.knows_is_down(cluster.name, away.number), timeout_s=60.0, every_s=0.5)
        batch = pa.record_batch({"id": pa.array(range(rows), pa.int64()), "value": pa.array([0.5] * rows)})
        started = target.load("series", pa.RecordBatchReader.from_batches(batch.schema, [batch]))
        assert started.wait(60)
        started.result()
        assert target.count("series") == rows, "of the replicas that are up"
    finally:
        nodetool(away, "enablegossip")
        nodetool(away, "enablebinary")
        for node in cluster.nodes:
            nodetool(node, "enablehandoff")
    assert wait_until(lambda: not lab.knows_is_down(cluster.name, away.number), timeout_s=60.0, every_s=0.5)
    assert target.count("series") == rows, "of all replicas"


def test_acknowledged_writes_survive_the_loss_of_a_node(cli: Cli, cluster: lab.Instance, tmp_path: Path) -> None:
    file, out = tmp_path / "experiment.toml", tmp_path / "out"
    file.write_text(EXPERIMENT, encoding="utf-8")
    victim = cluster.nodes[2].process
    assert victim is not None
    has_ended = threading.Event()

    def kill_in_the_middle() -> None:
        while not list(out.glob("experiments/*/run-1/segments/intervals-*.parquet")):
            if has_ended.wait(0.05):
                return
        process = victim.find()
        if not has_ended.wait(6.0) and process is not None:
            process.kill()

    killer = threading.Thread(target=kill_in_the_middle)
    killer.start()
    ended = cli("run", file, "--out", out, "--no-open")
    has_ended.set()
    killer.join()
    assert ended.exit_code == 0, ended.err
    assert victim.find() is None, "the node was killed during the run"

    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    (checks,) = summary["result"]["contents"].values()
    assert checks["read_back"] == checks["acknowledged_writes"] > 1000
    assert (checks["lost_writes"], checks["wrong"]) == (0, 0), checks
    assert checks["unknown_writes_found"] <= checks["unknown_writes"]
    every_operation_is_accounted_for(out, checks)


def every_operation_is_accounted_for(out: Path, checks: dict[str, Any]) -> None:
    result = read_comparison(out)
    ((run,),) = result.runs.values()
    totals = run.manifest.totals
    assert totals is not None
    failed_writes = 0
    for phase in totals.phases:
        counts = [of_kind["counts"] for of_kind in phase.operations.values()]
        assert phase.started == sum(count[outcome] for count in counts for outcome in ("ok", "error", "timeout", "cancelled"))
        writes = phase.operations["insert_reading"]["counts"]
        failed_writes += writes["error"] + writes["timeout"] + writes["cancelled"]
    assert failed_writes == checks["unknown_writes"]
    # Most operations continued without the node: those that it was to coordinate went to others.
    measured = totals.phases[-1]
    ok = sum(of_kind["counts"]["ok"] for of_kind in measured.operations.values())
    assert ok > 0.9 * measured.started
