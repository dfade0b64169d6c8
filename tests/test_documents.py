"""Documents: every schema of both studies gives the answers of other databases, over whatever keeps the documents."""

import json
from pathlib import Path
from typing import Any

import pytest

from sensorbench.schemas import load_operations, load_schema, shipped_schemas
from tests.conftest import Cli
from tests.servers import LabServers

NAMES = ("ferretdb", "ferretdb-postgresql")
SERVERS = tuple(f"lab:{name}" for name in NAMES)
SENSORS = ("by_month", "by_reading", "by_sensor_day", "capped", "daily_peaks")
LOGS = ("by_day", "by_record", "capped")


def words(option: str, values: tuple[str, ...]) -> list[str]:
    return [word for value in values for word in (option, value)]


def summary_of(cli: Cli, out: Path, *arguments: object) -> dict[str, Any]:
    ended = cli("study", "run", *arguments, "--replace", "--repetitions", "1", "--no-open", "--out", out)
    assert ended.exit_code == 0, ended.err
    return json.loads((out / "summary.json").read_text(encoding="utf-8"))


def test_readings_in_documents_give_the_answers_of_hbase_cassandra_and_postgresql(
    cli: Cli, lab_servers: LabServers, tmp_path: Path
) -> None:
    lab_servers.start(*NAMES, "hbase", "cassandra", "postgresql")
    summary = summary_of(
        cli, tmp_path / "out", "iot", *words("--target", (*SERVERS, "lab:hbase", "lab:cassandra", "lab:postgresql")),
        *words("--schema", (*SENSORS, "by_sensor", "natural")), "--dataset", "beijing-air-quality", "--scale", "0.001",
        "--operations", "16",
    )  # fmt: skip
    assert summary["answers_equal"] is True
    documents = {f"{server.removeprefix('lab:')}-{schema}" for server in SERVERS for schema in SENSORS}
    assert {variant["id"] for variant in summary["variants"]} == {
        *documents,
        "hbase-by_sensor",
        "cassandra-by_sensor",
        "postgresql-natural",
    }
    assert summary["result"]["known_answers"].keys() == {variant["id"] for variant in summary["variants"]}
    assert {checks["wrong"] for checks in summary["result"]["known_answers"].values()} == {0}
    # Reports say which server answered, and what it keeps the documents in.
    for variant in documents:
        described = summary["result"]["load"][variant]["description"]
        assert (described["database"], described["version"]) == ("FerretDB", "1.24.2")
        behind = "PostgreSQL" if "postgresql" in variant else "SQLite"
        assert described["settings"]["data are in"].startswith(behind)


def test_logs_in_documents_give_the_answers_of_postgresql(cli: Cli, lab_servers: LabServers, tmp_path: Path) -> None:
    lab_servers.start(*NAMES, "postgresql")
    summary = summary_of(
        cli, tmp_path / "out", "log-analytics", *words("--target", (*SERVERS, "lab:postgresql")),
        *words("--schema", (*LOGS, "relational")), "--dataset", "azure-vm-noise", "--scale", "0.005", "--operations", "34",
    )  # fmt: skip
    assert summary["answers_equal"] is True
    assert summary["result"]["failures"] == {}
    assert len(summary["variants"]) == 2 * 5 + 3


WRITING = """\
dataset = "beijing-air-quality"
scale = 0.001
{targets}
[workload]
mix = {{ insert_reading = 3, get_written_reading = 1 }}
operations = 400
schedule = {{ concurrency = 1 }}
repetitions = 1
"""


def test_every_schema_keeps_what_is_written(cli: Cli, lab_servers: LabServers, tmp_path: Path) -> None:
    lab_servers.start(NAMES[1])
    targets = "".join(f'[[target]]\nurl = "{SERVERS[1]}"\nschema = "{schema}"\n' for schema in SENSORS)
    (tmp_path / "experiment.toml").write_text(WRITING.format(targets=targets), encoding="utf-8")
    ended = cli("run", tmp_path / "experiment.toml", "--replace", "--no-open", "--out", tmp_path / "out")
    assert ended.exit_code == 0, ended.err
    summary = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    assert summary["answers_equal"] is True
    assert len(summary["result"]["contents"]) == len(SENSORS)
    assert {facts["errors"] for facts in summary["result"]["client_health"].values()} == {0}


@pytest.mark.parametrize(
    ("operations", "names"), [("sensors", SENSORS), ("logs", LOGS), ("articles", ("by_id",)), ("registers", ("registers",))]
)
def test_every_schema_has_every_operation(operations: str, names: tuple[str, ...]) -> None:
    assert tuple(sorted(shipped_schemas(operations, "mongodb"))) == names
    for name in names:
        schema = load_schema(name, operations=operations, database="mongodb")
        assert set(schema.file.operation) == set(load_operations(operations).operation)


ARTICLES = """\
dataset = "wikipedia"
scale = 0.1
operations = "articles"
{targets}
[workload]
mix = {{ read_article = 6, insert_article = 2{more} }}
operations = 100
repetitions = 1
"""


@pytest.mark.parametrize(("more", "compared"), [("", True), (", append_character = 3", None)])
def test_articles_in_documents(cli: Cli, lab_servers: LabServers, tmp_path: Path, more: str, compared: bool | None) -> None:
    lab_servers.start(NAMES[1])
    targets = "".join(f'[[target]]\nurl = "{url}"\nschema = "by_id"\n' for url in (SERVERS[1], "sqlite"))
    (tmp_path / "experiment.toml").write_text(ARTICLES.format(targets=targets, more=more), encoding="utf-8")
    ended = cli("run", tmp_path / "experiment.toml", "--replace", "--no-open", "--out", tmp_path / "out")
    assert ended.exit_code == 0, ended.err
    summary = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    assert summary["answers_equal"] is compared
    assert {facts["errors"] for facts in summary["result"]["client_health"].values()} == {0}
    assert len(summary["result"]["contents"]) == 2
    for checks in summary["result"]["contents"].values():
        if compared:
            assert (checks["wrong"], checks["lost_writes"]) == (0, 0)
            assert checks["read_back"] == checks["acknowledged_writes"] > 0
        else:
            assert "append_character changed rows that were there" in checks["not_checked"]
