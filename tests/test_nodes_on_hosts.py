"""Nodes of a lab on hosts: where they are, what is done to them there, and what is known and left when a host is gone. No server is started: nodes
are processes that listen, and hosts are processes with labs of their own.
"""

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psutil
import pytest

from sensorbench import lab
from sensorbench.benchmarks.elasticity import faults
from sensorbench.benchmarks.elasticity.changes import Change, carry_out
from sensorbench.benchmarks.elasticity.clusters import LabNodes
from sensorbench.errors import FailedError, LostGeneratorError, LostHostError, UsageError
from sensorbench.lab import addresses, at_node, parts, placement
from sensorbench.lab import lab as starting
from sensorbench.lab.instance import Instance, find_instance
from sensorbench.lab.processes import ProcessId, wait_until
from sensorbench.lab.removal import remove_part
from sensorbench.runner.monitor import CLIENT, Watcher
from tests.conftest import Cli
from tests.fake_hosts import FakeRing, ProcessHost, forget_fake_ring, know_fake_ring, listens

# What is refused to tests that start servers, and these start none.
CHECK, NEXT_NODES = starting._check, starting._next_nodes
THREE = "three hosts"


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[ProcessHost]]:
    """Three hosts, which are kept from test to test."""
    homes = tmp_path_factory.mktemp("hosts")
    hosts = [ProcessHost(name, f"127.78.1.{number}", homes / name) for number, name in enumerate("abc", start=1)]
    yield hosts
    for host in hosts:
        host.close()


@pytest.fixture
def hosts(processes: list[ProcessHost], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[ProcessHost]]:
    """The three hosts, and a lab of the test's own that knows them; no instance is left on any of them."""
    home = tmp_path / "lab"
    (home / "instances").mkdir(parents=True)
    monkeypatch.setenv("SENSORBENCH_LAB", str(home))
    monkeypatch.setattr(starting, "_check", CHECK)
    monkeypatch.setattr(starting, "_next_nodes", NEXT_NODES)

    @contextmanager
    def reached(text: str) -> Iterator[placement.Reached]:
        if text == "nobody":
            raise FailedError("there is no scheduler")
        off = {"b": "it is off"} if text == "one is off" else {}
        found = [host for host in processes[: {"two hosts": 2}.get(text, 3)] if host.name not in off]
        yield placement.Reached(found, off)

    monkeypatch.setattr(placement, "_reached", reached)
    know_fake_ring()
    yield processes
    for host in processes:
        if host.process.poll() is not None:
            host.start()
    # What keeps tests without servers from having a lab was undone before.
    monkeypatch.setenv("SENSORBENCH_LAB", str(home))
    lab.down_all()
    lab.disconnect()
    forget_fake_ring()
    assert [folder for host in processes for folder in (host.home / "instances").glob("*/")] == []


def ring(nodes: int = 3, **others: object) -> Instance:
    return lab.up(lab.ServerSpec(FakeRing.name, name="ring", nodes=nodes, hosts=THREE, **others))  # type: ignore[arg-type]


def process_of(instance: Instance, number: int) -> psutil.Process:
    process = instance.node(number).find()
    assert process is not None
    return process


def on_disk(host: ProcessHost) -> list[str]:
    folder = host.home / "instances" / "ring"
    return sorted(path.name for path in folder.glob("node-*"))


def test_nodes_are_placed_round_robin_and_each_host_knows_its_own(hosts: list[ProcessHost]) -> None:
    ring(4)
    known = find_instance("ring")
    assert [node.placed_on for node in known.nodes] == ["a", "b", "c", "a"]
    assert [on_disk(host) for host in hosts] == [["node-1", "node-4"], ["node-2"], ["node-3"]]
    # Nothing of a node is on the machine that the lab is used on.
    assert not list(known.folder.glob("node-*"))
    # Each has the process that its host started, with the host's own folder.
    for node in known.nodes:
        host = next(host for host in hosts if host.name == node.placed_on)
        process = process_of(known, node.number)
        assert process.ppid() == host.process.pid
        assert Path(process.cwd()) == host.home / "instances" / "ring" / f"node-{node.number}"
        assert listens(node)
    parts_ = [Instance.model_validate_json((host.home / "instances" / "ring" / "instance.json").read_text()) for host in hosts]
    assert [part.state for part in parts_] == ["running"] * 3
    # A host knows all nodes, and the processes of its own alone.
    assert [[node.number for node in part.nodes if node.process] for part in parts_] == [[1, 4], [2], [3]]
    assert [part.owner.pid for part in parts_] == [host.process.pid for host in hosts]
    assert lab.sizes()["ring"] >= 4 * 5000
    assert sorted(lab.process_ids(known)) == sorted(process_of(known, node.number).pid for node in known.nodes)
    lab.down("ring")
    assert not any(listens(node) for node in known.nodes)
    assert [on_disk(host) for host in hosts] == [[], [], []]


