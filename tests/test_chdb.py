"""chDB as a target: its driver keeps the contract, its schemas give DuckDB's answers, and what it has acknowledged outlives a process that is killed."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sensorbench import _engine
from sensorbench.errors import UsageError
from sensorbench.lab.databases import chdb
from sensorbench.runner import parse_target
from sensorbench.runner.variants import Variant
from sensorbench.runner.versions import check_version, lab_takes
from sensorbench.schemas import load_schema
from tests.conftest import TEST_OWNER, Cli
from tests.contract import keeps_the_contract
from tests.streams import check_rules

SMALL = ("--dataset", "beijing-air-quality", "--scale", "0.003", "--operations", "40", "--repetitions", "1")
SENSORS = ("by_time", "daily_peaks", "natural", "projected", "replacing", "typed")

SERIES: dict[str, Any] = {
    "create": {"statements": ["CREATE TABLE series (time DateTime64(6, 'UTC'), value Float64) ENGINE = MergeTree ORDER BY time"]},
    "tables": {"series": [{"name": "time", "type": "timestamp"}, {"name": "value", "type": "double"}]},
    "operations": [],
}
PUT = {"name": "put", "parameters": SERIES["tables"]["series"], "columns": [], "statement": {"write": "series"}}
# What another process does with a folder: it writes rows one by one, and says of each that it was acknowledged.
WRITER = f"""
import json, sys, pyarrow as pa
from sensorbench import _engine
target = _engine.Target("chdb:" + sys.argv[1])
target.create({json.dumps(json.dumps(SERIES))}, "", intent="create", owner={json.dumps(TEST_OWNER.to_json())})
columns = pa.schema({{"time": pa.timestamp("us"), "value": pa.float64()}})
for number in range(1_000_000):
    row = pa.record_batch([pa.array([number], columns.field("time").type), pa.array([float(number)])], schema=columns)
    target.execute_once({json.dumps(json.dumps(PUT))}, pa.RecordBatchReader.from_batches(columns, [row]))
    print(number, flush=True)
"""


def test_it_keeps_the_contract() -> None:
    keeps_the_contract("chdb", {"SENSORBENCH_TEST_CHDB": str(chdb.library())})


def test_readings_give_the_answers_of_duckdb(cli: Cli, tmp_path: Path) -> None:
    ended = cli(
        "study", "run", "iot", "--target", "chdb", "--target", "duckdb",
        *(word for name in SENSORS for word in ("--schema", name)), *SMALL, "--no-open", "--out", tmp_path / "out",
    )  # fmt: skip
    assert ended.exit_code == 0, ended.err
    summary = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    assert summary["answers_equal"] is True
    assert {f"chdb-{schema}" for schema in SENSORS} <= {variant["id"] for variant in summary["variants"]}
    assert {checks["wrong"] for checks in summary["result"]["known_answers"].values()} == {0}
    assert summary["result"]["failures"] == {}
    told = summary["result"]["load"]["chdb-typed"]
    assert told["description"]["database"] == "chDB"
    assert told["description"]["version"] == chdb.SOFTWARE.version
    assert 0 < sum(told["size"]["parts"].values()) <= told["size"]["total_bytes"]


def test_streams_are_accounted_for_by_the_rule_of_each_schema_of_current_versions(cli: Cli, tmp_path: Path) -> None:
    targets = [(f"chdb:{tmp_path / name}", name) for name in ("daily_peaks", "projected", "typed")]
    accounts = check_rules(cli, tmp_path, targets)
    assert [of_write["rule"] for of_write in accounts.values()] == ["last", "both", "both"]


def test_what_was_acknowledged_outlives_a_process_that_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "killed"
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        for line in writer.stdout:
            if int(line) == 20:
                os.kill(writer.pid, signal.SIGKILL)
                break
        acknowledged = 1 + max([20, *(int(line) for line in writer.stdout)])
    target = _engine.Target(f"chdb:{path}")
    target.attach(json.dumps(SERIES), intent="resume", owner=TEST_OWNER.to_json())
    assert acknowledged <= target.count("series") <= acknowledged + 1
    target.clean()
    assert not list(tmp_path.iterdir())


def test_a_schema_that_needs_a_later_version_is_left_out_or_refused(tmp_path: Path) -> None:
    """The version of another database is compared here: the lab's ClickHouse is of 2018, and is in other tests."""
    typed = load_schema("typed", operations="sensors", database="clickhouse")
    assert not lab_takes(parse_target("clickhouse"), typed)
    assert lab_takes(parse_target("clickhouse://127.0.0.1:1"), typed)
    target = parse_target(f"duckdb:{tmp_path / 'a.db'}")
    variant = Variant("duckdb-typed", target, typed, target.text, None)
    with pytest.raises(UsageError, match=r"the schema typed needs version 20\.3 of DuckDB or a later one, but .* has 2\.\d"):
        check_version(variant, variant.engine_target())
