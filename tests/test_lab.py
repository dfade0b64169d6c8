"""The lab: real servers from nothing, side by side, and what is left when it is killed. Servers start once and are shared."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from sensorbench import _engine, lab
from sensorbench.errors import EngineError
from sensorbench.lab.processes import processes_of
from tests.conftest import Cli
from tests.servers import LabServers


@pytest.mark.parametrize(
    "database",
    [
        "mariadb",
        "postgresql",
        "questdb",
        "redis",
        "redis+cluster",
        "ferretdb",
        "ferretdb+postgresql",
        "hbase",
        "influxdb",
        "influxdb2",
        "victoriametrics",
        "prometheus",
        "opentsdb",
        "clickhouse",
        "iotdb",
    ],
)
def test_the_lab_says_what_it_can_start(cli: Cli, database: str) -> None:
    (row,) = [row for row in cli("lab", "databases", "--json").json if row["database"] == database]
    # Tests run where real servers do: at least one version is there or can be had.
    assert any(version["here"] or version["missing"] is None for version in row["versions"])
    assert all(version["missing"] is None or "apt-get install" in version["missing"] for version in row["versions"])


def test_postgresql_comes_in_several_versions(cli: Cli) -> None:
    (row,) = [row for row in cli("lab", "databases", "--json").json if row["database"] == "postgresql"]
    assert {version["version"].split(".")[0] for version in row["versions"]} >= {"15", "16", "17", "18"}


@pytest.mark.parametrize("instance", ["mariadb", "postgresql", "questdb", "redis", "redis-cluster", "ferretdb-postgresql"])
def test_servers_answer_on_loopback_as_an_unprivileged_user_and_show_no_password(
    cli: Cli, lab_servers: dict[str, lab.Instance], instance: str
) -> None:
    server = lab_servers[instance]
    status = cli("lab", "status", instance, "--json").json
    assert status["state"] == "running"
    password = server.password()
    assert len(password) >= 20
    described = json.loads(_engine.Target(status["url"]).describe())
    assert described["version"]
    assert password not in json.dumps(status) + json.dumps(described) + cli("lab", "list").out
    assert server.credentials.stat().st_mode & 0o077 == 0
    assert len(processes_of(server.folder)) >= len(server.nodes)
    listening = []
    for process in processes_of(server.folder):
        assert process.uids().real != 0
        assert password not in " ".join(process.cmdline())
        listening += [connection.laddr.ip for connection in process.net_connections() if connection.status == psutil.CONN_LISTEN]
    assert len(listening) >= len(server.nodes)
    assert all(address.startswith("127.77.") for address in listening)


def test_a_wrong_password_is_one_clear_message(lab_servers: dict[str, lab.Instance]) -> None:
    for name, user in [("postgresql", "sensorbench"), ("questdb", "sensorbench"), ("mariadb", "sensorbench"), ("redis", "")]:
        node = lab_servers[name].nodes[0]
        target = _engine.Target(f"{name}://{user}:wrong-secret@{node.host}:{node.port}")
        with pytest.raises(EngineError) as refused:
            target.describe()
        assert f"{node.host}:{node.port}" in str(refused.value)
        assert "wrong-secret" not in str(refused.value)


def test_settings_reach_the_server(cli: Cli, lab_home: Path) -> None:
    ended = cli(
        "lab",
        "up",
        "redis",
        "--name",
        "small",
        "--server-setting",
        "maxmemory=123mb",
        "--server-setting",
        "appendonly=yes",
        "--json",
    )
    assert ended.exit_code == 0, ended.err
    settings = json.loads(_engine.Target(ended.json["url"]).describe())["settings"]
    assert (settings["maxmemory"], settings["appendonly"]) == (str(123 * 1024 * 1024), "yes")
    assert cli("lab", "down", "small").exit_code == 0


@pytest.mark.parametrize(
    ("database", "key"),
    [
        ("redis", "maxmemori"),
        ("postgresql", "shared_bufers"),
        ("mariadb", "innodb_bufer_pool_size"),
        ("questdb", "cairo.commit.mod"),
        ("ferretdb", "log-levl"),
        ("ferretdb+postgresql", "postgresql.shared_bufers"),
        ("influxdb", "data.wal-fsync-dely"),
        ("victoriametrics", "retentionPeriodd"),
        ("prometheus", "query.timeoutt"),
        ("opentsdb", "tsd.storage.fix_duplicate"),
        ("clickhouse", "max_threats"),
        ("iotdb", "wal_mod"),
        ("iotdb", "dn_metric_level"),
    ],
)
def test_a_setting_that_the_server_does_not_know_is_refused(database: str, key: str, cli: Cli, lab_home: Path) -> None:
    refused = cli("lab", "up", database, "--name", "wrong", "--server-setting", f"{key}=1")
    assert refused.exit_code == 2
    assert f"--server-setting {key}" in " ".join(refused.err.split())
    assert not (lab_home / "instances" / "wrong").exists()


@pytest.mark.parametrize(
    ("flag", "expected"),
    [
        ("retentionPeriod=soon", 'cannot parse duration "soon"'),
        ("dedup.minScrapeInterval=1", 'invalid value "1" for flag -dedup.minScrapeInterval'),
        ("memory.allowedBytes=1Q", 'invalid value "1Q"'),
        ("maxLabelsPerTimeseries=9.5", 'invalid value "9.5"'),
        ("storageDataPath=/tmp/mine", "the lab keeps to its own"),
    ],
)
def test_a_value_that_a_flag_does_not_take_is_refused_in_the_servers_words(
    cli: Cli, lab_home: Path, flag: str, expected: str
) -> None:
    refused = cli("lab", "up", "victoriametrics", "--name", "wrong", "--server-setting", flag)
    assert refused.exit_code == 2
    assert expected in " ".join(refused.err.split())
    assert not (lab_home / "instances" / "wrong").exists()
    good = lab.ServerSpec(
        "victoriametrics", settings={"retentionPeriod": "2y", "memory.allowedBytes": "100MB", "dryRun": "false"}
    )
    assert not lab.unknown_settings(good)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"query.timeout": "soon"}, 'not a valid duration string: "soon"'),
        ({"storage.tsdb.wal-compression": "maybe"}, "expected true or false"),
        ({"storage.tsdb.path": "/tmp/mine"}, "the lab keeps to its own"),
        ({"out_of_order_time_window": "a year"}, "expected a duration"),
        ({"storage.tsdb.min-block-duration": "2h"}, "late samples of 100y lie in more than 1,000 blocks of 2h"),
        (
            {"storage.tsdb.min-block-duration": "2h", "out_of_order_time_window": "84d"},
            "late samples of 84d lie in more than 1,000 blocks of 2h",
        ),
        ({"storage.tsdb.min-block-duration": "2h", "out_of_order_time_window": "83d"}, ""),
        ({"query.max-samples": "1000", "storage.tsdb.wal-compression": "false"}, ""),
    ],
)
def test_settings_of_prometheus_are_flags_and_a_window_that_is_not_too_long(settings: dict[str, str], expected: str) -> None:
    refused = lab.unknown_settings(lab.ServerSpec("prometheus", settings=settings))
    assert len(refused) == bool(expected)
    assert expected in "".join(refused.values())


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("up", "oracle"), "it can start mariadb, postgresql"),
        (("up", "postgresql", "--version", "9.0"), "expected one of 17.6, 18.0"),
        (("up", "redis", "--nodes", "3"), "redis is one server"),
        (("up", "redis+cluster", "--nodes", "2"), "needs at least 3 masters"),
        (("up", "redis", "--name", "No Name"), "expected small letters"),
        (("up", "redis", "--cpus", "4000"), "there is no CPU 4000"),
        (("up", "redis", "--memory", "lots"), "expected a size such as 512M"),
        (("up", "redis", "--server-setting", "x"), "expected key=value"),
        (("status", "nobody"), "the lab has no instance 'nobody'"),
        (("add-node", "redis"), "has no nodes to add"),
        (("down",), "name an instance, or give --all"),
    ],
)
def test_what_makes_no_sense_is_refused(cli: Cli, lab_servers: LabServers, arguments: tuple[str, ...], expected: str) -> None:
    lab_servers.start("redis")
    ended = cli("lab", *arguments)
    assert ended.exit_code == 2, ended.out
    assert expected in " ".join(ended.err.split())


def test_limits_are_kept_or_said_not_to_be(cli: Cli, lab_home: Path) -> None:
    cpu = sorted(os.sched_getaffinity(0))[-1]
    started = cli("lab", "up", "redis", "--name", "limited", "--cpus", str(cpu), "--memory", "300M", "--json").json
    (node,) = started["nodes"]
    limits = started["limits"]
    assert psutil.Process(node["pid"]).cpu_affinity() == [cpu]
    assert limits["cpus_by"] in {"affinity", "cgroup v2"}
    if limits["memory_by"] == "cgroup v1":
        assert (Path(limits["group"]) / "memory.limit_in_bytes").read_text().strip() == str(300 << 20)
        assert str(started["nodes"][0]["pid"]) in (Path(limits["group"]) / "cgroup.procs").read_text().split()
    elif limits["memory_by"] == "cgroup v2":
        assert (Path(limits["group"]) / "memory.max").read_text().strip() == str(300 << 20)
    else:
        assert "not available here" in limits["memory_by"]
    cli("lab", "down", "limited")


@pytest.mark.cluster
def test_a_cluster_grows_and_shrinks(cli: Cli, lab_servers: LabServers) -> None:
    lab_servers.start("redis-cluster")
    before = len(lab.find_instance("redis-cluster").nodes)
    added = cli("lab", "add-node", "redis-cluster", "--json")
    assert added.exit_code == 0, added.err
    grown = lab.find_instance("redis-cluster")
    assert len(grown.nodes) == before + 1
    assert json.loads(_engine.Target(lab.url_of(grown)).describe())["version"]
    removed = cli("lab", "remove-node", "redis-cluster", "--json")
    assert removed.exit_code == 0, removed.err
    assert removed.json["number"] == added.json["number"]
    assert len(lab.find_instance("redis-cluster").nodes) == before
    # Two at once; a client learns of those only that have slots.
    both = lab.add_nodes("redis-cluster", 2)
    told = json.loads(_engine.Target(lab.url_of(grown)).status())
    for node in both:
        assert [name for name in told if name.startswith(f"{node.host}.")]
        lab.remove_node("redis-cluster", node.number)
    assert len(lab.find_instance("redis-cluster").nodes) == before


def test_foreign_servers_and_a_second_lab_live_side_by_side(
    lab_servers: dict[str, lab.Instance], second_lab: dict[str, str]
) -> None:
    with socket.socket() as foreign:
        foreign.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        foreign.bind(("127.0.0.1", 6379))
        foreign.listen()
        started = subprocess.run(
            [sys.executable, "-m", "sensorbench", "lab", "up", "redis", "--json"],
            env=second_lab,
            capture_output=True,
            text=True,
            check=True,
        )
        second = json.loads(started.stdout)
        assert json.loads(_engine.Target(second["url"]).describe())["version"]
        assert second["nodes"][0]["address"] != f"{lab_servers['redis'].nodes[0].host}:{lab_servers['redis'].nodes[0].port}"
        # The foreign one was neither asked nor ended.
        foreign.settimeout(0.1)
        with pytest.raises(TimeoutError):
            foreign.accept()
    subprocess.run(
        [sys.executable, "-m", "sensorbench", "lab", "down", "--all", "--yes"], env=second_lab, capture_output=True, check=True
    )
    assert list((Path(second_lab["SENSORBENCH_LAB"]) / "instances").glob("*/")) == []
    assert lab.status(lab_servers["redis"])["state"] == "running"


HOLD = """
import sys, time
from sensorbench import lab
with lab.borrowed(lab.ServerSpec("redis", name=sys.argv[1], stays=False)) as instance:
    print(instance.nodes[0].process.pid, flush=True)
    time.sleep(600)
