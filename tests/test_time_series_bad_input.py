"""Bad input and faults of time-series databases: every message has the server's words and what to do, and what is accounted for is exact."""

import base64
import hashlib
import hmac
import json
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import urlopen

import pyarrow as pa
import pytest

from sensorbench import _engine, lab
from sensorbench.lab.processes import wait_until
from tests.conftest import TEST_OWNER, Cli

SECRET = "signs-the-tokens-of-this-test"
PASSWORD = "pass-word-of-this-test"
ROWS = 30_000
POINTS = {
    "create": {"points": {"t": {"tags": ["sensor"], "fields": ["value"]}}},
    "tables": {
        "t": [{"name": "sensor", "type": "text"}, {"name": "time", "type": "timestamp"}, {"name": "value", "type": "double"}]
    },
}
EXPERIMENT = """
dataset = "beijing-air-quality"
scale = {scale}
operations = "sensors"
[[target]]
url = "{url}"
schema = "{schema}"
[workload]
mix = {{ get_sensor_data = 1 }}
schedule = {{ concurrency = 1 }}
operations = 10
repetitions = 1
"""


def experiment(folder: Path, url: str, schema: str, scale: float = 0.001) -> Path:
    file = folder / "experiment.toml"
    file.write_text(EXPERIMENT.format(url=url, schema=schema, scale=scale), encoding="utf-8")
    return file


def token(secret: str, user: str) -> str:
    """A signed token (JWT, HS256) for an hour, as InfluxDB 1 takes them."""

    def encoded(part: bytes) -> str:
        return base64.urlsafe_b64encode(part).rstrip(b"=").decode()

    head = encoded(json.dumps({"alg": "HS256", "typ": "JWT"}).encode())
    body = encoded(json.dumps({"username": user, "exp": int(time.time()) + 3600}).encode())
    signature = hmac.new(secret.encode(), f"{head}.{body}".encode(), hashlib.sha256).digest()
    return f"{head}.{body}.{encoded(signature)}"


