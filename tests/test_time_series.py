"""Time-series databases over HTTP: what their servers keep when they are killed, and the answers of every schema."""

import base64
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any
from urllib.request import Request, urlopen

import psutil
import pyarrow as pa
import pytest

from sensorbench import _engine, lab
from sensorbench._engine import Target
from sensorbench.benchmarks.comparison.summary import summarise
from sensorbench.lab.databases.prometheus_blocks import Blocks
from sensorbench.lab.processes import wait_until
from sensorbench.results import ComparisonResult, read_comparison
from sensorbench.results.durability import durability_of
from sensorbench.results.outdated import why_outdated
from sensorbench.results.summary.comparison import ComparisonSummary
from sensorbench.runner.comparison import ConnectedComparison
from sensorbench.runner.variants import Variant
from sensorbench.verification import history
from tests.conftest import TEST_OWNER, Cli, server_url
from tests.servers import LabServers
from tests.streams import check_rules

POINTS = {
    "create": {"points": {"t": {"tags": ["sensor"], "fields": ["value"]}}},
    "tables": {
        "t": [{"name": "sensor", "type": "text"}, {"name": "time", "type": "timestamp"}, {"name": "value", "type": "double"}]
    },
}
ROWS = 1000


def summary_of(out: Path) -> dict[str, Any]:
    return json.loads((out / "summary.json").read_text(encoding="utf-8"))


def rows_of_a_sensor() -> pa.Table:
    """A point each ms."""
    times = pa.array([number * 1000 for number in range(ROWS)], pa.timestamp("us"))
    return pa.table({"sensor": ["a"] * ROWS, "time": times, "value": [float(number) for number in range(ROWS)]})


def kill_and_restart(instance: lab.Instance) -> None:
    """Ends the server as a crash does, and starts it with what is on the disk."""
    (node,) = instance.nodes
    assert node.process is not None
    process = psutil.Process(node.process.pid)
    process.kill()
    assert wait_until(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE, timeout_s=10.0)
    lab.restart(instance.name)


def test_what_influxdb_has_acknowledged_outlives_its_process(lab_home: Path) -> None:
    instance = lab.up(lab.ServerSpec("influxdb", name="killed"))
    target = Target(lab.url_of(instance))
    target.create(json.dumps(POINTS), "", intent="create", owner=TEST_OWNER.to_json())
    load = target.load("t", rows_of_a_sensor().to_reader())
    assert load.wait(60.0)
    kill_and_restart(instance)
    assert target.count("t") == ROWS
    lab.down("killed")


def listening_ports(process: psutil.Process) -> set[str]:
    """The addresses that a process's network namespace listens on, as the kernel shows them."""
    lines = [
        line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/{process.pid}/net/{name}").read_text().splitlines()
    ]
    return {fields[1] for fields in lines if fields[3] == "0A"}


@pytest.mark.parametrize(("mode", "durability"), [("ASYNC", "memory"), ("SYNC", "disk")])
def test_what_iotdb_has_acknowledged_outlives_its_process_if_its_log_is_synced(
    mode: str, durability: str, lab_home: Path
) -> None:
    before = listening_ports(psutil.Process())
    instance = lab.up(lab.ServerSpec("iotdb", name="killed", settings={"wal_mode": mode}))
    (node,) = instance.nodes
    assert node.process is not None
    # It listens on every address of its own namespace, and nothing listens on the machine's that did not before.
    inside = {address.rsplit(":", 1)[1] for address in listening_ports(psutil.Process(node.process.pid))}
    assert f"{node.port:04X}" in inside
    assert not {address.rsplit(":", 1)[1] for address in listening_ports(psutil.Process()) - before} & inside
    target = Target(lab.url_of(instance))
    table = "CREATE TABLE t (sensor STRING TAG, value DOUBLE FIELD)"
    target.create(json.dumps({**POINTS, "create": {"statements": [table]}}), "", intent="create", owner=TEST_OWNER.to_json())
    load = target.load("t", rows_of_a_sensor().to_reader())
    assert load.wait(60.0)
    # With metrics it would keep a histogram for each request that it ever answered, until its heap is full of them.
    with urlopen(f"http://{node.host}:9092/metrics", timeout=10.0) as metrics:
        assert b"session_idle_time" not in metrics.read()
    kill_and_restart(instance)
    described = json.loads(target.describe())
    assert durability_of(described["database"], described["settings"]) == durability
    if mode == "SYNC":
        assert target.count("t") == ROWS
    lab.down("killed")
    assert not Path(f"/sys/class/net/sensorbench-{instance.cluster}").exists()