def test_a_host_with_an_address_of_the_network_has_one_node_of_those_with_fixed_ports(
    hosts: list[ProcessHost], monkeypatch: pytest.MonkeyPatch
) -> None:
    # As on machines of their own; the addresses of these are on this one all the same.
    monkeypatch.setattr(addresses, "is_loopback", lambda _: False)
    instance = ring(3)
    assert [node.host for node in instance.nodes] == [host.address for host in hosts]
    with pytest.raises(UsageError, match=r"4 nodes of fake-ring need as many hosts.*there are 3"):
        lab.add_node("ring")
    assert len(find_instance("ring").nodes) == 3
    with pytest.raises(FailedError, match=r"127\.78\.1\.1:7901 is in use"), taken("127.78.1.1", 7901):
        lab.up(lab.ServerSpec(FakeRing.name, name="other", nodes=1, hosts=THREE))
    monkeypatch.setattr(FakeRing, "other_ports", ())
    added = lab.add_node("ring")
    assert (added.placed_on, added.host, added.port) == ("a", "127.78.1.1", FakeRing.port + 1)


@contextmanager
def taken(host: str, port: int) -> Iterator[None]:
    import socket

    with socket.create_server((host, port)):
        yield


def test_nodes_come_go_and_are_started_again_where_they_are(hosts: list[ProcessHost]) -> None:
    ring(2)
    assert on_disk(hosts[2]) == []
    added = lab.add_node("ring")
    assert (added.number, added.placed_on) == (3, "c")
    assert on_disk(hosts[2]) == ["node-3"]
    process_of(find_instance("ring"), 2).kill()
    assert wait_until(lambda: lab.status(find_instance("ring"))["state"] == "2 of 3 nodes are running", timeout_s=5.0)
    started = lab.start_node("ring")
    assert (started.number, started.placed_on) == (2, "b")
    assert process_of(find_instance("ring"), 2).ppid() == hosts[1].process.pid
    lab.stop_node("ring", 1)
    assert not listens(find_instance("ring").node(1))
    lab.start_node("ring", 1)
    removed = lab.remove_node("ring")
    assert removed.number == 3
    # With its last node, a host has nothing of the instance.
    assert not (hosts[2].home / "instances" / "ring").exists()
    lab.restart("ring")
    assert lab.status(find_instance("ring"))["state"] == "running"


def test_a_signal_reaches_the_process_on_its_host(hosts: list[ProcessHost]) -> None:
    ring(2)
    notes: list[str] = []
    stopped = process_of(find_instance("ring"), 2)

    def note(text: str) -> None:
        if "stands still" in text:
            # A signal that was sent takes effect when the process is next scheduled.
            assert wait_until(lambda: stopped.status() == psutil.STATUS_STOPPED, timeout_s=10.0, every_s=0.01)
        notes.append(f"{text} ({stopped.status()})")

    carry_out(Change("pause", away_s=0.2), LabNodes("ring"), note)
    assert "node 2 stands still (stopped)" in notes
    assert stopped.status() != psutil.STATUS_STOPPED
    carry_out(Change("kill", away_s=0.1), LabNodes("ring"), notes.append)
    assert not stopped.is_running() or stopped.status() == psutil.STATUS_ZOMBIE
    assert process_of(find_instance("ring"), 2).ppid() == hosts[1].process.pid
    assert notes[-2:] == ["node 2 is back", "change done"]


