"""QuestDB: every schema gives the answers of DuckDB and SQLite, what is written is kept, also by a server that was killed, and its own ways are told:
when a write can be read, who may log in, which databases and settings there are.
"""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sensorbench import _engine, lab
from sensorbench.errors import UsageError
from sensorbench.schemas import load_operations, load_schema, shipped_schemas
from tests.conftest import TEST_OWNER, Cli, server_url
from tests.servers import LabServers

# What is loaded into a server of the lab stays there: other tests have the namespace that is usual.
OWN = "sensorbench_questdb"
TARGET = f"lab:questdb?namespace={OWN}"
SENSORS = ("as_sent", "by_time", "series")
LOGS = ("as_sent", "by_begin")
REGISTERS = ("latest", "registers")


def summary_of(cli: Cli, out: Path, *arguments: object) -> dict[str, Any]:
    ended = cli(*arguments, "--replace", "--no-open", "--out", out)
    assert ended.exit_code == 0, ended.err
    summary: dict[str, Any] = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    return summary


def words(option: str, values: tuple[str, ...]) -> list[str]:
    return [word for value in values for word in (option, value)]


def experiment(folder: Path, text: str, targets: tuple[tuple[str, str], ...], mix: str) -> Path:
    tables = "".join(f'[[target]]\nurl = "{url}"\nschema = "{schema}"\n' for url, schema in targets)
    file = folder / "experiment.toml"
    workload = f"[workload]\nmix = {{ {mix} }}\noperations = 600\nschedule = {{ concurrency = 2 }}\nrepetitions = 1\n"
    file.write_text(f"{text}\n{tables}{workload}", encoding="utf-8")
    return file


def test_readings_give_the_answers_of_duckdb(cli: Cli, lab_servers: LabServers, tmp_path: Path) -> None:
    lab_servers.start("questdb")
    summary = summary_of(
        cli, tmp_path / "out", "study", "run", "iot", "--target", TARGET, "--target", "sqlite",
        *words("--schema", (*SENSORS, "natural")), "--dataset", "beijing-air-quality", "--scale", "0.003", "--operations", "40",
        "--repetitions", "1",
    )  # fmt: skip
    assert summary["answers_equal"] is True
    assert {variant["id"] for variant in summary["variants"]} == {*(f"questdb-{schema}" for schema in SENSORS), "sqlite-natural"}
    assert {checks["wrong"] for checks in summary["result"]["known_answers"].values()} == {0}
    load = summary["result"]["load"]["questdb-by_time"]
    assert load["description"]["database"] == "QuestDB"
    assert load["description"]["settings"]["cairo.commit.mode"] == "nosync"
    # Room that is kept in open files would be 16 MB a column.
    assert load["size"]["total_bytes"] < 5_000_000


def test_logs_give_the_answers_of_sqlite(cli: Cli, lab_servers: LabServers, tmp_path: Path) -> None:
    lab_servers.start("questdb")
    summary = summary_of(
        cli, tmp_path / "out", "study", "run", "log-analytics", "--target", TARGET, "--target", "sqlite",
        *words("--schema", (*LOGS, "relational")), "--dataset", "azure-vm-noise", "--scale", "0.01", "--operations", "34",
        "--repetitions", "1",
    )  # fmt: skip
    assert summary["answers_equal"] is True
    assert summary["result"]["failures"] == {}


def test_wide_rows_give_the_answers_of_duckdb(cli: Cli, lab_servers: LabServers, tmp_path: Path) -> None:
    lab_servers.start("questdb")
    data = 'dataset = "cu-bems"\nscale = 0.0004\noperations = "patterns"'
    file = experiment(tmp_path, data, ((TARGET, "wide_row"), ("sqlite", "wide_row")), "get_range = 1, get_recent = 1")
    assert summary_of(cli, tmp_path / "out", "run", file)["answers_equal"] is True