def test_what_clickhouse_has_acknowledged_outlives_its_process(lab_home: Path) -> None:
    instance = lab.up(lab.ServerSpec("clickhouse", name="killed"))
    target = Target(lab.url_of(instance))
    table = "CREATE TABLE t (sensor String, time Int64, value Float64) ENGINE = MergeTree() ORDER BY (sensor, time)"
    target.create(json.dumps({**POINTS, "create": {"statements": [table]}}), "", intent="create", owner=TEST_OWNER.to_json())
    load = target.load("t", rows_of_a_sensor().to_reader())
    assert load.wait(60.0)
    kill_and_restart(instance)
    described = json.loads(target.describe())
    assert durability_of(described["database"], described["settings"]) == "cache"
    assert target.count("t") == ROWS
    lab.down("killed")


def test_what_prometheus_has_acknowledged_outlives_its_process(lab_home: Path) -> None:
    """In order, and late: there is a log of each."""
    instance = lab.up(lab.ServerSpec("prometheus", name="killed"))
    target = Target(lab.url_of(instance))
    target.create(json.dumps(POINTS), "", intent="create", owner=TEST_OWNER.to_json())
    late = rows_of_a_sensor()
    first = late.set_column(1, "time", pa.array([number * 1000 + 500_000_000 for number in range(ROWS)], pa.timestamp("us")))
    for rows in (first, late):
        load = target.load("t", rows.to_reader())
        assert load.wait(60.0)
    assert json.loads(target.status())["prometheus_tsdb_head_out_of_order_samples_appended_total"] == ROWS
    kill_and_restart(instance)
    described = json.loads(target.describe())
    assert durability_of(described["database"], described["settings"]) == "cache"
    assert target.count("t") == 2 * ROWS
    lab.down("killed")


def test_blocks_of_prometheus_have_every_sample_and_every_ms(lab_home: Path, tmp_path: Path) -> None:
    """Made by promtool of a file of the driver's. A server opens what it finds when it starts, and new ones once a minute."""
    tool = Blocks()
    instance = lab.up(lab.ServerSpec("prometheus", name="blocks", settings=dict(tool.server_settings)))
    target = Target(lab.url_of(instance))
    read = {
        "name": "read",
        "columns": [{"name": "time", "type": "timestamp"}, {"name": "value", "type": "double"}],
        "statement": {"export": "::t_value"},
    }
    schema = json.dumps({**POINTS, "operations": [read]})
    target.create(schema, "", intent="create", owner=TEST_OWNER.to_json())
    # Two months apart, so that there are several blocks.
    start_ms = 1_600_000_000_000
    times_us = [(start_ms + number) * 1000 + number % 2 * 5_184_000_000_000 for number in range(ROWS)]
    rows = rows_of_a_sensor().set_column(1, "time", pa.array(times_us, pa.timestamp("us"))).sort_by("time")
    file = lab.LoadFile("sensorbench", "t", ("sensor", "time", "value"), tmp_path / "rows")
    writing = target.write_load_file("t", rows.to_reader(), str(file.path))
    assert writing.wait(60.0)
    assert lab.run_load_tool(tool, instance, tmp_path, file, {}, lambda _: None) is None
    assert target.count("t") == 0, "the server has not looked yet"
    lab.restart("blocks")
    tool.settle(lab.find_instance("blocks"), lambda: None)
    assert target.count("t") == ROWS
    answer = json.loads(target.execute_once(json.dumps(read), pa.table({"none": [0]}).to_reader()))
    assert sorted(answer) == sorted([time, value] for time, value in zip(times_us, map(float, range(ROWS)), strict=True))
    lab.down("blocks")


