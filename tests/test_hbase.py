"""HBase in the lab: its settings, and region servers that come, go and are killed while rows are counted and none is lost."""

import socket
from pathlib import Path
from xml.etree import ElementTree

import psutil
import pytest

from sensorbench import lab
from sensorbench.errors import FailedError, UsageError
from sensorbench.lab.databases import hbase_admin
from sensorbench.lab.databases.hbase import Hbase
from sensorbench.lab.databases.hbase_settings import check, hbase_site, jvm_options
from sensorbench.lab.processes import processes_of, wait_until
from tests.conftest import Cli
from tests.thrift2 import Gateway

TABLE, REGIONS, ROWS = b"lab_test", 8, 2000


@pytest.fixture(scope="module")
def software() -> Path:
    source = Hbase().source(None)
    assert source is not None
    return source.get()


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("hbase.rootdir", "file:///tmp", "the lab sets it itself"),
        ("hbase.zookeeper.quorum", "localhost", "the lab sets it itself"),
        ("fs.file.impl", "org.apache.hadoop.fs.LocalFileSystem", "the lab sets it itself"),
        ("hbase.wal.provider", "a\nb", "a value of one line"),
        ("hbase.wal.provider", "", "a value of one line"),
        ("jvm.gateway_heap", "1", "a size such as 512M"),
        ("jvm.processors", "0", "a number from 1"),
    ],
)
def test_settings_that_cannot_be_are_refused(software: Path, key: str, value: str, expected: str) -> None:
    with pytest.raises(UsageError, match=f"--server-setting {key}.*{expected}"):
        check({key: value}, software)


def test_settings_are_known_by_the_servers_classes(software: Path) -> None:
    # The first is in no list of defaults.
    assert check({"hbase.wal.hsync": "true", "hbase.client.pause": "50", "jvm.heap": "1G"}, software) == {}
    assert list(check({"hbase.wal.hsink": "true", "hbase.client": "1", "jvm.stack": "1M"}, software)) == [
        "hbase.wal.hsink",
        "hbase.client",
        "jvm.stack",
    ]


def test_settings_are_written_as_given_and_replace_defaults() -> None:
    users = {"hbase.client.pause": "<7>", "hbase.coprocessor.user.region.classes": "Own", "jvm.heap": "1G"}
    file = ElementTree.fromstring(hbase_site({"hbase.rootdir": "file:///data"}, users))
    written = {element.findtext("name"): element.findtext("value") for element in file}
    assert (written["hbase.client.pause"], written["hbase.client.retries.number"]) == ("<7>", "10")
    assert written["hbase.rootdir"] == "file:///data"
    assert written["hbase.coprocessor.user.region.classes"] == "RegionRequests,Own"
    assert "jvm.heap" not in written
    assert jvm_options(users, "jvm.heap", [0, 2]) == ["-Xmx1G", "-XX:ActiveProcessorCount=2"]
    assert jvm_options({"jvm.processors": "3"}, "jvm.gateway_heap", [0]) == ["-Xmx256M", "-XX:ActiveProcessorCount=3"]