def test_what_is_written_is_kept(cli: Cli, lab_servers: LabServers, tmp_path: Path) -> None:
    lab_servers.start("questdb")
    data = 'dataset = "beijing-air-quality"\nscale = 0.001'
    targets = tuple((TARGET, schema) for schema in SENSORS)
    summary = summary_of(
        cli, tmp_path / "out", "run", experiment(tmp_path, data, targets, "insert_reading = 3, get_written_reading = 1")
    )
    assert {facts["errors"] for facts in summary["result"]["client_health"].values()} == {0}
    for checks in summary["result"]["contents"].values():
        assert (checks["wrong"], checks["lost_writes"]) == (0, 0)
        assert checks["read_back"] == checks["acknowledged_writes"] > 0


def test_streams_are_accounted_for_by_the_rule_of_each_schema_and_are_visible_after_they_are_acknowledged(
    cli: Cli, lab_servers: LabServers, tmp_path: Path
) -> None:
    lab_servers.start("questdb")
    data = 'dataset = "beijing-air-quality"\nscale = 0.001'
    file = experiment(tmp_path, data, tuple((TARGET, schema) for schema in SENSORS), "insert_reading = 1")
    streams = """
    duration = "3s"
    [workload.delivery]
    disorder = { model = "poisson", ratio = 0.2, mean = 20 }
    duplicates = { share = 0.05, values = "other" }
    [workload.freshness]
    rate = 40
    """
    file.write_text(file.read_text(encoding="utf-8") + streams, encoding="utf-8")
    result = summary_of(cli, tmp_path / "out", "run", file)["result"]
    rules = {}
    for variant, checks in result["contents"].items():
        (of_write,) = checks["accounting"]
        rules[variant] = of_write["rule"]
        wrong = ("lost", "wrong_winners", "extra", "other_values", "unanswered", "unstable", "unexamined")
        assert {name: of_write[name] for name in wrong} == dict.fromkeys(wrong, 0), variant
        assert of_write["again"] == 30, variant
    assert rules == {"questdb-as_sent": "both", "questdb-by_time": "last", "questdb-series": "last"}
    for variant, found in result["freshness"].items():
        whole = found["whole"]
        assert whole["markers"] == whole["seen"] > 0, variant
        # What it acknowledges lies in a log that is applied later: the first read misses most of it.
        assert whole["quantiles_s"]["p90"]["high_s"] > whole["quantiles_s"]["p90"]["low_s"] > 0.0, variant


def test_registers_show_that_writes_are_applied_later_unless_clients_wait(
    cli: Cli, lab_servers: LabServers, tmp_path: Path
) -> None:
    lab_servers.start("questdb")
    data = 'dataset = "beijing-air-quality"\nscale = 0.001\noperations = "registers"'
    targets = ((TARGET, "registers"), (TARGET, "latest"), (f"lab:questdb?namespace={OWN}_waits&wait=applied", "registers"))
    summary = summary_of(
        cli, tmp_path / "out", "run", experiment(tmp_path, data, targets, "write_register = 1, read_register = 1")
    )
    alone, latest, waits = summary["result"]["guarantees"].values()
    for found in (alone, latest, waits):
        assert found["broken"] == []
        assert found["seen"]["lost_writes"] == {**found["seen"]["lost_writes"], "count": 0}
        assert found["promised"]["lost_writes"]["is_made"] is True
    assert [found["promised"]["stale_reads"]["is_made"] for found in (alone, latest, waits)] == [False, False, True]
    assert waits["seen"]["stale_reads"]["count"] == 0 < waits["seen"]["stale_reads"]["of"]


@pytest.mark.parametrize(("operations", "names"), [("sensors", SENSORS), ("logs", LOGS), ("registers", REGISTERS)])
def test_every_schema_has_every_operation(operations: str, names: tuple[str, ...]) -> None:
    assert tuple(sorted(shipped_schemas(operations, "questdb"))) == names
    for name in names:
        schema = load_schema(name, operations=operations, database="questdb")
        assert set(schema.file.operation) == set(load_operations(operations).operation)


def test_a_database_that_is_not_there_is_refused_before_anything_is_asked(cli: Cli, tmp_path: Path) -> None:
    ended = cli(
        "study", "run", "iot", "--target", "questdb://127.0.0.1:1/power", "--schema", "by_time", "--out", tmp_path / "out"
    )
    assert ended.exit_code == 2
    assert "QuestDB has one database, qdb" in ended.err
    assert not (tmp_path / "out").exists()


