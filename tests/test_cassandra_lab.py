"""Cassandra in the lab: its settings, what its tools report, and a node that becomes two and one again."""

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from sensorbench import lab
from sensorbench.errors import FailedError, UsageError
from sensorbench.lab import addresses, jvm, software
from sensorbench.lab.databases import cassandra_nodetool as nodetool
from sensorbench.lab.databases.cassandra import Cassandra
from sensorbench.lab.databases.cassandra_settings import cassandra_yaml, check, first_tokens, jvm_options
from sensorbench.lab.helpers import compiled
from sensorbench.lab.processes import processes_of, wait_until
from sensorbench.lab.software import MavenClasspath
from tests.conftest import Cli

KNOWN = {
    "num_tokens": "num_tokens",
    "commitlog_sync": "commitlog_sync",
    "commitlog_total_space": "commitlog_total_space",
    "commitlog_total_space_in_mb": "commitlog_total_space",
    "memtable": "memtable",
    "listen_address": "listen_address",
    "seed_provider.parameters": "seed_provider.parameters",
}


@pytest.mark.parametrize(("nodes", "per_node"), [(1, 16), (3, 16), (4, 1), (5, 7)])
def test_fresh_nodes_have_equal_shares_of_the_ring(nodes: int, per_node: int) -> None:
    tokens = {token: node for node in range(nodes) for token in first_tokens(node, nodes, per_node)}
    assert len(tokens) == nodes * per_node
    assert min(tokens) > -(2**63)
    assert max(tokens) < 2**63
    ring = sorted(tokens)
    # A node owns what lies between the token before and its own.
    shares = dict.fromkeys(range(nodes), 0)
    for before, token in zip([ring[-1] - 2**64, *ring], ring, strict=False):
        shares[tokens[token]] += token - before
    assert max(shares.values()) - min(shares.values()) <= per_node
    assert sum(shares.values()) == 2**64


def test_settings_are_written_as_given_and_replace_defaults() -> None:
    settings = {"memtable": "{configurations: {default: {class_name: TrieMemtable}}}", "jvm.heap": "1G"}
    lines = cassandra_yaml({"rpc_address": "127.77.1.1"}, settings, KNOWN).splitlines()
    assert "memtable: {configurations: {default: {class_name: TrieMemtable}}}" in lines
    assert "rpc_address: 127.77.1.1" in lines
    assert "commitlog_sync_period: 10000ms" in lines
    assert not any("jvm" in line for line in lines)
    for key in ("commitlog_total_space", "commitlog_total_space_in_mb"):
        lines = cassandra_yaml({}, {key: "64"}, KNOWN).splitlines()
        assert [line for line in lines if line.startswith("commitlog_total")] == [f"{key}: 64"]
    # Cassandra refuses a period where there is none.
    assert "commitlog_sync_period" not in cassandra_yaml({}, {"commitlog_sync": "batch"}, KNOWN)


def test_heap_and_processors_are_options_of_the_virtual_machine() -> None:
    assert jvm_options({}, None) == ["-Xms512M", "-Xmx512M"]
    assert jvm_options({"jvm.heap": "2G"}, [0, 2]) == ["-Xms2G", "-Xmx2G", "-XX:ActiveProcessorCount=2"]
    assert jvm_options({"jvm.processors": "3"}, [0])[-1] == "-XX:ActiveProcessorCount=3"
    assert jvm_options({"jvm.sstable_compression": "false"}, None)[-1] == "-Dcassandra.sstable_compression_default=false"


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("listen_address", "0.0.0.0", "the lab sets it itself"),
        ("seed_provider.parameters", "[]", "the lab sets it itself"),
        ("memtable", "x\nrpc_address: 0.0.0.0", "a value of one line"),
        ("memtable", "", "a value of one line"),
        ("num_tokens", "many", "a number from 1 to 256"),
        ("jvm.heap", "1", "a size such as 512M"),
        ("jvm.heap", "1G -Dx=y", "a size such as 512M"),
        ("jvm.processors", "0", "a number from 1"),
        ("jvm.sstable_compression", "zstd", "expected true or false"),
    ],
)
def test_settings_that_cannot_be_are_refused(key: str, value: str, expected: str) -> None:
    with pytest.raises(UsageError, match=f"--server-setting {key}.*{expected}"):
        check({key: value}, KNOWN)


def test_unknown_settings_are_named() -> None:
    assert check({"num_tokens": "8", "jvm.heap": "1G", "memtable": "{}"}, KNOWN) == {}
    assert list(check({"memtible": "{}", "jvm.stack": "1M", "a: b": "c"}, KNOWN)) == ["memtible", "jvm.stack", "a: b"]


STATUS = """Datacenter: datacenter1
=======================
Status=Up/Down
|/ State=Normal/Leaving/Joining/Moving
--  Address       Load        Tokens  Owns (effective)  Host ID                               Rack
UN  127.77.120.1  114.57 KiB  16      41.3%             b6124870-dc8d-41d8-872e-0922a4286173  rack1
UJ  127.77.120.2  ?           16      ?                 51b3039b-8a27-4542-b7e1-ebc8881fc1d6  rack1
"""

