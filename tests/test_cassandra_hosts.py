"""A ring of Cassandra on three hosts: it grows, loses a node and a host, and leaves nothing."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest

from sensorbench import _engine, lab
from sensorbench.lab import placement
from sensorbench.lab.instance import find_instance
from sensorbench.lab.processes import INSTANCE_VARIABLE, wait_until
from tests.conftest import Cli, new_lab_home
from tests.fake_hosts import ProcessHost

pytestmark = pytest.mark.cluster


@pytest.fixture
def hosts(lab_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[ProcessHost]]:
    """Three processes, each with a lab of its own, in which nothing is left."""
    with ExitStack() as homes:
        found = [
            ProcessHost(name, f"127.78.2.{number}", homes.enter_context(new_lab_home()))
            for number, name in enumerate("abc", start=1)
        ]

        @contextmanager
        def reached(_: str) -> Iterator[placement.Reached]:
            yield placement.Reached(found)

        monkeypatch.setattr(placement, "_reached", reached)
        yield found
        lab.disconnect()
        for host in found:
            host.close()
            assert list((host.home / "instances").glob("*/")) == []
            assert servers_of(host.home) == []


def servers_of(home: Path) -> list[int]:
    """Processes that were started by the lab of a host."""
    found = []
    for process in psutil.process_iter():
        try:
            instance = process.environ().get(INSTANCE_VARIABLE, "")
        except psutil.Error:
            continue
        if instance.startswith(str(home)):
            found.append(process.pid)
    return found


def ring_by(cli: Cli) -> dict[int, dict[str, str]]:
    """What the nodes say of one another, by number; a node on a lost host is one of them all the same."""
    return {node["number"]: node.get("server", {}) for node in cli("lab", "status", "ring", "--json").json["nodes"]}


def test_a_ring_on_three_hosts_grows_loses_a_node_and_a_host_and_leaves_nothing(cli: Cli, hosts: list[ProcessHost]) -> None:
    try:
        started = cli(
            "lab", "up", "cassandra", "--name", "ring", "--nodes", "2", "--hosts", "three", "--server-setting", "jvm.heap=400M"
        )
        assert started.exit_code == 0, started.err
        assert [node.placed_on for node in find_instance("ring").nodes] == ["a", "b"]
        added = cli("lab", "add-node", "ring", "--json")
        assert added.exit_code == 0, added.err
        assert (added.json["number"], added.json["placed_on"]) == (3, "c")
        assert [len(servers_of(host.home)) for host in hosts] == [1, 1, 1]
        assert {said["state"] for said in ring_by(cli).values()} == {"UN"}
        instance = find_instance("ring")
        described = json.loads(_engine.Target(lab.url_of(instance)).describe())
        assert described["version"].startswith("5.")
        said = lab.insight(instance, instance.node(3))
        assert said["lab.disk_bytes"] > 10_000
        assert said["jmx.StorageService.Tokens"] == 16.0

        # A node is killed: the others notice, and it is started again on its host with its data.
        process = instance.node(3).find()
        assert process is not None
        process.kill()
        assert wait_until(lambda: lab.knows_is_down("ring", 3), timeout_s=60.0, every_s=0.5)
        back = cli("lab", "start-node", "ring", "--json")
        assert back.exit_code == 0, back.err
        assert (back.json["number"], back.json["placed_on"]) == (3, "c")
        assert {said["state"] for said in ring_by(cli).values()} == {"UN"}

        # A host's process is killed. Its node continues, as the others see; what the lab cannot know, it does not say.
        hosts[1].kill()
        shown = cli("lab", "status", "ring", "--json").json
        assert shown["state"] == "2 of 3 nodes are running, 1 unknown"
        assert "host b is gone" in shown["nodes"][1]["unknown"]
        assert ring_by(cli)[2]["state"] == "UN"
        refused = cli("lab", "add-node", "ring")
        assert (refused.exit_code, len(find_instance("ring").nodes)) == (1, 3)
        assert "host b is gone" in refused.err
        ended = cli("lab", "down", "ring")
        assert ended.exit_code == 1
        assert "what is on b cannot be removed, and may still run (node 2)" in " ".join(ended.err.split())
        assert [len(servers_of(host.home)) for host in hosts] == [0, 1, 0]
    finally:
        for host in hosts:
            if host.process.poll() is not None:
                host.start()
        ended = cli("lab", "down", "ring")
    assert ended.exit_code == 0, ended.err
    assert [row["name"] for row in cli("lab", "list", "--json").json] == []