def test_settings_that_are_the_labs_own_are_refused(lab_servers: LabServers) -> None:
    lab_servers.start("questdb")
    for key, value in (("pg.net.bind.to", "0.0.0.0:8812"), ("http.password", "x"), ("jvm.heap", "much")):
        with pytest.raises(UsageError, match=key):
            lab.unknown_settings(lab.ServerSpec("questdb", settings={key: value}))


def test_it_listens_on_its_own_address_alone_and_tells_its_figures(lab_servers: dict[str, lab.Instance]) -> None:
    instance = lab_servers["questdb"]
    (node,) = instance.nodes
    process = node.find()
    assert process is not None
    listening = {(place.laddr.ip, place.laddr.port) for place in process.net_connections("tcp") if place.status == "LISTEN"}
    assert listening == {(node.host, port) for port in (8812, 9000, 9003)}
    told = lab.insight(instance, node)
    assert told["metrics.pg_wire_queries_total"] > 0
    assert "metrics.jvm_minor_gc_time_total" in told


SERIES = {
    "create": {"statements": ["CREATE TABLE {series} (time TIMESTAMP, value DOUBLE) TIMESTAMP(time) PARTITION BY YEAR WAL"]},
    "tables": {"series": [{"name": "time", "type": "timestamp"}, {"name": "value", "type": "double"}]},
    "operations": [],
}
BATCH_ROWS, BATCHES = 10_000, 1000


def endless_rows(batches_in_all: int = BATCHES) -> pa.RecordBatchReader:
    """More rows than anybody waits for, or so many batches of them."""
    columns = pa.schema({"time": pa.timestamp("us"), "value": pa.float64()})
    values = pa.array(np.arange(BATCH_ROWS, dtype=np.float64))

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in range(batches_in_all):
            times = pa.array(np.arange(batch * BATCH_ROWS, (batch + 1) * BATCH_ROWS), pa.int64()).cast(columns.field("time").type)
            yield pa.record_batch([times, values], schema=columns)

    return pa.RecordBatchReader.from_batches(columns, batches())


def test_a_table_has_the_same_size_whenever_it_is_loaded(lab_servers: LabServers) -> None:
    """A log that was applied is a copy of the rows until it is removed, which happens now and then."""
    lab_servers.start("questdb")
    target = _engine.Target(server_url("questdb", f"{OWN}_size"))
    try:
        for _ in range(3):
            target.create(json.dumps(SERIES), "loading", intent="replace", owner=TEST_OWNER.to_json())
            load = target.load("series", endless_rows(20))
            assert load.wait(120)
            load.result()
            target.settle()
            rows = target.count("series")
            assert rows == 20 * BATCH_ROWS
            size = json.loads(target.size())
            assert 16 * rows <= size["parts"]["series"] < 24 * rows
    finally:
        target.remove(owner=TEST_OWNER.to_json())


def test_what_a_killed_server_has_acknowledged_is_there_when_it_runs_again(lab_home: Path) -> None:
    """Of a load that the server did not survive, the rows that were counted are there, and at most those of one request more."""
    instance = lab.up(lab.ServerSpec("questdb", name="questdb-killed", settings={"jvm.heap": "256M"}))
    try:
        target = _engine.Target(lab.url_of(instance))
        target.create(json.dumps(SERIES), "loading", intent="create", owner=TEST_OWNER.to_json())
        load = target.load("series", endless_rows())
        while load.rows < 200_000:
            assert not load.wait(0.01)
        process = instance.nodes[0].find()
        assert process is not None
        process.send_signal(signal.SIGKILL)
        assert load.wait(120)
        with pytest.raises(_engine.TargetError, match="the connection was lost"):
            load.result()
        acknowledged = load.rows
        lab.start_node("questdb-killed")
        again = _engine.Target(lab.url_of(lab.find_instance("questdb-killed")))
        again.attach(json.dumps(SERIES), intent="resume", owner=TEST_OWNER.to_json())
        # A request of 2 MiB has rows of 30 bytes or more.
        assert acknowledged <= again.count("series") <= acknowledged + 2 * 2**20 // 30
    finally:
        lab.down("questdb-killed")