def test_a_fault_that_a_host_does_not_permit_is_said_before_anything_is_done(hosts: list[ProcessHost]) -> None:
    for kind in ("partition", "slow-network"):
        assert "192.0.2.7 is not a loopback address" in str(hosts[0].call(faults.why_not, kind, "192.0.2.7", "1mbit"))
    ring(1)
    lab.stop_node("ring", 1)
    with pytest.raises(FailedError, match="node 1 is not running"), faults.suffering("ring", 1, "slow-disk", "1M"):
        pass


def test_a_node_that_does_not_come_up_leaves_nothing_and_says_why(hosts: list[ProcessHost]) -> None:
    with pytest.raises(FailedError, match="node 1 on host a: the server ended while it started: there is no room for it"):
        ring(2, settings={"fails": "yes"})
    assert [on_disk(host) for host in hosts] == [[], [], []]
    assert lab.read_instances() == []


def test_what_another_lab_has_on_a_host_stays(hosts: list[ProcessHost]) -> None:
    """Also where it has the same name: the record says whose it is."""
    instance = ring(3)
    other = hosts[1].home / "instances" / "ring" / "instance.json"
    foreign = other.read_text().replace(instance.identity, "0" * 32)
    lab.down("ring")
    other.parent.mkdir()
    other.write_text(foreign)
    (other.parent / "node-2").mkdir()
    with pytest.raises(UsageError, match="host b: the lab there has an instance ring already"):
        ring(3)
    assert lab.read_instances() == []
    assert sorted(path.name for path in other.parent.iterdir()) == ["instance.json", "node-2"]
    assert on_disk(hosts[0]) == []
    # The same where it is there before a node is to join.
    ring(1)
    with pytest.raises(UsageError, match="host b: the lab there has an instance ring already"):
        lab.add_node("ring")
    assert [node.number for node in find_instance("ring").nodes] == [1]
    assert sorted(path.name for path in other.parent.iterdir()) == ["instance.json", "node-2"]
    hosts[1].call(remove_part, "ring", "0" * 32)


def test_what_a_lost_host_has_is_unknown_and_is_removed_when_it_is_back(cli: Cli, hosts: list[ProcessHost]) -> None:
    instance = ring(3)
    survivor = process_of(instance, 2)
    hosts[1].kill()
    # Its node continues, which nobody can know here.
    assert survivor.is_running()
    status = lab.status(instance)
    assert status["state"] == "2 of 3 nodes are running, 1 unknown"
    assert [node["runs"] for node in status["nodes"]] == [True, None, True]
    assert "host b is gone" in status["nodes"][1]["unknown"]
    shown = cli("lab", "status", "ring")
    assert re.search(r"2\W+b\W.*unknown", shown.out)
    assert "host b is gone" in shown.err
    for change in (lab.add_node, lab.remove_node, partial(lab.start_node, number=2)):
        with pytest.raises(LostHostError, match="host b is gone"):
            change("ring")
    assert len(find_instance("ring").nodes) == 3
    # The others are removed at once.
    ended = cli("lab", "down", "ring")
    assert ended.exit_code == 1
    printed = " ".join(ended.err.split())
    assert "what is on b cannot be removed, and may still run (node 2)" in printed
    assert "when the host is back: sensorbench lab down ring" in printed
    assert [on_disk(host) for host in hosts] == [[], ["node-2"], []]
    (row,) = cli("lab", "list", "--json").json
    assert (row["state"], [node["number"] for node in row["nodes"]]) == ("being removed", [2])
    # No command tries it again by itself, and each lists it.
    with pytest.raises(LostHostError, match="host b is gone"):
        lab.down_all()
    assert survivor.is_running()
    hosts[1].start()
    assert cli("lab", "down", "ring").exit_code == 0
    assert not survivor.is_running() or survivor.status() == psutil.STATUS_ZOMBIE
    assert lab.read_instances() == []