def test_influxdb_is_measured_when_its_points_lie_in_files(lab_servers: LabServers) -> None:
    """The log has 16 bytes of each point, time and value. Files have 8, because times are as far apart as ever and values have nothing in common."""
    lab_servers.start("influxdb")
    target, rows = Target(server_url("influxdb", "sensorbench_files")), 50_000
    target.create(json.dumps(POINTS), "", intent="replace", owner=TEST_OWNER.to_json())
    times = pa.array([1_700_000_000_000_000 + number * 1_000_000 for number in range(rows)], pa.timestamp("us"))
    values = Random(1)
    table = pa.table({"sensor": ["a"] * rows, "time": times, "value": [values.random() for _ in range(rows)]})
    load = target.load("t", table.to_reader(max_chunksize=10_000))
    assert load.wait(60.0)
    load.result()
    target.settle()
    assert 6 * rows < json.loads(target.size())["total_bytes"] < 12 * rows
    target.remove(owner=TEST_OWNER.to_json())


def test_victoriametrics_loses_what_it_has_acknowledged_when_it_is_killed(lab_home: Path) -> None:
    """What it has acknowledged is in its memory for some seconds: its durability class says so."""
    instance = lab.up(lab.ServerSpec("victoriametrics", name="killed"))
    target = Target(lab.url_of(instance))
    target.create(json.dumps(POINTS), "", intent="create", owner=TEST_OWNER.to_json())
    # The mark of the namespace reaches the disk first, so that only the points are lost.
    assert wait_until(lambda: sizes_on_disk(target) > 0, timeout_s=30.0)
    load = target.load("t", rows_of_a_sensor().to_reader())
    assert load.wait(60.0)
    kill_and_restart(instance)
    described = json.loads(target.describe())
    assert durability_of(described["database"], described["settings"]) == "memory"
    assert target.count("t") < ROWS
    lab.down("killed")


def test_with_deduplication_victoriametrics_keeps_one_of_several_points_of_one_time(
    cli: Cli, lab_home: Path, tmp_path: Path
) -> None:
    lab.up(lab.ServerSpec("victoriametrics", name="deduplicates", settings={"dedup.minScrapeInterval": "1ms"}))
    target = Target(lab.url_of(lab.find_instance("deduplicates")))
    target.create(json.dumps(POINTS), "", intent="create", owner=TEST_OWNER.to_json())
    times = pa.array([1_700_000_000_000_000] * 3 + [1_700_000_000_001_000], pa.timestamp("us"))
    rows = pa.table({"sensor": ["a"] * 4, "time": times, "value": [5.0, 3.0, 4.0, 1.0]})
    load = target.load("t", rows.to_reader())
    assert load.wait(60.0)
    assert (load.rows, target.count("t")) == (4, 2)
    described = json.loads(target.describe())
    assert described["settings"]["dedup.minScrapeInterval"] == "1ms"
    accounts = check_rules(cli, tmp_path, [("lab:deduplicates", schema) for schema in ("by_sensor", "info")])
    assert [of_write["rule"] for of_write in accounts.values()] == ["any", "any"]
    lab.down("deduplicates")


def sizes_on_disk(target: Target) -> float:
    """Bytes of the points that are in files."""
    return sum(value for name, value in json.loads(target.status()).items() if name.startswith("vm_data_size_bytes{type=storage"))


REGISTERS = """
dataset = "beijing-air-quality"
scale = 0.001
operations = "registers"
[[target]]
url = "{url}"
schema = "registers"
[workload]
mix = {{ write_register = 1, read_register = 1 }}
schedule = {{ concurrency = 4 }}
operations = 1500
warmup = "100ms"
repetitions = 1
"""


def guarantees_of(cli: Cli, folder: Path, url: str) -> dict[str, Any]:
    """What registers showed in a run of about a second, beside what is promised."""
    file = folder / "experiment.toml"
    file.write_text(REGISTERS.format(url=url), encoding="utf-8")
    ended = cli("run", file, "--out", folder / "out", "--no-open")
    assert ended.exit_code == 0, ended.err
    (found,) = summary_of(folder / "out")["result"]["guarantees"].values()
    return found


def test_registers_of_victoriametrics_are_read_late_and_kept(cli: Cli, lab_servers: LabServers, tmp_path: Path) -> None:
    lab_servers.start("victoriametrics")
    found = guarantees_of(cli, tmp_path, "lab:victoriametrics?namespace=sensorbench_registers")
    assert found["seen"]["stale_reads"]["count"] > 0, "a read right after a write misses it"
    assert found["seen"]["lost_writes"]["count"] == 0
    assert found["seen"]["lost_writes"]["of"] > 400, "registers were read at the end"
    assert found["seen"]["never_written"]["count"] == 0
    assert {name for name, promise in found["promised"].items() if promise["is_made"]} == {"never_written", "failed_writes_seen"}
    assert found["broken"] == []


