"""HBase: every schema of both studies gives the answers of another database, and keeps what is written."""

import json
from pathlib import Path
from typing import Any

import pytest

from sensorbench.schemas import load_operations, load_schema, shipped_schemas
from tests.conftest import Cli
from tests.servers import LabServers

# What is loaded into a server of the lab stays there: other tests have the namespace that is usual.
TARGET = "lab:hbase?namespace=sensorbench_hbase"
SENSORS = ("by_day", "by_hour", "by_hour_sensor", "by_sensor")
LOGS = ("by_record", "by_value")


def summary_of(cli: Cli, out: Path, *arguments: object) -> dict[str, Any]:
    ended = cli(*arguments, "--replace", "--no-open", "--out", out)
    assert ended.exit_code == 0, ended.err
    return json.loads((out / "summary.json").read_text(encoding="utf-8"))


def words(option: str, values: tuple[str, ...]) -> list[str]:
    return [word for value in values for word in (option, value)]


def test_readings_give_the_answers_of_sqlite(cli: Cli, lab_servers: LabServers, tmp_path: Path) -> None:
    lab_servers.start("hbase")
    summary = summary_of(
        cli, tmp_path / "out", "study", "run", "iot", "--target", TARGET, "--target", "sqlite",
        *words("--schema", (*SENSORS, "natural")), "--dataset", "beijing-air-quality", "--scale", "0.003", "--operations", "40",
        "--repetitions", "1",
    )  # fmt: skip
    assert summary["answers_equal"] is True
    assert {variant["id"] for variant in summary["variants"]} == {*(f"hbase-{schema}" for schema in SENSORS), "sqlite-natural"}
    assert summary["result"]["known_answers"].keys() == {variant["id"] for variant in summary["variants"]}
    assert {checks["wrong"] for checks in summary["result"]["known_answers"].values()} == {0}
    described = summary["result"]["load"]["hbase-by_day"]["description"]
    assert described["database"] == "HBase"
    assert {"hbase.client.retries.number", "durability", "gateways"} <= set(described["settings"])


def test_logs_give_the_answers_of_sqlite(cli: Cli, lab_servers: LabServers, tmp_path: Path) -> None:
    lab_servers.start("hbase")
    summary = summary_of(
        cli, tmp_path / "out", "study", "run", "log-analytics", "--target", TARGET, "--target", "sqlite",
        *words("--schema", (*LOGS, "relational")), "--dataset", "azure-vm-noise", "--scale", "0.01", "--operations", "34",
        "--repetitions", "1",
    )  # fmt: skip
    assert summary["answers_equal"] is True
    assert summary["result"]["failures"] == {}
    assert {f"hbase-{schema}" for schema in LOGS} < {variant["id"] for variant in summary["variants"]}


READINGS = """\
dataset = "beijing-air-quality"
scale = 0.001
{targets}
[workload]
mix = {{ {mix} }}
operations = 1200
schedule = {{ concurrency = 2 }}
repetitions = 1
"""

ARTICLES = """\
dataset = "wikipedia"
scale = 0.3
operations = "articles"
{targets}
[workload]
mix = {{ {mix} }}
operations = 200
schedule = {{ concurrency = 2 }}
repetitions = 1
"""


def conducted(cli: Cli, folder: Path, experiment: str, schemas: tuple[str, ...], mix: str) -> dict[str, Any]:
    targets = "".join(f'[[target]]\nurl = "{TARGET}"\nschema = "{schema}"\n' for schema in schemas)
    (folder / "experiment.toml").write_text(experiment.format(targets=targets, mix=mix), encoding="utf-8")
    summary = summary_of(cli, folder / "out", "run", folder / "experiment.toml")
    assert {facts["errors"] for facts in summary["result"]["client_health"].values()} == {0}
    assert len(summary["result"]["contents"]) == len(schemas)
    return summary


@pytest.mark.parametrize(
    ("experiment", "schemas", "mix"),
    [
        (READINGS, ("by_sensor", "by_hour_sensor", "by_day"), "insert_reading = 3, get_written_reading = 1"),
        (ARTICLES, ("by_id",), "insert_article = 1, read_article = 1"),
    ],
    ids=["readings", "articles"],
)
def test_what_is_written_is_kept(
    cli: Cli, lab_servers: LabServers, tmp_path: Path, experiment: str, schemas: tuple[str, ...], mix: str
) -> None:
    lab_servers.start("hbase")
    summary = conducted(cli, tmp_path, experiment, schemas, mix)
    assert summary["answers_equal"] is True
    for checks in summary["result"]["contents"].values():
        assert (checks["wrong"], checks["lost_writes"]) == (0, 0)
        assert checks["read_back"] == checks["acknowledged_writes"] > 0


def test_articles_become_longer(cli: Cli, lab_servers: LabServers, tmp_path: Path) -> None:
    lab_servers.start("hbase")
    summary = conducted(cli, tmp_path, ARTICLES, ("by_id",), "read_article = 1, append_character = 1")
    for checks in summary["result"]["contents"].values():
        assert "append_character changed rows that were there" in checks["not_checked"]


@pytest.mark.parametrize(("operations", "names"), [("sensors", SENSORS), ("logs", LOGS)])
def test_every_schema_has_every_operation(operations: str, names: tuple[str, ...]) -> None:
    assert tuple(sorted(shipped_schemas(operations, "hbase"))) == names
    for name in names:
        schema = load_schema(name, operations=operations, database="hbase")
        assert set(schema.file.operation) == set(load_operations(operations).operation)