"""


def test_a_killed_lab_is_cleaned_by_the_next_call_and_a_parallel_one_is_not(cli: Cli, lab_home: Path) -> None:
    holders = [
        subprocess.Popen([sys.executable, "-c", HOLD, name], stdout=subprocess.PIPE, text=True) for name in ("killed", "parallel")
    ]
    servers = [psutil.Process(int(holder.stdout.readline())) for holder in holders if holder.stdout]
    holders[0].kill()
    holders[0].wait()
    names = [row["name"] for row in cli("lab", "list", "--json").json]
    assert "killed" not in names
    assert "parallel" in names
    assert not servers[0].is_running()
    assert servers[1].is_running()
    assert not (lab_home / "instances" / "killed").exists()
    holders[1].send_signal(signal.SIGINT)
    holders[1].wait()
    assert not servers[1].is_running()
    assert not (lab_home / "instances" / "parallel").exists()


@pytest.fixture
def second_lab() -> Iterator[dict[str, str]]:
    from tests.conftest import new_lab_home

    with new_lab_home() as home:
        yield {**os.environ, "SENSORBENCH_LAB": str(home)}


def test_a_server_that_is_gone_is_one_clear_message(cli: Cli, lab_home: Path, tmp_path: Path) -> None:
    started = cli("lab", "up", "redis", "--name", "mortal", "--json").json
    (node,) = started["nodes"]
    killer = threading.Timer(0.0, lambda: psutil.Process(node["pid"]).kill())
    killer.start()
    killer.join()
    time.sleep(0.1)
    ended = cli(
        "study",
        "run",
        "iot",
        "--target",
        "lab:mortal",
        "--dataset",
        "beijing-air-quality",
        "--scale",
        "0.01",
        "--out",
        tmp_path / "out",
        "--no-open",
    )
    assert ended.exit_code == 1
    assert node["address"] in " ".join(ended.err.split())
    states = {row["name"]: row["state"] for row in cli("lab", "list", "--json").json}
    assert states["mortal"] == "0 of 1 nodes are running"
    cli("lab", "down", "mortal")