def test_a_host_that_is_lost_while_a_node_joins_keeps_it_in_the_record(
    hosts: list[ProcessHost], monkeypatch: pytest.MonkeyPatch
) -> None:
    ring(2)

    def lose(*_: object) -> None:
        hosts[2].kill()
        hosts[2].call(os.getpid)

    monkeypatch.setattr(FakeRing, "add_nodes", lose)
    with pytest.raises(LostHostError, match="host c is gone"):
        lab.add_node("ring")
    assert [node["runs"] for node in lab.status(find_instance("ring"))["nodes"]] == [True, True, None]


def test_what_belonged_to_a_host_process_that_is_gone_is_swept_before_anything_is_placed_there(
    hosts: list[ProcessHost], monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = ring(1, stays=False)
    left = process_of(instance, 1)
    record = instance.folder / "instance.json"
    hosts[0].kill()
    # The lab that started it is lost, too.
    record.unlink()
    hosts[0].start()
    assert left.is_running()
    lab.up(lab.ServerSpec(FakeRing.name, name="next", nodes=1, hosts=THREE))
    assert not left.is_running() or left.status() == psutil.STATUS_ZOMBIE
    assert not (hosts[0].home / "instances" / "ring").exists()
    # One that stays is not swept: its host may have been left on purpose.
    instance = find_instance("next")
    hosts[0].kill()
    hosts[0].start()
    hosts[0].call(lab.sweep)
    assert lab.status(instance)["state"] == "running"


def test_a_benchmark_that_ends_removes_its_own_on_all_hosts(hosts: list[ProcessHost]) -> None:
    with lab.borrowed(lab.ServerSpec(FakeRing.name, name="ring", nodes=1, hosts=THREE, stays=False)):
        lab.add_nodes("ring", 2)
        assert [on_disk(host) for host in hosts] == [["node-1"], ["node-2"], ["node-3"]]
    assert [on_disk(host) for host in hosts] == [[], [], []]
    with (
        pytest.raises(LostHostError, match="what is on c cannot be removed"),
        lab.borrowed(lab.ServerSpec(FakeRing.name, name="ring", nodes=3, hosts=THREE, stays=False)),
    ):
        hosts[2].kill()


def test_a_benchmark_goes_on_where_a_host_was_lost(hosts: list[ProcessHost]) -> None:
    spec = lab.ServerSpec(FakeRing.name, name="ring", nodes=3, hosts=THREE, stays=False)
    nodes: list[psutil.Process] = []

    def lose_the_last(instance: Instance) -> None:
        nodes.append(process_of(instance, 3))
        hosts[2].kill()
        raise LostGeneratorError("load generator 3 is gone")

    with pytest.raises(LostGeneratorError), lab.borrowed(spec) as instance:
        lose_the_last(instance)
    (left,) = nodes
    # Nobody could end its node, and its record says where that may still run.
    assert left.is_running()
    (known,) = lab.read_instances()
    assert (known.state, [node.number for node in known.nodes]) == ("being removed", [3])
    hosts[2].start()
    with lab.borrowed(spec) as again:
        assert not left.is_running() or left.status() == psutil.STATUS_ZOMBIE
        assert [known.identity for known in lab.read_instances()] == [again.identity]
        assert [on_disk(host) for host in hosts] == [["node-1"], ["node-2"], ["node-3"]]
    assert lab.read_instances() == []


class Quiet:
    """A target that says nothing of itself, at the address of a node."""

    def __init__(self, url: str) -> None:
        self.url = url

    def status(self) -> str:
        return "{}"


class Notes:
    """A run, as far as those who watch need it."""

    def __init__(self) -> None:
        self.marks: list[str] = []

    def annotate(self, name: str) -> None:
        self.marks.append(name)

    def now_ns(self) -> int:
        return 1


def test_processes_data_and_insight_come_from_the_hosts(hosts: list[ProcessHost]) -> None:
    instance = ring(3)
    watcher, run = Watcher(Quiet(lab.url_of(instance)), lab.server_processes(instance)), Notes()  # type: ignore[arg-type]
    with watcher.watching(run):  # type: ignore[arg-type]
        pass
    resources, status = watcher.take()
    assert {row.process for row in resources} == {CLIENT, "ring:1", "ring:2", "ring:3"}
    assert all(row.memory_bytes > 1_000_000 for row in resources)
    said = {row.name: row.value for row in status}
    for node in instance.nodes:
        assert said[f"{node.host}.listens"] == 1.0
        assert said[f"{node.host}.lab.disk_bytes"] >= 5000
        assert said[f"{node.host}.lab.memory_bytes"] > 1_000_000
    # Of a host that is lost nothing is made up, and the run has an event that says so, once.
    hosts[0].kill()
    watcher.read_once_more(asks=True)
    resources, status = watcher.take()
    assert {row.process for row in resources} == {CLIENT, "ring:2", "ring:3"}
    assert not [row for row in status if row.name.startswith(f"{instance.nodes[0].host}.")]
    assert [mark.partition(":")[0] for mark in run.marks] == ["host a is lost"]


def test_hosts_can_be_named_anew_for_an_instance(hosts: list[ProcessHost]) -> None:
    lab.up(lab.ServerSpec(FakeRing.name, name="ring", nodes=2, hosts="two hosts"))
    assert lab.add_node("ring", hosts=THREE).placed_on == "c"
    assert find_instance("ring").hosts == THREE
    with pytest.raises(UsageError, match="ring has nodes on c; name these hosts, too"):
        lab.add_node("ring", hosts="two hosts")


def test_hosts_that_cannot_be_reached_keep_nobody_from_the_others(hosts: list[ProcessHost]) -> None:
    instance = ring(3)
    for text, known, why in (
        ("nobody", [None, None, None], "there is no scheduler"),
        ("one is off", [True, None, True], "it is off"),
    ):
        status = lab.status(instance.model_copy(update={"hosts": text}))
        assert [node["runs"] for node in status["nodes"]] == known
        assert status["nodes"][1]["unknown"] == f"host b cannot be reached: {why}"
    with pytest.raises(FailedError, match="--hosts one is off: host b cannot be reached: it is off"):
        lab.up(lab.ServerSpec(FakeRing.name, name="other", nodes=1, hosts="one is off"))
    instance.model_copy(update={"hosts": "one is off"}).write()
    with pytest.raises(LostHostError, match="what is on b cannot be removed"):
        lab.down("ring")
    assert [on_disk(host) for host in hosts] == [[], ["node-2"], []]
    # It is on again.
    find_instance("ring").model_copy(update={"hosts": THREE}).write()
    lab.down("ring")


def test_a_file_of_hosts_is_found_from_every_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("hosts.toml").touch()
    assert placement.absolute("hosts.toml") == str(tmp_path / "hosts.toml")
    assert placement.absolute("local:3") == "local:3"


def test_a_guard_removes_a_part_whose_owner_is_not_heard_of(hosts: list[ProcessHost]) -> None:
    instance = ring(1)
    process = process_of(instance, 1)
    hosts[0].keep(parts.Guard, "ring", "another").close()
    assert process.is_running()
    hosts[0].keep(parts.Guard, "ring", instance.identity).close()
    assert on_disk(hosts[0]) == []
    assert not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (
            lab.ServerSpec("hbase", hosts=THREE),
            "starts hbase on this machine alone; expected one of redis, redis.cluster, cassandra",
        ),
        (lab.ServerSpec(FakeRing.name, hosts=THREE, cpus=[0]), "--cpus names CPUs of this machine"),
        (lab.ServerSpec(FakeRing.name, hosts=THREE, beside="other"), "share addresses or data"),
    ],
)
def test_what_hosts_cannot_have_is_refused(hosts: list[ProcessHost], spec: lab.ServerSpec, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        lab.up(spec)
    assert lab.read_instances() == []


def test_a_process_is_ended_by_its_number_and_start_time_alone(hosts: list[ProcessHost]) -> None:
    """Another process with the number of a node, as there is on another machine, is none of the lab's."""
    own = ProcessId.this()
    stranger = own.model_copy(update={"started": own.started - 1.0})
    assert hosts[0].call(at_node.send_signal, stranger, signal.SIGKILL) is False
    hosts[0].call(at_node.end, stranger, FakeRing.name, 1.0)
    assert hosts[0].call(placement.is_running, own) is True