DESCRIBED = """Keyspaces:
\tsystem_distributed -> Replication class: SimpleStrategy {replication_factor=3}
\tplain -> Replication class: SimpleStrategy {replication_factor=2}
\tfar -> Replication class: NetworkTopologyStrategy {datacenter1=3}
\tsystem -> Replication class: LocalStrategy {}
"""

STREAMS = """Mode: JOINING
Bootstrap 2c0b9d40
    /127.77.1.1
        Receiving 4 files, 3000000 bytes total. Already received 1 files (25.00%), 1500000 bytes total (50.00%)
            x.db 1/2 bytes (50%) received from idx:0/127.77.1.1
    /127.77.1.2
        Receiving 1 files, 1000000 bytes total. Already received 1 files (100.00%), 1000000 bytes total (100.00%)
"""


def test_what_nodetool_tells_is_read() -> None:
    ring = nodetool.ring(STATUS)
    assert [(host, node["state"], node["load"], node["owns"]) for host, node in ring.items()] == [
        ("127.77.120.1", "UN", "114.57 KiB", "41.3%"),
        ("127.77.120.2", "UJ", "?", "?"),
    ]
    assert nodetool.copies_of_users(DESCRIBED) == {"plain": 2, "far": 3}
    assert nodetool.streaming(STREAMS) == "joining, 2.5 of 4.0 MB streamed"
    assert nodetool.streaming("Mode: NORMAL\nNot sending any streams.\n") == "normal"
    assert nodetool.streaming("") == ""