def test_the_log_tail_of_a_server_are_its_errors_with_causes(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(
        "2026-11-23 01:50:01,000 INFO node-1 [main] HRegionServer: starting\n"
        "2026-11-23 01:50:03,225 ERROR node-1 [main] HRegionServer: Failed construction RegionServer\n"
        "java.lang.RuntimeException: no provider\n\tat org.apache.hadoop.hbase.Some(Some.java:1)\n"
        "Caused by: java.lang.ClassNotFoundException: Class nope not found\n\t... 6 more\n"
        "2026-11-23 01:50:04,000 INFO node-1 [main] HRegionServer: Exiting\n"
    )
    assert Hbase().log_tail(log) == (
        "2026-11-23 01:50:03,225 ERROR node-1 [main] HRegionServer: Failed construction RegionServer"
        " | java.lang.RuntimeException: no provider | Caused by: java.lang.ClassNotFoundException: Class nope not found"
    )
    log.write_text("one\ntwo\n")
    assert Hbase().log_tail(log) == "one | two"


def test_unknown_settings_are_refused_before_anything_starts(cli: Cli, lab_home: Path) -> None:
    refused = cli("lab", "up", "hbase", "--name", "refused", "--server-setting", "hbase.wal.hsink=true")
    assert refused.exit_code == 2, refused.out
    assert "--server-setting hbase.wal.hsink: hbase 2.6.4 does not know it" in " ".join(refused.err.split())
    assert not (lab_home / "instances" / "refused").exists()


def test_every_process_listens_on_its_own_address_alone(lab_servers: dict[str, lab.Instance], cli: Cli) -> None:
    instance = lab_servers["hbase"]
    (node,), coordinator = instance.nodes, instance.coordinator
    assert coordinator is not None
    servers = processes_of(instance.folder)
    assert len(servers) == 3
    assert all(server.uids().real != 0 for server in servers)
    listening = {
        (connection.laddr.ip, connection.laddr.port)
        for server in servers
        for connection in server.net_connections()
        if connection.status == psutil.CONN_LISTEN
    }
    of_coordinator = {(coordinator.host, port) for port in (2181, 16000, 16100)}
    assert listening == {(node.host, node.port), (node.host, 16020), (node.host, 16040), *of_coordinator}
    status = cli("lab", "status", "hbase", "--json").json
    assert status["coordinator"]["pid"] != status["nodes"][0]["pid"]
    assert status["url"] == f"hbase://{node.host}:{node.port}?admin={coordinator.host}:16100"


def test_what_is_wrong_with_an_order_is_told(lab_servers: dict[str, lab.Instance]) -> None:
    instance = lab_servers["hbase"]
    assert hbase_admin.ask(instance, "describe")["settings"]["hbase.client.retries.number"] == "10"
    for order, expected in [
        ("flush nobody:nothing", "TableNotFoundException"),
        ("size nobody", "NamespaceNotFoundException"),
        ("size", "expected one word"),
        ("drop everything", "expected flush, compact"),
    ]:
        with pytest.raises(FailedError, match=f"hbase: {order.split(' ')[0]}: .*{expected}"):
            hbase_admin.ask(instance, *order.split(" "))


def row(number: int) -> bytes:
    """Rows in turn lie in regions of their own."""
    return b"%d-%06d" % (number % REGIONS, number)


def write(gateway: Gateway, numbers: range) -> None:
    gateway.call("putMultiple", TABLE, [{1: row(number), 2: [{1: b"v", 2: b"", 3: b"%d" % number}]} for number in numbers])


def found(gateway: Gateway, numbers: range) -> int:
    """How many rows are there, with their own values."""
    answers = gateway.call("getMultiple", TABLE, [{1: row(number)} for number in numbers])
    values = [[cell[3] for cell in answer[2]] for answer in answers]
    return sum(value == [b"%d" % number] for value, number in zip(values, numbers, strict=True))


def gateway_of(node: lab.Node) -> Gateway:
    return Gateway(f"{node.host}:{node.port}")


def answers(node: lab.Node) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((node.host, node.port)) == 0


def counted(instance: lab.Instance, name: str) -> list[int]:
    """A figure of each region server."""
    return [told[name] for told in hbase_admin.ask(instance, "status").values()]


@pytest.mark.cluster
def test_a_cluster_grows_and_shrinks_and_rows_outlive_its_servers(cli: Cli, lab_servers: dict[str, lab.Instance]) -> None:
    first = lab_servers["hbase"].nodes[0]
    with gateway_of(first) as gateway:
        borders = [b"%d" % number for number in range(1, REGIONS)]
        gateway.call("createTable", {1: {1: b"default", 2: TABLE}, 2: [{1: b"v"}]}, borders)
        (written_before,) = counted(lab_servers["hbase"], "write_requests")
        write(gateway, range(ROWS))
    assert counted(lab_servers["hbase"], "write_requests") == [written_before + ROWS]

    added = cli("lab", "add-node", "hbase", "--json")
    assert added.exit_code == 0, added.err
    grown = lab.find_instance("hbase")
    # The servers' own regions and those of the table.
    assert min(counted(grown, "regions")) >= REGIONS // 2
    read_before = counted(grown, "read_requests")
    with gateway_of(grown.nodes[1]) as gateway:
        assert found(gateway, range(ROWS)) == ROWS
    read = [after - before for before, after in zip(read_before, counted(grown, "read_requests"), strict=True)]
    assert sum(read) == ROWS
    assert min(read) > 0

    hbase_admin.ask(grown, "flush", "default:lab_test")
    assert hbase_admin.ask(grown, "size", "default")["default:lab_test"] > ROWS * 8
    with gateway_of(first) as gateway:
        write(gateway, range(ROWS, 2 * ROWS))
    hbase_admin.ask(grown, "flush", "default:lab_test")
    # Other tests may have left tables there.
    files_before, compactions_before = sum(counted(grown, "store_files")), sum(counted(grown, "compactions"))
    hbase_admin.ask(grown, "compact", "default:lab_test")
    assert sum(counted(grown, "store_files")) == files_before - REGIONS
    assert sum(counted(grown, "flushes")) >= 2 * REGIONS
    assert sum(counted(grown, "compactions")) == compactions_before + REGIONS
    assert sum(counted(grown, "compacted_bytes_in")) > sum(counted(grown, "compacted_bytes_out")) > 0

    lab.empty_caches("hbase")
    misses_before = sum(counted(grown, "block_cache_misses"))
    with gateway_of(first) as gateway:
        assert found(gateway, range(ROWS)) == ROWS
    assert sum(counted(grown, "block_cache_misses")) >= misses_before + REGIONS

    removed = cli("lab", "remove-node", "hbase", "--json")
    assert removed.exit_code == 0, removed.err
    left = lab.find_instance("hbase")
    assert [node.number for node in left.nodes] == [1]
    with gateway_of(first) as gateway:
        assert found(gateway, range(2 * ROWS)) == 2 * ROWS
        # These are in the log of writes alone when the server is killed.
        write(gateway, range(2 * ROWS, 3 * ROWS))

    assert left.coordinator is not None
    for node in left.all_processes:
        process = node.find()
        assert process is not None
        process.kill()
    # A gateway does not outlive its region server.
    assert wait_until(lambda: not answers(first), timeout_s=10.0)
    lab.restart("hbase")
    assert cli("lab", "status", "hbase", "--json").json["state"] == "running"
    with gateway_of(first) as gateway:
        assert found(gateway, range(3 * ROWS)) == 3 * ROWS
        gateway.call("disableTable", {1: b"default", 2: TABLE})
        gateway.call("deleteTable", {1: b"default", 2: TABLE})


@pytest.mark.cluster
def test_a_server_that_joins_gets_data_although_the_balancer_gives_it_none(cli: Cli, lab_home: Path) -> None:
    # What the balancer chooses is up to chance; one that tries nothing always leaves the new server without data.
    no_search = "hbase.master.balancer.stochastic.maxSteps=0"
    up = cli("lab", "up", "hbase", "--name", "few-regions", "--server-setting", no_search, "--json")
    assert up.exit_code == 0, up.err
    tables = (b"few_a", b"few_b")
    with gateway_of(lab.find_instance("few-regions").nodes[0]) as gateway:
        for table in tables:
            gateway.call("createTable", {1: {1: b"default", 2: table}, 2: [{1: b"v"}]}, [])
        added = cli("lab", "add-node", "few-regions", "--json")
        assert added.exit_code == 0, added.err
        grown = lab.find_instance("few-regions")
        before = counted(grown, "write_requests")
        for table in tables:
            gateway.call("putMultiple", table, [{1: row(number), 2: [{1: b"v", 2: b"", 3: b"1"}]} for number in range(10)])
    written = [after - already for already, after in zip(before, counted(grown, "write_requests"), strict=True)]
    assert written == [10, 10]
    assert cli("lab", "down", "few-regions").exit_code == 0
