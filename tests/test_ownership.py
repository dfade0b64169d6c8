"""What carries no marker of ours is never changed, whatever the options; what carries one goes only when that is wanted."""

import json
import shutil
import sqlite3
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from sensorbench import lab
from sensorbench._engine import Target
from tests.conftest import TEST_OWNER, Cli, Outcome, server_url
from tests.servers import LabServers

# Two runs, of which one can be taken away as if the work had been cut short.
EXPERIMENT = """
dataset = "beijing-air-quality"
scale = 0.002
[[target]]
url = "{url}"
schema = "{schema}"
[workload]
mix = {{ get_sensor_data = 1 }}
operations = 20
repetitions = 2
"""


@dataclass(frozen=True)
class Embedded:
    """An embedded database, a schema for it, and what a user would have at its path."""

    name: str
    schema: str
    put: Callable[[Path], None]
    rows: Callable[[Path], list[str]]


def put_database(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE sensorbench (mark TEXT)")
        connection.executemany("INSERT INTO sensorbench VALUES (?)", [("mine",), ("too",)])


def rows_of_database(path: Path) -> list[str]:
    with sqlite3.connect(path) as connection:
        return [row for (row,) in connection.execute("SELECT mark FROM sensorbench ORDER BY 1")]


def put_folder(path: Path) -> None:
    path.mkdir()
    (path / "mine").write_text("mine\ntoo\n", encoding="utf-8")


def rows_of_folder(path: Path) -> list[str]:
    return (path / "mine").read_text(encoding="utf-8").splitlines()


EMBEDDED = [
    pytest.param(Embedded("sqlite", "natural", put_database, rows_of_database), id="sqlite"),
    pytest.param(Embedded("fjall", "by_sensor", put_folder, rows_of_folder), id="fjall"),
]


class Bench:
    """Commands on one path of an embedded database."""

    def __init__(self, cli: Cli, folder: Path, database: Embedded) -> None:
        self.path = folder / "my-data"
        self.url = f"{database.name}:{self.path}"
        self._cli = cli
        self._file = folder / "experiment.toml"
        self._file.write_text(EXPERIMENT.format(url=self.url, schema=database.schema), encoding="utf-8")

    def run(self, out: Path, *more: str) -> Outcome:
        return self._cli("run", self._file, "--no-open", "--out", out, *more)

    def marker(self) -> dict[str, object]:
        text = Target(self.url).marker()
        assert text is not None
        return json.loads(text)


@pytest.fixture(params=EMBEDDED)
def database(request: pytest.FixtureRequest) -> Embedded:
    return request.param


@pytest.fixture
def bench(cli: Cli, tmp_path: Path, database: Embedded) -> Bench:
    return Bench(cli, tmp_path, database)


def remove(path: Path) -> None:
    """Removes a database as its user would."""
    if path.is_dir():
        shutil.rmtree(path)
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()


def cut_short(out: Path) -> None:
    """Makes work that is complete look as if it was ended before its last run."""
    (last,) = out.glob("experiments/*/run-2")
    shutil.rmtree(last)


@pytest.mark.parametrize("options", [(), ("--replace",), ("--drop-after",), ("--replace", "--drop-after")])
def test_a_users_data_are_refused_and_left(bench: Bench, database: Embedded, options: tuple[str, ...], tmp_path: Path) -> None:
    database.put(bench.path)
    refused = bench.run(tmp_path / "out", *options)
    assert refused.exit_code == 2
    assert "sensorbench did not create it and never changes or deletes it; name another path" in refused.err
    assert "--replace" not in refused.err
    assert database.rows(bench.path) == ["mine", "too"]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("options", [("--resume",), ("--resume", "--replace")])
def test_a_users_data_stay_when_work_goes_on(bench: Bench, database: Embedded, options: tuple[str, ...], tmp_path: Path) -> None:
    assert bench.run(tmp_path / "out").exit_code == 0
    remove(bench.path)
    database.put(bench.path)
    cut_short(tmp_path / "out")
    refused = bench.run(tmp_path / "out", *options)
    assert refused.exit_code == 2, refused.err
    assert "sensorbench did not create it" in refused.err
    assert database.rows(bench.path) == ["mine", "too"]


def test_what_another_folder_created_goes_only_by_replace(bench: Bench, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    assert bench.run(first).exit_code == 0
    refused = bench.run(second)
    assert refused.exit_code == 2
    assert f"holds data of the results folder {first}; give --replace" in refused.err
    assert not second.exists()
    assert bench.marker()["owner"] == {"id": manifest_id(first), "folder": str(first)}
    assert bench.run(second, "--replace").exit_code == 0
    assert bench.marker()["owner"] == {"id": manifest_id(second), "folder": str(second)}
    cut_short(first)
    refused = bench.run(first, "--resume")
    assert refused.exit_code == 2
    assert f"holds data of the results folder {second}; --resume continues only what its own folder created" in refused.err
    assert bench.marker()["owner"] == {"id": manifest_id(second), "folder": str(second)}


def test_a_folder_that_was_moved_goes_on(bench: Bench, tmp_path: Path) -> None:
    assert bench.run(tmp_path / "here").exit_code == 0
    cut_short(tmp_path / "here")
    (tmp_path / "here").rename(tmp_path / "there")
    resumed = bench.run(tmp_path / "there", "--resume")
    assert resumed.exit_code == 0, resumed.err
    assert "already loaded" in resumed.err


def test_work_whose_loading_was_cut_short_loads_again(bench: Bench, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert bench.run(out).exit_code == 0
    Target(bench.url).set_fingerprint("loading")
    cut_short(out)
    resumed = bench.run(out, "--resume")
    assert resumed.exit_code == 0, resumed.err
    assert "already loaded" not in resumed.err
    assert bench.marker()["owner"] == {"id": manifest_id(out), "folder": str(out)}


def test_markers_of_earlier_versions_are_anothers(cli: Cli, tmp_path: Path) -> None:
    bench = Bench(cli, tmp_path, Embedded("sqlite", "natural", put_database, rows_of_database))
    out = tmp_path / "out"
    assert bench.run(out).exit_code == 0
    with sqlite3.connect(bench.path) as connection:
        connection.execute("UPDATE sensorbench SET mark = ?", ('{"fingerprint": "x", "state": "settled"}',))
    cut_short(out)
    refused = bench.run(out, "--resume")
    assert (refused.exit_code, "of an earlier version of sensorbench" in refused.err) == (2, True), refused.err
    assert bench.run(tmp_path / "new").exit_code == 2
    assert bench.run(tmp_path / "new", "--replace").exit_code == 0


def test_what_a_run_created_is_dropped_after_it_if_wanted(bench: Bench, tmp_path: Path) -> None:
    kept = bench.run(tmp_path / "kept")
    assert kept.exit_code == 0, kept.err
    assert bench.path.exists()
    dropped = bench.run(tmp_path / "dropped", "--replace", "--drop-after")
    assert dropped.exit_code == 0, dropped.err
    assert not bench.path.exists()


def test_what_is_left_at_a_path_is_listed_and_cleaned(bench: Bench, cli: Cli, tmp_path: Path) -> None:
    assert cli("target", "list", bench.url).out == "sensorbench has no namespace there\n"
    assert bench.run(tmp_path / "out").exit_code == 0
    (found,) = cli("target", "list", bench.url, "--json").json
    assert (found["namespace"], found["folder"]) == (str(bench.path), str(tmp_path / "out"))
    assert found["bytes"] > 1000
    assert found["created"] is not None
    unasked = cli("target", "clean", bench.url)
    assert (unasked.exit_code, "confirm with --yes" in unasked.err) == (2, True), unasked.err
    unknown = cli("target", "clean", bench.url, "--namespace", "other", "--yes")
    assert (unknown.exit_code, "--namespace other: sensorbench created no such namespace" in unknown.err) == (2, True)
    assert bench.path.exists()
    assert cli("target", "clean", bench.url, "--yes").exit_code == 0
    assert not bench.path.exists()


def test_a_users_data_are_neither_listed_nor_cleaned(bench: Bench, database: Embedded, cli: Cli) -> None:
    database.put(bench.path)
    assert cli("target", "list", bench.url, "--json").json == []
    cleaned = cli("target", "clean", bench.url, "--yes")
    assert cleaned.exit_code == 0
    assert "nothing is removed" in cleaned.out
    assert database.rows(bench.path) == ["mine", "too"]


def test_a_target_without_a_place_of_its_own_is_refused(cli: Cli) -> None:
    refused = cli("target", "list", "sqlite")
    assert (refused.exit_code, "expected the URL of a server, sqlite:PATH, or lab:NAME" in refused.err) == (2, True)


def test_postgresqls_password_file_logs_in_and_is_not_read_where_others_may(
    cli: Cli, lab_servers: LabServers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = lab_servers["postgresql"]
    login = tomllib.loads(instance.credentials.read_text(encoding="utf-8"))
    address = lab.url_of(instance).partition("?")[0].replace("://", f"://{login['user']}@")
    file = tmp_path / "passwords"
    file.write_text(f"# mine\n*:*:*:{login['user']}:{login['password']}\n", encoding="utf-8")
    file.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(file))
    listed = cli("target", "list", address, "--json")
    assert listed.exit_code == 0, listed.err
    file.chmod(0o644)
    refused = cli("target", "list", address)
    assert refused.exit_code != 0
    assert f"the password file {file} was not read, because others may read it: chmod 600 {file}" in " ".join(refused.err.split())
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "nowhere"))
    missing = cli("target", "list", address)
    assert "check user and password" in " ".join(missing.err.split())
    assert login["password"] not in refused.err + missing.err


@pytest.mark.parametrize(
    "server",
    [
        "cassandra",
        "ferretdb",
        "hbase",
        "influxdb",
        "mariadb",
        "postgresql",
        "questdb",
        "redis",
        "victoriametrics",
        "prometheus",
        "opentsdb",
        "clickhouse",
        "iotdb",
    ],
)
def test_namespaces_at_a_server_are_listed_and_cleaned(cli: Cli, server: str, lab_servers: LabServers) -> None:
    lab_servers.start(server)
    at = f"lab:{server}"
    for name in ("left_one", "left_two"):
        Target(server_url(server, name)).create("{}", "", intent="replace", owner=TEST_OWNER.to_json())
    found = {entry["namespace"]: entry for entry in cli("target", "list", at, "--json").json}
    assert {"left_one", "left_two"} <= found.keys()
    assert found["left_one"]["folder"] == TEST_OWNER.folder
    assert cli("target", "clean", at, "--namespace", "left_one", "--yes").exit_code == 0
    left = {entry["namespace"] for entry in cli("target", "list", at, "--json").json}
    assert left == found.keys() - {"left_one"}
    assert Target(server_url(server, "left_one")).marker() is None
    Target(server_url(server, "left_two")).remove(owner=TEST_OWNER.to_json())


def manifest_id(out: Path) -> str:
    return json.loads((out / "manifest.json").read_text(encoding="utf-8"))["id"]