def test_the_log_tail_of_a_server_are_its_error_with_causes(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(
        "INFO  [main] starting\nERROR [main] an earlier one\n"
        "ERROR [main] 2026-11-22 04:13:14 CassandraDaemon - Exception encountered during startup\n"
        "ConfigurationException: Invalid yaml\n\tat org.apache.cassandra.Config(Config.java:12)\n"
        "Caused by: ParserException: while parsing a flow mapping\n in 'reader', line 20, column 11:\n    memtable: {x\n             ^\n"
        "\t... 8 more\n"
    )
    words = Cassandra().log_tail(log)
    assert words.endswith(
        "startup | ConfigurationException: Invalid yaml | Caused by: ParserException: while parsing a flow mapping | memtable: {x"
    )
    assert "earlier" not in words
    log.write_text("INFO starting\nTerminating due to java.lang.OutOfMemoryError: Java heap space\n")
    assert "OutOfMemoryError" in Cassandra().log_tail(log)


def test_a_launcher_hands_its_arguments_on_as_they_are(tmp_path: Path) -> None:
    launcher = tmp_path / "with space"
    jvm.write_launcher(launcher, ["/usr/bin/printf", "%s\n", "$(echo bad) 'x'"])
    told = subprocess.run([launcher, "`echo worse`", "a b"], capture_output=True, text=True, check=True)
    assert told.stdout.splitlines() == ["$(echo bad) 'x'", "`echo worse`", "a b"]


def test_a_java_that_does_not_fit_is_said_to_be_missing() -> None:
    assert jvm.find_java((99,)) is None
    message = str(jvm.missing_java((99,)))
    assert "Java 99" in message
    assert "apt-get install openjdk-99" in message
    source = MavenClasspath("none", "1", "a:b:1", "", (99,))
    assert source.missing() == message
    with pytest.raises(FailedError, match="Java 99"):
        source.get()


def test_jars_with_another_checksum_are_not_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    poms = []

    def copied(command: list[str], cwd: Path) -> None:
        poms.append((cwd / "pom.xml").read_text(encoding="utf-8"))
        (tmp_path / "lib").mkdir(exist_ok=True)
        (tmp_path / "lib" / "a.jar").write_bytes(b"a")

    monkeypatch.setattr(software, "run_tool", copied)
    # By sha256sum: of "a.jar ca978112…", which is the name and the checksum of the one jar, whose content is "a".
    right = "acc288bf8083fc4b86cb3080d1665e469b6069f600bebb5596c1622d7b57abd2"
    MavenClasspath("a", "1", "g:a:1", right, (17,), ("h:b:2:shaded",)).unpack_into(tmp_path)
    assert "<groupId>g</groupId><artifactId>a</artifactId><version>1</version></dependency>" in poms[0]
    assert "<version>2</version><classifier>shaded</classifier><exclusions>" in poms[0]
    with pytest.raises(FailedError, match=f"1 jars is {right}, expected wrong"):
        MavenClasspath("a", "1", "g:a:1", "wrong", (17,)).unpack_into(tmp_path)


def test_helpers_are_compiled_again_when_they_change(tmp_path: Path) -> None:
    sources, jars = tmp_path / "sources", tmp_path / "jars"
    sources.mkdir()
    jars.mkdir()
    java = jvm.require_java((17, 11))
    source = sources / "Told.java"
    source.write_text('class Told { public static void main(String[] a) { System.out.print("one"); } }')
    first = compiled(sources, jars, java)
    assert compiled(sources, jars, java) == first
    source.write_text(source.read_text().replace("one", "two"))
    second = compiled(sources, jars, java)
    told = [
        subprocess.run([java.java, "-cp", classes, "Told"], capture_output=True, check=True).stdout for classes in (first, second)
    ]
    assert told == [b"one", b"two"]
    source.write_text("class Told { oops }")
    with pytest.raises(FailedError, match="javac"):
        compiled(sources, jars, java)
    assert sorted(jars.iterdir()) == sorted([first, second])


def test_ports_that_cannot_be_chosen_must_be_free() -> None:
    own = addresses._CLUSTERS[-1]
    taken = set(addresses._CLUSTERS) - {own}
    with socket.socket() as somebody:
        somebody.bind((addresses.address(own, 2), 0))
        somebody.listen()
        port = somebody.getsockname()[1]
        assert addresses.lease(1, 9042, (port,), taken)[0] == own
        with pytest.raises(FailedError, match=f"with free ports {port}"):
            addresses.lease(2, 9042, (port,), taken)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--server-setting", "concurent_reads=1"), "--server-setting concurent_reads: cassandra 5.0.6 does not know it"),
        (
            ("--version", "4.1.9", "--server-setting", "sai_options={}"),
            "--server-setting sai_options: cassandra 4.1.9 does not know it",
        ),
        (("--server-setting", "rpc_address=0.0.0.0"), "the lab sets it itself"),
        (("--replicas", "1"), "have no replicas of their own"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_starts(
    cli: Cli, lab_home: Path, arguments: tuple[str, ...], expected: str
) -> None:
    refused = cli("lab", "up", "cassandra", "--name", "refused", *arguments)
    assert refused.exit_code == 2, refused.out
    assert expected in " ".join(refused.err.split())
    assert not (lab_home / "instances" / "refused").exists()


def test_a_wrong_value_is_told_in_the_words_of_the_server(cli: Cli, lab_home: Path) -> None:
    failed = cli("lab", "up", "cassandra", "--name", "wrong", "--server-setting", "disk_failure_policy=never")
    assert failed.exit_code == 1
    assert "Unable to find enum value 'never'" in " ".join(failed.err.split())
    assert not (lab_home / "instances" / "wrong").exists()


@pytest.fixture(scope="module")
def cassandra(lab_home: Path) -> Iterator[lab.Instance]:
    """One node, with settings by names old and new."""
    settings = {"commitlog_total_space_in_mb": "256", "jvm.heap": "400M", "jvm.processors": "1"}
    with lab.borrowed(lab.ServerSpec("cassandra", name="ring", settings=settings)) as instance:
        yield instance


def test_a_node_listens_on_its_own_address_alone(cassandra: lab.Instance) -> None:
    (server,) = processes_of(cassandra.folder)
    assert server.uids().real != 0
    listening = {
        (connection.laddr.ip, connection.laddr.port)
        for connection in server.net_connections()
        if connection.status == psutil.CONN_LISTEN
    }
    (node,) = cassandra.nodes
    assert listening == {(node.host, port) for port in (7000, 7197, 7198, 7199, node.port)}
    assert "-XX:ActiveProcessorCount=1" in server.cmdline()
    assert "-Xmx400M" in server.cmdline()


def test_status_says_what_the_server_says(cli: Cli, cassandra: lab.Instance) -> None:
    (node,) = cli("lab", "status", cassandra.name, "--json").json["nodes"]
    assert node["server"]["state"] == "UN"
    assert node["server"]["owns"] == "100.0%"
    assert "UN" in cli("lab", "status", cassandra.name).out
    launcher, host = nodetool.launcher(cassandra), cassandra.nodes[0].host
    told = subprocess.run([launcher, "-h", host, "-p", "7199", "status"], capture_output=True, text=True, check=True)
    assert nodetool.ring(told.stdout)[host]["state"] == "UN"


@pytest.mark.cluster
def test_a_ring_grows_and_shrinks_and_a_dead_node_comes_back(cli: Cli, cassandra: lab.Instance) -> None:
    added = cli("lab", "add-node", cassandra.name, "--json")
    assert added.exit_code == 0, added.err
    assert states(cli, cassandra) == ["UN", "UN"]
    refused = cli("lab", "start-node", cassandra.name, "--node", "2")
    assert (refused.exit_code, "node 2 is running" in refused.err) == (2, True)

    psutil.Process(added.json["process"]["pid"]).kill()
    assert wait_until(lambda: states(cli, cassandra) == ["UN", "DN"], timeout_s=60)
    assert cli("lab", "status", cassandra.name, "--json").json["state"] == "1 of 2 nodes are running"
    started = cli("lab", "start-node", cassandra.name, "--json")
    assert started.exit_code == 0, started.err
    assert started.json["number"] == 2
    assert states(cli, cassandra) == ["UN", "UN"]

    removed = cli("lab", "remove-node", cassandra.name, "--json")
    assert removed.exit_code == 0, removed.err
    assert states(cli, cassandra) == ["UN"]
    assert not cassandra.node_folder(lab.Node.model_validate(removed.json)).exists()


def states(cli: Cli, instance: lab.Instance) -> list[str]:
    return [node["server"]["state"] for node in cli("lab", "status", instance.name, "--json").json["nodes"]]
