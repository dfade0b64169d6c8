"""ODBC through the drivers of Debian: the driver contract, and the message when something is missing."""

import json
from pathlib import Path

import pytest

from sensorbench import _engine, lab
from sensorbench.lab import odbc
from tests.conftest import Cli
from tests.contract import keeps_the_contract


def credentials_of(instance: lab.Instance) -> str:
    return lab.url_of(instance).split("credentials=")[1].split("&")[0]


def server_url(instance: lab.Instance, driver: str, database: str) -> str:
    node = instance.nodes[0]
    where = f"server={node.host}&port={node.port}&database={database}&credentials={credentials_of(instance)}"
    return f"odbc:?driver={odbc.driver(driver)}&{where}"


def data_source(instance: lab.Instance) -> str:
    """A data source called plant, as in odbc.ini."""
    node = instance.nodes[0]
    attributes = {"Driver": odbc.driver("postgresql"), "Servername": node.host, "Port": node.port, "Database": "postgres"}
    return "[plant]\n" + "".join(f"{name} = {value}\n" for name, value in attributes.items())


def test_odbc_keeps_the_contract(lab_servers: dict[str, lab.Instance], tmp_path: Path) -> None:
    postgresql, mariadb = lab_servers["postgresql"], lab_servers["mariadb"]
    source_file = tmp_path / "odbc.ini"
    source_file.write_text(data_source(postgresql), encoding="utf-8")
    environment = {
        "ODBCINI": str(source_file),
        "SENSORBENCH_TEST_ODBC_SOURCE": f"odbc:plant?driver={odbc.driver('postgresql')}&credentials={credentials_of(postgresql)}",
        "SENSORBENCH_ODBC_MANAGER": str(odbc.manager()),
        "SENSORBENCH_TEST_ODBC_POSTGRESQL": server_url(postgresql, "postgresql", "postgres"),
        "SENSORBENCH_TEST_ODBC_POSTGRESQL_ANSI": server_url(postgresql, "postgresql-ansi", "postgres"),
        "SENSORBENCH_TEST_ODBC_MARIADB": server_url(mariadb, "mariadb", "mysql"),
        "SENSORBENCH_TEST_ODBC_SQLITE": f"odbc:?driver={odbc.driver('sqlite')}&database={tmp_path / 'odbc.db'}",
    }
    keeps_the_contract("odbc", environment)


def test_a_study_runs_through_odbc(
    cli: Cli, lab_servers: dict[str, lab.Instance], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SENSORBENCH_ODBC_MANAGER", str(odbc.manager()))
    out, url = tmp_path / "out", server_url(lab_servers["postgresql"], "postgresql", "postgres")
    data = ("--dataset", "machine-log-1gb", "--scale", "0.0005")
    outcome = cli("study", "run", "log-analytics", "--target", url, "--target", "sqlite", *data, "--out", out, "--no-open")
    assert outcome.exit_code == 0, outcome.err
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    assert summary["answers_equal"] is True
    assert summary["result"]["failures"] == {}
    assert [variant["id"] for variant in summary["variants"]][:3] == [
        f"odbc-relational-{level}" for level in ("none", "key", "key_value")
    ]
    claims = {claim["id"]: claim for claim in summary["claims"]}
    assert claims["LOG-16"]["verdict"] == "not tested", "it is about the open-source database, too"


@pytest.mark.parametrize(("server", "database"), [("postgresql", "postgres"), ("mariadb", "mysql")])
def test_records_are_read_and_written_through_odbc(
    cli: Cli, lab_servers: dict[str, lab.Instance], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: str, database: str
) -> None:
    monkeypatch.setenv("SENSORBENCH_ODBC_MANAGER", str(odbc.manager()))
    mix = "read=1,write=1,insert=1,scan=1,read_modify_write=1"
    load = ("--rates", "200", "--step-duration", "1s", "--warmup", "0", "--concurrency", "4", "--records", "50", "--mix", mix)
    target = server_url(lab_servers[server], server, database)
    ended = cli("stress", "--target", target, *load, "--replace", "--no-open", "--json", "--out", tmp_path / "out")
    assert ended.exit_code == 0, ended.err
    operations = ended.json["result"]["steps"][0]["operations"]
    assert set(operations) == {"read", "update", "insert", "scan", "read_modify_write"}
    assert all(operation["ok"] > 0 and not operation["error"] for operation in operations.values()), ended.json["result"][
        "errors"
    ]


def test_without_a_driver_manager_it_is_told_what_to_install() -> None:
    with pytest.raises(_engine.UsageError) as error:
        _engine.Target("odbc:plant?manager=/nowhere/libodbc.so.2&pwd=secret")
    for part in ("/nowhere/libodbc.so.2", "install unixODBC", "manager=", "SENSORBENCH_ODBC_MANAGER"):
        assert part in str(error.value)
    assert "secret" not in str(error.value)


def test_a_data_source_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SENSORBENCH_ODBC_MANAGER", str(odbc.manager()))
    target = _engine.Target("odbc:plant?pwd=secret")
    with pytest.raises(_engine.TargetError, match=r"odbc\.ini") as error:
        target.describe()
    assert "ODBC, plant: " in str(error.value)
    assert "secret" not in str(error.value)


def test_a_driver_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SENSORBENCH_ODBC_MANAGER", str(odbc.manager()))
    with pytest.raises(_engine.TargetError, match=r"/nowhere/driver\.so"):
        _engine.Target("odbc:?driver=/nowhere/driver.so").describe()


def test_passwords_are_shown_nowhere(lab_servers: dict[str, lab.Instance], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SENSORBENCH_ODBC_MANAGER", str(odbc.manager()))
    instance = lab_servers["postgresql"]
    password = instance.password()
    node = instance.nodes[0]
    where = f"driver={odbc.driver('postgresql')}&server={node.host}&port={node.port}&database=postgres"
    target = _engine.Target(f"odbc:?{where}&uid=sensorbench&pwd={password}")
    assert password not in target.url
    described = target.describe()
    assert json.loads(described)["database"] == "PostgreSQL"
    assert password not in described
    with pytest.raises(_engine.TargetError) as error:
        _engine.Target(f"odbc:?{where}&uid=nobody&pwd={password}").describe()
    assert password not in str(error.value)
    assert "user and password" in str(error.value)
