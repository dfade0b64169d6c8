"""Redis, and Redis Cluster."""

import contextlib
import json
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from sensorbench.errors import FailedError
from sensorbench.lab.database import LabCluster, LabDatabase, Place, Snapshot, with_credentials
from sensorbench.lab.databases.redis_pipe import PACKAGES, Pipe, libraries, program
from sensorbench.lab.instance import USER, Instance, Node
from sensorbench.lab.processes import TOOL_TIMEOUT_S, call, wait_until
from sensorbench.lab.software import DebianPackages, Installed
from sensorbench.lab.state_dirs import ServerUser

_SOURCES = (
    DebianPackages("redis", "debian", PACKAGES),
    Installed("redis", "installed", "redis-server", "redis-server"),
)
# Nothing is written to disk unless it is asked for: --server-setting appendonly=yes, --server-setting "save=60 1000".
_DEFAULTS = {"save": "", "appendonly": "no", "protected-mode": "yes"}
_NODE_TIMEOUT_MS = "3000"
# Some GB at the rate of a slow disk.
_SAVED_WITHIN_S = 3600.0
_SAVE_US = re.compile(r"cmdstat_save:calls=\d+,usec=(\d+)")


class Redis(LabDatabase):
    """Redis, one server."""

    name = "redis"
    summary = "Redis, one server, nothing on disk unless an option says so"
    port = 6379
    sources = _SOURCES
    runs_on_hosts = True
    load_tools = (Pipe(),)

    memory_rule = "80% for data (maxmemory), and no eviction: a write that does not fit is refused; the rest is for buffers and fragmentation"

    def memory_settings(self, memory_bytes: int) -> dict[str, str]:
        """The most that data may take."""
        return {"maxmemory": str(memory_bytes * 4 // 5), "maxmemory-policy": "noeviction"}

    def environment(self, software: Path) -> dict[str, str]:
        """Unpacked packages bring their libraries along."""
        return libraries(software)

    def unknown_settings(self, software: Path, user: ServerUser, settings: Mapping[str, str]) -> dict[str, str]:
        """The server lists nothing; it is tried with each setting alone, on no port at all, until it says what is wrong."""
        problems = {}
        for key, value in settings.items():
            tried = call(
                [program(software, "redis-server"), "--port", "0", "--save", "", f"--{key}", value, "--include", "/nowhere"],
                folder=Path("/"),
                user=user,
                environment=self.environment(software),
            )
            lines = (tried.stdout + tried.stderr).strip().splitlines()
            if any(f">>> '{key}" in line or f">>> '{key.lower()}" in line for line in lines):
                problems[key] = lines[-1]
        return problems

    def set_up(self, place: Place) -> None:
        """An empty folder."""
        place.data.mkdir(mode=0o700)
        place.user.owns(place.data)

    def command(self, place: Place) -> list[str | Path]:
        """The server with a file of settings, because a command line would show the password."""
        password = place.instance.password()
        settings = {
            **_DEFAULTS,
            "bind": place.node.host,
            "port": str(place.node.port),
            "dir": str(place.data),
            "requirepass": password,
            "masterauth": password,
            **self._cluster_settings(place.node),
            **place.instance.settings,
        }
        lines = [f"{key} {json.dumps(value)}" for key, value in settings.items()]
        lines.append(f"user {USER} on >{password} ~* &* +@all")
        return [program(place.software, "redis-server"), place.write_secret("redis.conf", "\n".join(lines) + "\n")]

    def _cluster_settings(self, node: Node) -> dict[str, str]:
        return {}

    def snapshot(self, instance: Instance, node: Node, software: Path, user: ServerUser) -> Snapshot | None:
        """SAVE, which holds the server up until everything is in its file. It goes again unless there was one: the server would read it when it
        is started again.
        """
        file = instance.data_folder(node) / instance.settings.get("dbfilename", "dump.rdb")
        was_there = file.exists()
        before_us = self._saving_us(instance, node, software, user)
        said = self._ask(instance, node, software, user, "SAVE", timeout_s=_SAVED_WITHIN_S)
        if said != "OK":
            raise FailedError(f"{instance.name}: SAVE failed: {said}")
        taken = Snapshot(file.stat().st_size, (self._saving_us(instance, node, software, user) - before_us) / 1e6)
        if not was_there:
            file.unlink()
        return taken

    def _saving_us(self, instance: Instance, node: Node, software: Path, user: ServerUser) -> int:
        """How long SAVE has taken so far by the server's own count: redis-cli takes longer to start than a small SAVE."""
        found = _SAVE_US.search(self._ask(instance, node, software, user, "INFO", "commandstats"))
        return int(found[1]) if found else 0

    def _ask(
        self, instance: Instance, node: Node, software: Path, user: ServerUser, *words: str, timeout_s: float = TOOL_TIMEOUT_S
    ) -> str:
        return self._cli(instance, software, user, "-h", node.host, "-p", str(node.port), *words, timeout_s=timeout_s).strip()

    def _cli(self, instance: Instance, software: Path, user: ServerUser, *words: str, timeout_s: float = TOOL_TIMEOUT_S) -> str:
        # The password goes by the environment: a command line would show it.
        environment = {**self.environment(software), "REDISCLI_AUTH": instance.password()}
        command: list[str | Path] = [program(software, "redis-cli"), *words]
        ended = call(command, folder=Path("/"), user=user, environment=environment, timeout_s=timeout_s)
        if ended.returncode != 0:
            raise FailedError(f"redis-cli {' '.join(words[:2])} failed: {(ended.stderr.strip() or ended.stdout.strip())[-300:]}")
        return ended.stdout

    def url(self, instance: Instance) -> str:
        """The server; drivers keep to a key prefix of their own."""
        node = instance.nodes[0]
        return with_credentials("redis", instance, f"{node.host}:{node.port}")


class RedisCluster(Redis, LabCluster):
    """Redis Cluster: masters that share the slots, and replicas as asked."""

    name = "redis+cluster"
    summary = "Redis Cluster, masters and replicas"
    at_once_costs = "nothing: masters join without slots, and slots are then moved once instead of once for each of them"
    nodes = 3
    has_replicas = True

    def _cluster_settings(self, node: Node) -> dict[str, str]:
        return {
            "cluster-enabled": "yes",
            "cluster-config-file": "nodes.conf",
            "cluster-node-timeout": _NODE_TIMEOUT_MS,
            # Nodes would take 127.0.0.1, from which loopback connections come, for the others' address.
            "cluster-announce-ip": node.host,
            "bind-source-addr": node.host,
        }

    def join(self, instance: Instance, software: Path, user: ServerUser) -> None:
        """Shares the slots out among the masters and waits until all nodes know it."""
        self._cli(instance, software, user, "--cluster", "create", *map(_place, instance.nodes),
                  "--cluster-replicas", str(instance.replicas), "--cluster-yes")  # fmt: skip
        self._wait_until_agreed(instance, software, user)

    def add_nodes(self, instance: Instance, nodes: Sequence[Node], software: Path, user: ServerUser) -> None:
        """New masters, and an equal share of the slots for each."""
        first, grown = _place(instance.nodes[0]), instance
        for node in nodes:
            self._cli(grown, software, user, "--cluster", "add-node", _place(node), first)
            grown = grown.model_copy(update={"nodes": [*grown.nodes, node]})
            self._wait_until_agreed(grown, software, user)
        self._cli(grown, software, user, "--cluster", "rebalance", first, "--cluster-use-empty-masters")
        self._wait_until_agreed(grown, software, user)

    def remove_node(self, instance: Instance, node: Node, software: Path, user: ServerUser) -> None:
        """Moves the node's slots to the others, then forgets it."""
        others = [other for other in instance.nodes if other.number != node.number]
        first, node_id = _place(others[0]), self._ask(instance, node, software, user, "CLUSTER", "MYID")
        self._cli(instance, software, user, "--cluster", "rebalance", first, "--cluster-weight", f"{node_id}=0")
        self._cli(instance, software, user, "--cluster", "del-node", first, node_id)

    def knows_is_down(self, instance: Instance, node: Node, software: Path, user: ServerUser) -> bool:
        """It is marked as failed by another master."""
        other = next(candidate for candidate in instance.nodes if candidate.number != node.number)
        with contextlib.suppress(FailedError):
            lines = self._ask(instance, other, software, user, "CLUSTER", "NODES").splitlines()
            return any(f" {node.host}:{node.port}@" in line and "fail" in line.split()[2].split(",") for line in lines)
        return False

    def _wait_until_agreed(self, instance: Instance, software: Path, user: ServerUser) -> None:
        def is_agreed() -> bool:
            lines = [self._ask(instance, node, software, user, "CLUSTER", "INFO") for node in instance.nodes]
            nodes = f"cluster_known_nodes:{len(instance.nodes)}"
            return all("cluster_state:ok" in line and nodes in line for line in lines)

        if not wait_until(is_agreed, timeout_s=30.0):
            raise FailedError(f"the nodes of {instance.name} do not agree on their slots after 30 s; see {instance.shown_log}")
        # Replicas are distinguished only when the next gossip has come round.
        time.sleep(0.2 if instance.replicas == 0 else 1.0)

    def url(self, instance: Instance) -> str:
        """All nodes, so that the cluster is found while one of them is down."""
        return with_credentials("redis+cluster", instance, ",".join(map(_place, instance.nodes)))

    def node_url(self, instance: Instance, node: Node) -> str:
        """A node answers as a server before it belongs to a cluster."""
        return with_credentials("redis", instance, _place(node))


def _place(node: Node) -> str:
    return f"{node.host}:{node.port}"
