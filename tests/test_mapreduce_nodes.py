"""The MapReduce study on a database that grows with Spark: its nodes, what they hold, and where map tasks run."""

import json
import socket
from pathlib import Path

import duckdb
import jsonschema
import pytest

from sensorbench import lab
from sensorbench.benchmarks.mapreduce.words import BLANKS, word_of
from sensorbench.errors import FailedError
from sensorbench.lab import addresses
from sensorbench.results.insight import said_now
from sensorbench.results.json_schemas import json_schemas
from sensorbench.spark import driver, find_master, hdfs
from sensorbench.spark.connector import files_on_hdfs
from sensorbench.spark.hdfs import HeldBlocks
from sensorbench.spark.inverted_index import InvertedIndex, tally_jar
from tests.conftest import Cli


@pytest.mark.cluster
def test_cassandra_and_spark_grow_together_from_one_node_to_two(cli: Cli, lab_home: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ("--dataset", "wikipedia", "--word", "the", "--nodes", "1,2", "--repetitions", "1", "--no-open")
    ended = cli("study", "run", "mapreduce", "--target", "cassandra", *options, "--out", out)
    assert ended.exit_code == 0, ended.err
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    jsonschema.validate(summary, json_schemas()["mapreduce-summary"])
    found = summary["result"]
    assert summary["answers_equal"] is True
    assert [(cell["workers"], cell["nodes"]) for cell in found["cells"]] == [(1, 1), (2, 2)]
    one, two = found["placements"]
    assert (one["how"], two["how"], len(one["shares"]), len(two["shares"])) == ("started", "grown", 1, 2)
    (whole,) = one["shares"].values()
    held = [share["bytes"] for share in two["shares"].values()]
    # Each has its half of the ring, and what has moved is gone from where it was.
    assert {share["parts"] for share in two["shares"].values()} == {whole["parts"]}
    assert all(0.3 < size / sum(held) < 0.7 for size in held), held
    assert sum(held) < 1.2 * whole["bytes"]
    for cell in found["cells"]:
        first, _ = cell["words"][0]["jobs"]
        assert first["read_rows"] == found["dataset"]["articles"]
        assert 1 <= first["local_tasks"] <= first["map_tasks"]
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Where the data were" in page
    assert "2 workers, 2 nodes" in page
    assert not [instance for instance in lab.read_instances() if not instance.stays]


@pytest.mark.cluster
def test_nodes_of_cassandra_are_on_hosts_and_join_there(cli: Cli, lab_home: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ("--dataset", "wikipedia", "--word", "the", "--nodes", "1,2", "--repetitions", "1", "--no-open")
    ended = cli("study", "run", "mapreduce", "--target", "cassandra", "--hosts", "local:2", *options, "--out", out)
    assert ended.exit_code == 0, ended.err
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    result = summary["result"]
    assert result["hosts"] == ["local-1", "local-2"]
    assert [server["hosts"] for server in summary["environment"]["servers"].values()] == [["local-1"]], "where the first node is"
    assert [(cell["workers"], cell["nodes"], cell["equal"]) for cell in result["cells"]] == [(1, 1, True), (2, 2, True)]
    # Spark's workers are on this machine, so that no task runs where its data are.
    assert [cell["words"][0]["jobs"][0]["local_tasks"] for cell in result["cells"]] == [0, 0]
    assert [len(placement["shares"]) for placement in result["placements"]] == [1, 2]
    assert "local-1, local-2" in (out / "report.html").read_text(encoding="utf-8")
    other_hosts = cli("study", "run", "mapreduce", "--target", "cassandra", *options, "--resume", "--out", out)
    assert other_hosts.exit_code == 2
    assert "has other hosts; give the same options" in other_hosts.err


@pytest.mark.cluster
def test_files_lie_on_all_nodes_of_hdfs_alike_and_the_job_finds_them_there(lab_home: Path, tmp_path: Path) -> None:
    texts = {number: "the cat the" if number % 2 else "a dog" for number in range(1, 9)}
    for number in range(4):
        rows = ", ".join(f"({id_}, '{text}')" for id_, text in texts.items() if id_ % 4 == number)
        file = tmp_path / f"{number}.parquet"
        duckdb.execute(f"COPY (SELECT id::BIGINT AS id, text FROM (VALUES {rows}) AS of(id, text)) TO '{file}' (FORMAT parquet)")
    files = sorted(tmp_path.glob("*.parquet"))
    with (
        lab.borrowed(lab.ServerSpec("hdfs", stays=False)) as started,
        driver(find_master("local[2]"), jars=[tally_jar()]) as spark,
    ):
        hdfs.put(started, "/mine/articles", files)
        (alone,) = hdfs.held(started, "/mine/articles").values()
        assert alone == HeldBlocks(4, sum(file.stat().st_size for file in files))
        lab.add_node(started.name)
        both = lab.find_instance(started.name)
        hdfs.put(both, "/mine/articles", files)
        assert [of.blocks for of in hdfs.held(both, "/mine/articles").values()] == [2, 2]
        place = files_on_hdfs(lab.url_of(both), "/mine")
        with spark.application("test", executors=2, settings=place.settings(splits="4")) as application:
            index = InvertedIndex(application.session, place, len(texts), 4, BLANKS)
            index.empty()
            first = index.first_job(word_of("THE"))
            index.second_job(word_of("THE"))
            assert (first.read.rows, first.stages.map_tasks) == (len(texts), 4)
            assert index.counts() == {1: 2, 3: 2, 5: 2, 7: 2}


def test_an_address_of_another_instance_is_shared_unless_a_port_is_taken() -> None:
    cluster, port = addresses.share(1, 2, (47078, 47079))
    assert (cluster, port) == (1, 47078)
    with socket.socket() as taken:
        taken.bind((addresses.address(1, 2), 47079))
        with pytest.raises(FailedError, match=r"127\.77\.1\.2:47079 is in use by another program"):
            addresses.share(1, 2, (47078, 47079))


def test_what_nodes_hold_now_is_known_by_their_addresses() -> None:
    status = {
        "10.0.0.1.jmx.Table.TotalDiskSpaceUsed": 5.0,
        "10.0.0.1.jmx.StorageService.Tokens": 16.0,
        "10.0.0.2.jmx.Table.TotalDiskSpaceUsed": 7.0,
        "10.0.0.2.unknown": 1.0,
    }
    assert said_now(status, "cassandra") == {
        "10.0.0.1": {"table_bytes": 5.0, "data_parts": 16.0},
        "10.0.0.2": {"table_bytes": 7.0},
    }
    assert said_now({"jmx.Table.TotalDiskSpaceUsed": 5.0}, "cassandra") == {"": {"table_bytes": 5.0}}
