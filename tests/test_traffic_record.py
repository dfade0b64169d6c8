"""A server is recorded, and its settings are as they were before."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pyarrow.parquet as pq
import pytest

from sensorbench import _engine, lab
from sensorbench.errors import FailedError, UsageError
from sensorbench.traffic import record_mysql, record_postgresql_at
from sensorbench.traffic.record_postgresql import logged
from sensorbench.traffic.sql import PUT_BACK_FILE, Server
from tests.conftest import Cli, server_url
from tests.servers import LabServers


@contextmanager
def used(url: str) -> Iterator[None]:
    """Has a server look for namespaces of ours over and over."""
    over = Event()

    def use() -> None:
        while not over.wait(0.05):
            _engine.Target(url).namespaces()

    thread = Thread(target=use)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def settings_of(instance: lab.Instance) -> str:
    return (instance.data_folder(instance.nodes[0]) / "postgresql.auto.conf").read_text(encoding="utf-8")


def interrupt_while_logged(instance: lab.Instance, seen: list[str]) -> None:
    with logged(instance):
        seen.append(settings_of(instance))
        raise KeyboardInterrupt


def test_a_server_is_recorded_and_its_settings_are_put_back(cli: Cli, lab_servers: LabServers, tmp_path: Path) -> None:
    instance, url = lab_servers["postgresql"], server_url("postgresql", "traffic_record")
    before = settings_of(instance)
    with used(url):
        ended = cli("traffic", "record", f"lab:{instance.name}", "--for", "2s", "--out", tmp_path / "trace", "--json")
    assert ended.exit_code == 0, ended.err
    assert settings_of(instance) == before
    assert ended.json["version"] == instance.version
    statements = pq.read_table(tmp_path / "trace" / "statements.parquet").to_pylist()
    assert len(statements) == ended.json["statements"] > 0
    assert all(row["duration"] >= 0 for row in statements)
    templates = json.loads((tmp_path / "trace" / "trace.json").read_text(encoding="utf-8"))["templates"]
    assert any("pg_" in template["statement"] and template["kind"] == "read" for template in templates)
    size = instance.log.stat().st_size
    _engine.Target(url).namespaces()
    assert b"duration:" not in instance.log.read_bytes()[size:]


def test_what_a_killed_recording_left_is_put_back_by_the_next(lab_servers: LabServers) -> None:
    instance = lab_servers["postgresql"]
    before = settings_of(instance)
    seen: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        interrupt_while_logged(instance, seen)
    (left,) = seen
    assert left != settings_of(instance) == before
    file = instance.data_folder(instance.nodes[0]) / "postgresql.auto.conf"
    with file.open("r+", encoding="utf-8") as settings:
        settings.write(left)
    with logged(instance):
        assert settings_of(instance) == left
    assert settings_of(instance) == before


MYSQL_LOG = "SELECT @@GLOBAL.general_log, @@GLOBAL.log_output, @@GLOBAL.slow_query_log, CAST(@@GLOBAL.long_query_time AS CHAR)"
DEFAULT_LOG = [0, "FILE", 0, "10.000000"]
MYSQL_COLUMNS = {"general": "integer", "output": "text", "slow": "integer", "long": "text"}


@pytest.fixture
def mariadb(lab_servers: LabServers) -> Server:
    """The MariaDB that tests share, asked by SQL."""
    lab_servers.start("mariadb")
    return Server(server_url("mariadb", "information_schema"))


def templates_of(folder: Path) -> list[str]:
    described = json.loads((folder / "trace.json").read_text(encoding="utf-8"))
    return [template["statement"] for template in described["templates"]]


def test_mariadb_is_recorded_with_microseconds_and_its_log_is_put_back(cli: Cli, mariadb: Server, tmp_path: Path) -> None:
    before = mariadb.row(MYSQL_LOG, MYSQL_COLUMNS)
    rows_before = mariadb.row("SELECT count(*) FROM mysql.general_log", {"rows": "integer"})
    with used(server_url("mariadb", "traffic_record")):
        ended = cli("traffic", "record", "lab:mariadb", "--for", "2s", "--out", tmp_path / "trace", "--json")
    assert ended.exit_code == 0, ended.err
    assert mariadb.row(MYSQL_LOG, MYSQL_COLUMNS) == before
    assert mariadb.row("SELECT count(*) FROM mysql.general_log", {"rows": "integer"}) == rows_before
    statements = pq.read_table(tmp_path / "trace" / "statements.parquet").to_pylist()
    assert len(statements) == ended.json["statements"] > 2
    assert any(row["at"].microsecond % 1000 for row in statements)
    timed = [row for row in statements if row["duration"] is not None]
    assert len(timed) > len(statements) / 2, "the slow log has those of sessions that begin meanwhile"
    assert all(row["duration"] > 0 and row["rows"] is not None for row in timed)
    assert ended.json["database"] == "mysql"
    assert not any("sensorbench traffic record" in template for template in templates_of(tmp_path / "trace")), "ours"
    assert any("information_schema" in template.lower() for template in templates_of(tmp_path / "trace"))
    assert not (tmp_path / "trace" / PUT_BACK_FILE).exists()


def interrupt_while_mariadb_logs(server: Server, folder: Path, seen: list[object]) -> None:
    with record_mysql.logged(server, folder, may_log_slow=True) as has_durations:
        seen += [has_durations, *server.row(MYSQL_LOG, MYSQL_COLUMNS), (folder / PUT_BACK_FILE).read_text(encoding="utf-8")]
        raise KeyboardInterrupt


def test_what_the_owner_of_a_mariadb_logs_goes_on(mariadb: Server, tmp_path: Path) -> None:
    mariadb.ask("SET GLOBAL slow_query_log = 1")
    seen: list[object] = []
    with pytest.raises(KeyboardInterrupt):
        interrupt_while_mariadb_logs(mariadb, tmp_path / "trace", seen)
    after = mariadb.row(MYSQL_LOG, MYSQL_COLUMNS)
    mariadb.ask("SET GLOBAL slow_query_log = 0")
    note = "SET GLOBAL general_log = 0;\nSET GLOBAL log_output = 'FILE';\n"
    assert seen == [False, 1, "FILE,TABLE", 1, "10.000000", note]
    assert after == [0, "FILE", 1, "10.000000"]
    assert not (tmp_path / "trace").exists()


def test_a_mariadb_by_its_url_keeps_what_it_logged(mariadb: Server, tmp_path: Path) -> None:
    count = "SELECT count(*) FROM mysql.general_log"
    (before,) = mariadb.row(count, {"rows": "integer"})
    url = server_url("mariadb", "traffic_record")
    with used(url):
        trace = record_mysql.record_mysql_at(url, 1.0, tmp_path / "trace", lambda _: None)
    (after,) = mariadb.row(count, {"rows": "integer"})
    assert int(after or 0) > int(before or 0)
    assert (trace.statements or 0) > 2
    assert not any("sensorbench traffic record" in template for template in templates_of(tmp_path / "trace")), "ours"
    mariadb.ask("TRUNCATE TABLE mysql.general_log")


def test_settings_that_are_not_taken_back_stay_written_down(
    mariadb: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise FailedError("gone")

    logs = record_mysql.logged(mariadb, tmp_path / "trace")
    with pytest.raises(FailedError, match=r"gone; the server still logs: .*put-back\.sql has the statements"), logs:
        monkeypatch.setattr(record_mysql, "_set", refuse)
    monkeypatch.undo()
    for statement in (tmp_path / "trace" / PUT_BACK_FILE).read_text(encoding="utf-8").splitlines():
        mariadb.ask(statement.removesuffix(";"))
    assert mariadb.row(MYSQL_LOG, MYSQL_COLUMNS) == DEFAULT_LOG


def test_a_redis_is_recorded(cli: Cli, lab_servers: LabServers, tmp_path: Path) -> None:
    instance = lab_servers["redis"]
    with used(server_url("redis", "traffic_record")):
        ended = cli("traffic", "record", f"lab:{instance.name}", "--for", "1s", "--out", tmp_path / "trace", "--json")
    assert ended.exit_code == 0, ended.err
    assert (ended.json["database"], ended.json["version"]) == ("redis", instance.version)
    assert any(template.startswith("SCAN $1 MATCH $2") for template in templates_of(tmp_path / "trace"))
    assert {file.name for file in (tmp_path / "trace").iterdir()} == {"trace.json", "statements.parquet"}


def test_a_cassandra_is_recorded_and_its_log_is_off_again(cli: Cli, lab_servers: LabServers, tmp_path: Path) -> None:
    instance = lab_servers["cassandra"]
    with used(server_url("cassandra", "traffic_record")):
        ended = cli("traffic", "record", f"lab:{instance.name}", "--for", "2s", "--out", tmp_path / "trace", "--json")
    assert ended.exit_code == 0, ended.err
    described = json.loads((tmp_path / "trace" / "trace.json").read_text(encoding="utf-8"))
    assert described["database"] == "cassandra"
    assert any("system_schema" in template["statement"] and template["consistency"] for template in described["templates"])
    assert not (instance.node_folder(instance.nodes[0]) / "query-log").exists()
    with lab.query_logs(instance) as logs:
        with pytest.raises(FailedError, match="is on already"), lab.query_logs(instance):
            pass
        Server(lab.url_of(instance), inside="system").ask("SELECT key FROM local WHERE key = :key", {"key": "text"}, key="local")
        (log,) = logs.stop()
        imported = cli("traffic", "import", log, "--out", tmp_path / "imported", "--json")
    assert imported.exit_code == 0, imported.err
    parameters = pq.read_table(tmp_path / "imported" / "statements.parquet")["parameters"].to_pylist()
    assert f'["0x{b"local".hex()}"]' in parameters, "without the columns of tables, what is bound is bytes"


def test_a_postgresql_by_its_url_is_recorded_and_its_settings_are_put_back(lab_servers: LabServers, tmp_path: Path) -> None:
    shared = server_url("postgresql", "traffic_record")
    with pytest.raises(UsageError, match="logging_collector is off, so that SQL cannot read its log"):
        record_postgresql_at.record_postgresql_at(shared, 1.0, tmp_path / "trace", lambda _: None)
    instance = lab.up(lab.ServerSpec("postgresql", name="with-collector", settings={"logging_collector": "on"}))
    try:
        url = lab.url_of(instance)
        server = Server(url)
        server.ask("ALTER SYSTEM SET log_min_duration_statement = '7s'")
        before = settings_of(instance)
        with used(url):
            trace = record_postgresql_at.record_postgresql_at(url, 2.0, tmp_path / "trace", lambda _: None)
        assert sorted(settings_of(instance).splitlines()) == sorted(before.splitlines())
        (setting,) = server.row("SELECT current_setting('log_min_duration_statement')", {"setting": "text"})
        assert setting == "7s"
    finally:
        lab.down(instance.name)
    assert (trace.statements or 0) > 2
    assert any("pg_" in template for template in templates_of(tmp_path / "trace"))
    assert not any("sensorbench traffic record" in template for template in templates_of(tmp_path / "trace")), "ours"


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("lab:influxdb", "influxdb cannot be recorded; expected one of postgresql, mariadb, redis"),
        ("postgresql://me:secret@127.0.0.1:9/x", "postgresql://127.0.0.1:9/x: it is not a server of the lab"),
        ("mariadb://127.0.0.1:9", "allow that with --allow-settings"),
        ("redis://127.0.0.1:9", "it cannot be recorded; expected lab:NAME, or the URL of a server (postgresql, mariadb, mysql)"),
    ],
)
def test_other_servers_are_not_touched(cli: Cli, lab_servers: LabServers, tmp_path: Path, target: str, said: str) -> None:
    if target == "lab:influxdb":
        lab_servers.start("influxdb")
    refused = cli("traffic", "record", target, "--for", "1s", "--out", tmp_path / "trace")
    assert (refused.exit_code, said in refused.err, "secret" in refused.err) == (2, True, False), refused.err
    assert not (tmp_path / "trace").exists()