def guarantees_of_a_killed(
    server: str, cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch, settings: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """What registers show of a server that is killed when the run has ended and before its registers are read once more."""
    instance = lab.up(lab.ServerSpec(server, name="killed", settings=settings or {}))
    original = history.with_final_reads

    def kill_before(so_far: pa.Table, run: _engine.Run, connected: ConnectedComparison, variant: Variant) -> pa.Table:
        kill_and_restart(lab.find_instance("killed"))
        return original(so_far, run, connected, variant)

    monkeypatch.setattr(history, "with_final_reads", kill_before)
    found = guarantees_of(cli, folder, "lab:killed")
    lab.down(instance.name)
    return found


def test_registers_show_what_a_killed_victoriametrics_lost(
    cli: Cli, lab_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = guarantees_of_a_killed("victoriametrics", cli, tmp_path, monkeypatch)
    lost = found["seen"]["lost_writes"]
    assert 0 < lost["count"] <= lost["of"]
    assert {example["last_stale_read"]["value"] for example in lost["examples"]} == {None}
    assert found["promised"]["lost_writes"]["is_made"] is False
    assert found["broken"] == []


def test_registers_of_a_killed_prometheus_are_kept(
    cli: Cli, lab_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = guarantees_of_a_killed("prometheus", cli, tmp_path, monkeypatch)
    assert found["seen"]["lost_writes"]["of"] > 400, "registers were read at the end"
    assert {name for name, finding in found["seen"].items() if finding["count"]} == set()
    assert all(promise["is_made"] for promise in found["promised"].values())


def test_registers_of_a_killed_opentsdb_are_kept(
    cli: Cli, lab_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = guarantees_of_a_killed("opentsdb", cli, tmp_path, monkeypatch)
    # HBase recovers meanwhile: registers that do not answer within 30 s are not judged.
    assert found["seen"]["lost_writes"]["of"] > 100, "registers were read at the end"
    assert {name for name, finding in found["seen"].items() if finding["count"]} == set()
    assert all(promise["is_made"] for promise in found["promised"].values())


def test_registers_show_what_a_killed_opentsdb_without_a_log_lost(
    cli: Cli, lab_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = guarantees_of_a_killed("opentsdb", cli, tmp_path, monkeypatch, {"tables.durability": "SKIP_WAL"})
    lost = found["seen"]["lost_writes"]
    assert 0 < lost["count"] <= lost["of"]
    assert found["promised"]["lost_writes"]["is_made"] is False
    assert found["broken"] == []


@pytest.mark.parametrize(
    ("server", "schemas", "product", "is_outdated"),
    [
        ("influxdb", ("by_sensor", "wide"), "InfluxDB", True),
        ("victoriametrics", ("by_sensor", "info"), "VictoriaMetrics", True),
        ("prometheus", ("by_sensor", "info"), "Prometheus", True),
        # Nothing followed the version that the lab has.
        ("opentsdb", ("by_sensor", "by_metric"), "OpenTSDB", False),
    ],
)
def test_every_schema_gives_the_answers_of_others(
    cli: Cli, lab_servers: LabServers, tmp_path: Path, server: str, schemas: tuple[str, ...], product: str, is_outdated: bool
) -> None:
    lab_servers.start(server)
    out = tmp_path / "out"
    named = [word for schema in (*schemas, "natural") for word in ("--schema", schema)]
    # Other tests may have been there.
    ended = cli("study", "run", "iot", "--target", f"lab:{server}", "--target", "sqlite", *named, "--dataset", "beijing-air-quality",
                "--scale", "0.001", "--operations", "40", "--repetitions", "1", "--replace", "--no-open", "--out", out)  # fmt: skip
    assert ended.exit_code == 0, ended.err
    summary = summary_of(out)
    assert summary["answers_equal"] is True
    assert {variant["id"] for variant in summary["variants"]} == {
        "sqlite-natural",
        *(f"{server}-{schema}" for schema in schemas),
    }
    # Debian's version is named, and not ranked against a current database.
    described = summary["result"]["load"][f"{server}-{schemas[0]}"]["description"]
    assert described["database"] == product
    assert (why_outdated(product, described["version"]) is not None) == is_outdated
    ranked = {place["variant"] for ranking in summary["result"]["rankings"] for place in ranking["places"]}
    assert (ranked == {"sqlite-natural"}) == is_outdated


def places(summary: ComparisonSummary, operation: str) -> tuple[set[str], set[str]]:
    """The databases that are ranked at an operation, and those that are left out as outdated."""
    (ranking,) = [ranking for ranking in summary.result.rankings if ranking.operation == operation]
    ranked, outdated = {place.variant for place in ranking.places}, set(ranking.outdated)
    return {variant.partition("-")[0] for variant in ranked}, {variant.partition("-")[0] for variant in outdated}


def test_outdated_servers_are_ranked_apart_among_themselves_or_with_all_if_asked_for(
    cli: Cli, lab_servers: LabServers, tmp_path: Path
) -> None:
    """InfluxDB 1.6 and VictoriaMetrics 1.79 as they are, beside SQLite: what was measured once is ranked in all ways."""
    lab_servers.start("influxdb", "victoriametrics")
    out = tmp_path / "out"
    namespace = "namespace=sensorbench_outdated"
    targets = (f"lab:influxdb?{namespace}", f"lab:victoriametrics?{namespace}", "sqlite")
    named = [word for target in targets for word in ("--target", target)]
    ended = cli("study", "run", "iot", *named, "--schema", "by_sensor", "--schema", "natural", "--dataset", "beijing-air-quality",
                "--scale", "0.001", "--operations", "40", "--repetitions", "1", "--include-outdated", "--no-open", "--out", out)  # fmt: skip
    assert ended.exit_code == 0, ended.err
    result = read_comparison(out)
    with_all = summarise(result)
    assert places(with_all, "get_sensor_data") == ({"influxdb", "victoriametrics", "sqlite"}, set())
    assert not [warning for warning in with_all.warnings if warning.kind == "outdated"]

    def planned(**changes: Any) -> ComparisonResult:
        plan = result.manifest.plan.model_copy(update={"include_outdated": False})
        return replace(result, manifest=result.manifest.model_copy(update={"plan": plan, **changes}))

    apart = summarise(planned())
    assert places(apart, "get_sensor_data") == ({"sqlite"}, {"influxdb", "victoriametrics"})
    warned = {str(warning.variant): warning.text for warning in apart.warnings if warning.kind == "outdated"}
    assert "InfluxDB 1.6" in warned["influxdb-by_sensor"]
    assert "VictoriaMetrics does not name its version" in warned["victoriametrics-by_sensor"]
    alone = [variant for variant in result.manifest.variants if not variant.id.startswith("sqlite")]
    among_themselves = summarise(planned(variants=alone))
    assert places(among_themselves, "get_sensor_data") == ({"influxdb", "victoriametrics"}, set())


@pytest.mark.parametrize("name", ["influxdb", "victoriametrics", "questdb"])
def test_what_fits_into_the_memory_of_a_server_is_what_the_server_says_of_itself(name: str, lab_home: Path) -> None:
    memory_bytes = 1 << 30
    instance = lab.up(lab.ServerSpec(name, name=f"fits-{name}", memory_bytes=memory_bytes, fits_memory=True))
    assert instance.limits.memory_bytes == memory_bytes
    described = json.loads(Target(lab.url_of(instance)).describe())["settings"]
    given = lab.LAB_DATABASES[name].memory_settings(memory_bytes)
    # The heap is Java's, of which the server says nothing.
    of_the_server = {key.removeprefix("data."): value for key, value in given.items() if not key.startswith("jvm.")}
    assert of_the_server.items() <= described.items()
    lab.down(f"fits-{name}")


def test_clickhouse_takes_what_fits_into_its_memory(lab_home: Path) -> None:
    instance = lab.up(lab.ServerSpec("clickhouse", name="fits", memory_bytes=1 << 30, fits_memory=True))
    (node,) = instance.nodes
    query = "SELECT value FROM system.settings WHERE name = 'max_memory_usage_for_all_queries'"
    login = base64.b64encode(f"sensorbench:{instance.password()}".encode()).decode()
    request = Request(f"http://{node.host}:{node.port}/", query.encode(), {"Authorization": f"Basic {login}"})
    with urlopen(request, timeout=10.0) as answer:
        assert int(answer.read()) == 1 << 29
    assert instance.limits.memory_bytes == 1 << 30
    lab.down("fits")
