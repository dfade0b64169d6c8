"""Sessions of Spark: on a cluster of the lab, on threads alone, and what is said when there is none."""

import importlib.util
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from sensorbench import lab
from sensorbench.errors import FailedError, UsageError
from sensorbench.spark import Application, Driver, Master, driver, find_master
from sensorbench.spark.session import session
from tests.conftest import Cli


@pytest.fixture(scope="module")
def cluster(lab_home: object) -> Iterator[lab.Instance]:
    instance = lab.up(lab.ServerSpec("spark", name="spark-two", nodes=2))
    yield instance
    lab.down(instance.name)


def listening(cluster: lab.Instance) -> set[str]:
    """The addresses at which this process' driver, the cluster and its executors can be reached."""
    servers = [psutil.Process(watched.process.pid) for watched in lab.server_processes(cluster).values()]
    roots = [psutil.Process(), *servers]
    return {
        connection.laddr.ip.removeprefix("::ffff:")
        for item in [each for root in roots for each in root.children(recursive=True)] + roots[1:]
        if item.status() != psutil.STATUS_ZOMBIE
        for connection in item.net_connections()
        if connection.status == psutil.CONN_LISTEN
    }


@pytest.mark.cluster
def test_applications_get_as_many_executors_as_they_ask_for_and_nothing_can_be_reached_from_outside(
    cluster: lab.Instance,
) -> None:
    password, before = cluster.password(), {child.pid for child in psutil.Process().children()}
    with driver(find_master(lab.url_of(cluster))) as spark_driver:
        for executors in (1, 2):
            with spark_driver.application("test", executors=executors) as application:
                assert application.executors == executors
                context = application.session.sparkContext
                assert context._jsc.sc().getExecutorMemoryStatus().size() - 1 == executors
                assert application.session.range(1000, numPartitions=4).groupBy().sum().collect()[0][0] == 499_500
                assert len(listening(cluster)) > executors
                assert all(address.startswith("127.") for address in listening(cluster))
                commands = [" ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])]
                assert not any(password in command for command in commands)
    assert {child.pid for child in psutil.Process().children()} == before


@pytest.mark.cluster
def test_a_cluster_with_too_few_workers_is_said_to_have_too_few(cluster: lab.Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[Master.__module__], "_EXECUTORS_WITHIN_S", 8.0)
    with (
        driver(find_master(f"lab:{cluster.name}")) as spark_driver,
        pytest.raises(FailedError, match=r"gave \d of 3 executors within 8 s"),
        spark_driver.application("test", executors=3),
    ):
        pass


@pytest.mark.cluster
def test_datasets_are_generated_on_a_cluster(cluster: lab.Instance, cli: Cli, tmp_path: Path) -> None:
    wanted = ("data", "generate", "sensor-timelines-100", "--scale", "0.009", "--json")
    spark = cli(*wanted, "--spark", f"lab:{cluster.name}", "--partitions", "9", "--out", tmp_path / "spark")
    assert spark.exit_code == 0, spark.err
    assert "7 files; 2 of 9 partitions have nothing to do" in spark.err
    assert spark.json == cli(*wanted, "--out", tmp_path / "local").json
    found = [cli("data", "checksum", tmp_path / name, "--json").json for name in ("spark", "local")]
    assert found[0] == found[1]
    assert found[0]["relations"]["measurements"]["rows"] == 60_000
    shown = cli("data", "checksum", "sensor-timelines-100", "--scale", "0.009")
    assert shown.out.splitlines()[-1] == f"{found[0]['checksum']}  sensor-timelines-100"


@pytest.mark.cluster
def test_executors_that_were_lost_are_told(cluster: lab.Instance) -> None:
    with driver(find_master(f"lab:{cluster.name}")) as spark_driver, spark_driver.application("test", executors=2) as application:
        spark_driver.check_none_was_lost(application)
        lab.stop_node(cluster.name, 2)
        assert application.session.range(1000, numPartitions=4).count() == 1000
        # The executor that is left may do all of it before Spark misses the other.
        give_up_s = time.monotonic() + 300.0
        while (lost := what_was_lost(spark_driver, application)) is None and time.monotonic() < give_up_s:
            time.sleep(0.1)
        assert lost is not None
        assert "1 of 2 executors were lost" in lost


def what_was_lost(driver: Driver, application: Application) -> str | None:
    try:
        driver.check_none_was_lost(application)
    except FailedError as error:
        return str(error)
    return None


@pytest.mark.cluster
def test_threads_need_no_cluster() -> None:
    with session(find_master("local[2]"), "test") as spark:
        assert spark.sparkContext.defaultParallelism == 2
        assert spark.range(10).count() == 10


@pytest.mark.parametrize("text", ["yarn", "spark://", "spark://host", "local[0]", "local[x]", "lab:none"])
def test_masters_that_make_no_sense_are_refused(text: str, lab_home: object) -> None:
    with pytest.raises(UsageError, match=r"expected spark://HOST:PORT|no instance"):
        find_master(text)


def test_a_master_that_does_not_answer_is_named() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"spark://127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(UsageError, match=f"--spark {url}: no master answers there"), driver(find_master(url)):
            pass


def test_without_the_extra_it_is_said_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "pyspark" else find(name))
    with pytest.raises(UsageError, match=r"uv pip install 'pyspark>=3\.5,<3\.6'"):
        find_master("local[2]")


@pytest.mark.cluster
def test_what_computes_is_no_target(cluster: lab.Instance, cli: Cli) -> None:
    ended = cli("study", "run", "iot", "--target", f"lab:{cluster.name}")
    assert ended.exit_code == 2
    assert f"use it as --spark lab:{cluster.name}" in ended.err
    refused = cli("lab", "up", "spark", "--server-setting", "spark.authenticate=false")
    assert refused.exit_code == 2
    assert "the lab sets it itself" in refused.err