@pytest.fixture(scope="module")
def influxdb_with_login(lab_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Host and port of a server that asks for a user or a token. The lab starts none, since its first user can only be made when it runs."""
    folder = tmp_path_factory.mktemp("influxdb")
    program = lab.LAB_DATABASES["influxdb"].sources[0].get() / "usr" / "bin" / "influxd"
    ports = []
    for _ in range(2):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            ports.append(free.getsockname()[1])
    address = f"127.0.0.1:{ports[0]}"
    (folder / "influxdb.conf").write_text(
        f'reporting-disabled = true\nbind-address = "127.0.0.1:{ports[1]}"\n[meta]\ndir = "{folder}/meta"\n[data]\ndir = "{folder}/data"\n'
        f'wal-dir = "{folder}/wal"\n[monitor]\nstore-enabled = false\n[http]\nbind-address = "{address}"\nauth-enabled = true\n'
        f'shared-secret = "{SECRET}"\n',
        encoding="utf-8",
    )
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen([program, "run", "-config", folder / "influxdb.conf"], stdout=log, stderr=log)
    try:

        def makes_its_user() -> bool:
            words = urlencode({"q": f"CREATE USER admin WITH PASSWORD '{PASSWORD}' WITH ALL PRIVILEGES"}).encode()
            try:
                with urlopen(f"http://{address}/query", data=words, timeout=5.0) as answer:
                    return answer.status == 200
            except OSError:
                return False

        assert wait_until(makes_its_user, timeout_s=20.0)
        yield address
    finally:
        server.terminate()
        server.wait(10.0)


@pytest.mark.parametrize(
    ("user", "password", "auth", "expected"),
    [
        ("admin", "wr0ng", "basic", "authorization failed"),
        ("", token("another-secret", "admin"), "bearer", "signature is invalid"),
        ("", token(SECRET, "nobody"), "bearer", "user not found"),
        ("", "no-token-at-all", "bearer", "token contains an invalid number of segments"),
    ],
)
def test_a_wrong_login_ends_with_the_servers_words_and_without_the_secret(
    cli: Cli, influxdb_with_login: str, tmp_path: Path, user: str, password: str, auth: str, expected: str
) -> None:
    url = f"influxdb://{user}:{password}@{influxdb_with_login}?auth={auth}"
    ended = cli("run", experiment(tmp_path, url, "by_sensor"), "--out", tmp_path / "out", "--no-open")
    words = " ".join(ended.err.split())
    assert ended.exit_code == 1, ended.err
    assert expected in words
    assert "give user and password in the URL" in words
    assert password not in words
    assert not (tmp_path / "out").exists()


def test_the_right_password_and_the_right_token_are_let_in(influxdb_with_login: str) -> None:
    for number, login in enumerate((f"admin:{PASSWORD}@", f":{token(SECRET, 'admin')}@")):
        auth = ("basic", "bearer")[number]
        target = _engine.Target(f"influxdb://{login}{influxdb_with_login}?auth={auth}&namespace=login_{auth}")
        target.create(json.dumps(POINTS), "", intent="create", owner=TEST_OWNER.to_json())
        assert target.count("t") == 0


def test_a_database_that_is_not_there_is_said_before_anything_is_written(
    cli: Cli, lab_servers: dict[str, lab.Instance], tmp_path: Path
) -> None:
    instance = lab_servers["postgresql"]
    (node,) = instance.nodes
    url = f"postgresql://sensorbench:{instance.password()}@{node.host}:{node.port}/nowhere"
    ended = cli("run", experiment(tmp_path, url, "natural"), "--out", tmp_path / "out", "--no-open")
    words = " ".join(ended.err.split())
    assert ended.exit_code == 1
    assert 'database "nowhere" does not exist; name a database that is there' in words
    assert instance.password() not in words
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("database", "field", "expected"),
    [
        ("victoriametrics", "sensor", "the server keeps numbers alone, and would store 0 for a text"),
        ("influxdb", "data", "the server has no type for bytes"),
    ],
)
def test_a_type_that_the_server_lacks_is_refused_with_file_line_and_key(
    cli: Cli, tmp_path: Path, database: str, field: str, expected: str
) -> None:
    (tmp_path / "own.toml").write_text(
        f'database = "{database}"\nsummary = "A field of a type that the server has not."\n[create.points.readings]\ntags = ["site"]\n'
        f'fields = ["{field}"]\n[load_query.readings]\nquery = "SELECT site, sensor, sensor::BLOB AS data, time FROM measurements"\n'
        '[operation.get_sensor_data]\nquery = "SELECT value FROM readings"\n',
        encoding="utf-8",
    )
    ended = cli("run", experiment(tmp_path, database, "own.toml"), "--out", tmp_path / "out", "--no-open")
    assert ended.exit_code == 2
    assert "own.toml, line 5, create.points.readings.fields" in " ".join(ended.err.split())
    assert expected in " ".join(ended.err.split())
    assert not (tmp_path / "out").exists()


def test_a_server_whose_memory_is_full_refuses_batches_and_the_load_says_so(cli: Cli, lab_home: Path, tmp_path: Path) -> None:
    """InfluxDB refuses points when those that are not on disk yet reach data.cache-max-memory-size. What it took before is counted."""
    spec = lab.ServerSpec("influxdb", name="full", settings={"data.cache-max-memory-size": "300000"})
    instance = lab.up(spec)
    target = _engine.Target(f"{lab.url_of(instance)}?namespace=loaded")
    target.create(json.dumps(POINTS), "", intent="create", owner=TEST_OWNER.to_json())
    times = pa.array([number * 1000 for number in range(ROWS)], pa.timestamp("us"))
    rows = pa.table({"sensor": ["a"] * ROWS, "time": times, "value": [float(number) for number in range(ROWS)]})
    load = target.load("t", rows.to_reader(max_chunksize=1000))
    assert load.wait(60.0)
    with pytest.raises(_engine.DataError, match=r"cache-max-memory-size exceeded.*rows are in is unknown"):
        load.result()
    # What was acknowledged is there; of the refused batch the driver says nothing, and nothing is.
    assert 0 < target.count("t") == load.rows < ROWS
    out = tmp_path / "out"
    ended = cli("run", experiment(tmp_path, "lab:full", "by_sensor", scale=0.1), "--out", out, "--no-open")
    assert ended.exit_code == 1
    assert "cache-max-memory-size exceeded" in " ".join(ended.err.split())
    assert json.loads((out / "manifest.json").read_text(encoding="utf-8"))["status"] == "failed"
    lab.down("full")
