"""A server of the lab is recorded, and its settings are as they were before."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pyarrow.parquet as pq
import pytest

from sensorbench import _engine, lab
from sensorbench.traffic.record import logged
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


@pytest.mark.parametrize("target", ["lab:redis", "postgresql://127.0.0.1:9/x"])
def test_other_servers_are_not_touched(cli: Cli, lab_servers: LabServers, tmp_path: Path, target: str) -> None:
    lab_servers.start("redis")
    refused = cli("traffic", "record", target, "--for", "1s", "--out", tmp_path / "trace")
    assert refused.exit_code == 2
    assert "PostgreSQL server of the lab" in refused.err or "settings are changed at servers of the lab alone" in refused.err
    assert not (tmp_path / "trace").exists()
