"""Cassandra, of one node or many."""

import contextlib
import re
import signal
import socket
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType

from sensorbench.errors import FailedError
from sensorbench.lab.database import KeptFiles, LabCluster, Place
from sensorbench.lab.databases import cassandra_insight
from sensorbench.lab.databases import cassandra_nodetool as nodetool
from sensorbench.lab.databases import cassandra_query_log as query_log
from sensorbench.lab.databases.cassandra_copy import Copy
from sensorbench.lab.databases.cassandra_settings import (
    TOKENS_PER_NODE,
    cassandra_yaml,
    check,
    first_tokens,
    heap_bytes,
    jvm_options,
)
from sensorbench.lab.helpers import class_path, compiled
from sensorbench.lab.instance import Instance, Node
from sensorbench.lab.jvm import require_java, write_launcher
from sensorbench.lab.placement import living, runs
from sensorbench.lab.processes import call, wait_until
from sensorbench.lab.software import MavenClasspath
from sensorbench.lab.state_dirs import ServerUser

_JAVA = (17, 11)
_ARTIFACT = "org.apache.cassandra:cassandra-all"
# The loader of SSTables asks the cluster for its tables with this driver, which 4.1 leaves to whoever calls it.
_DRIVER_OF_4 = "com.datastax.cassandra:cassandra-driver-core:3.11.0:shaded"
_HELPERS = Path(__file__).parent.parent / "java" / "cassandra"
_STORAGE_PORT = 7000
# A node that joins chooses its tokens so that shares are even for keyspaces with this many copies of each row.
_DEFAULT_COPIES = "3"
# How long a node that joins waits for news of the others; they are quick on one machine (30 s is usual).
_RING_DELAY_MS = 3000
# A fresh server makes its first role only after this time.
_FIRST_ROLE_DELAY_MS = 1000
_MOVES_WITHIN_S = 3600.0
_AGREES_WITHIN_S = 60.0
# Idle nodes of 5.0.6 have 0.95, 1.25 and 1.5 GB with heaps of 512, 768 and 1,024 MB.
_BESIDE_HEAP_BYTES = 450_000_000
# Each question costs most of a second of a processor.
_ASKS_EVERY_S = 0.5

# Doors into Java's own modules that Cassandra goes through (its conf/jvm17-server.options; java.util.concurrent.atomic for 4.1).
_MODULES = (
    "-Djdk.attach.allowAttachSelf=true",
    "--add-exports=java.base/jdk.internal.misc=ALL-UNNAMED",
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-exports=java.base/java.lang.ref=ALL-UNNAMED",
    "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-exports=java.management.rmi/com.sun.jmx.remote.internal.rmi=ALL-UNNAMED",
    "--add-exports=java.rmi/sun.rmi.registry=ALL-UNNAMED",
    "--add-exports=java.rmi/sun.rmi.server=ALL-UNNAMED",
    "--add-exports=java.sql/java.sql=ALL-UNNAMED",
    "--add-exports=jdk.attach/sun.tools.attach=ALL-UNNAMED",
    "--add-exports=jdk.compiler/com.sun.tools.javac.file=ALL-UNNAMED",
    "--add-exports=jdk.unsupported/sun.misc=ALL-UNNAMED",
    "--add-opens=java.base/java.io=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.lang.module=ALL-UNNAMED",
    "--add-opens=java.base/java.lang.reflect=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/java.util.concurrent=ALL-UNNAMED",
    "--add-opens=java.base/java.util.concurrent.atomic=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.loader=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.math=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.module=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.reflect=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.util.jar=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=jdk.compiler/com.sun.tools.javac=ALL-UNNAMED",
    "--add-opens=jdk.management/com.sun.management.internal=ALL-UNNAMED",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.useCacheForAllThreads=true",
    "-Dio.netty.allocator.maxOrder=11",
    "-Djava.net.preferIPv4Stack=true",
)

# Lines of an error that say nothing to users: places in the sources, positions and marks of the reader of cassandra.yaml.
_NOISE = re.compile(r"\s*(at |\.\.\. |in 'reader'|\^|$)")

_LOGBACK = """<configuration><statusListener class="ch.qos.logback.core.status.NopStatusListener"/>
<appender name="OUT" class="ch.qos.logback.core.ConsoleAppender"><target>{target}</target>
<encoder><pattern>%-5level [%thread] %date{{ISO8601}} %logger{{0}} - %msg%n</pattern></encoder></appender>
<root level="{level}"><appender-ref ref="OUT"/></root></configuration>
"""


class Cassandra(LabCluster):
    """Cassandra: nodes that share a ring, each on an address of its own at the same ports."""

    name = "cassandra"
    at_once_costs = (
        "a node gets its data from any replica, not from the one whose place it takes (cassandra.consistent.rangemovement=false). What a "
        "quorum has acknowledged may then be on fewer than a quorum, and be lost to readers. Tokens are chosen by chance, so that shares "
        "are less even"
    )
    load_tools = (Copy(),)
    runs_on_hosts = True
    # SSTables are written by a program that is compiled against the node, and compacted by its nodetool.
    options_of_its_own = MappingProxyType({"load": ("writes", "sstables"), "compact": ("on", "off")})
    summary = "Cassandra, one node or many"
    port = 9042
    other_ports = (_STORAGE_PORT, nodetool.JMX_PORT, cassandra_insight.PORT, nodetool.DOOR_PORT)
    # SSTables, those of the server's own tables among them: nodes keep their ids and tokens. Statistics are rewritten when a table is compacted
    # or repaired, summaries and lists of components from time to time. Hints are writes
    # that a node of the same id still lacks. Commit log, which is empty then, and saved caches are left.
    kept_files = KeptFiles(
        ("data", "hints"),
        (
            "-Data.db",
            "-Index.db",
            "-Partitions.db",
            "-Rows.db",
            "-Filter.db",
            "-CompressionInfo.db",
            "-CRC.db",
            "-Digest.crc32",
        ),
    )
    # What a server held is lost with it; there is nothing that it should write before.
    stop_signal = signal.SIGKILL
    # A node that joins answers when its share of the data has been streamed to it.
    ready_within_s = 600.0
    sources = (
        MavenClasspath(
            "cassandra",
            "5.0.6",
            f"{_ARTIFACT}:5.0.6",
            "fb3af28155961615670b8904f55242ed37041102a104511468dcce7c8c30163e",
            _JAVA,
        ),
        MavenClasspath(
            "cassandra",
            "4.1.9",
            f"{_ARTIFACT}:4.1.9",
            "79dff157d7689c475322d20cee5a0cac3842cc953f26f7a166e5e4966a6abd7c",
            _JAVA,
            (_DRIVER_OF_4,),
        ),
    )

    memory_rule = (
        "the heap (jvm.heap) as Cassandra's own start script takes it: half the memory up to 1 GB, or a quarter up to 8 GB, whichever "
        "is more. Caches and memtables follow from it. The rest is the system's cache of its files"
    )

    def memory_settings(self, memory_bytes: int) -> dict[str, str]:
        """The heap, by the rule of cassandra-env.sh."""
        megabytes = memory_bytes >> 20
        return {"jvm.heap": f"{max(min(megabytes // 2, 1024), min(megabytes // 4, 8192), 1)}M"}

    def min_memory(self, settings: Mapping[str, str]) -> int | None:
        """Its heap, and what it takes beside it."""
        return heap_bytes(settings) + _BESIDE_HEAP_BYTES

    def unknown_settings(self, software: Path, user: ServerUser, settings: Mapping[str, str]) -> dict[str, str]:
        """The server's own classes list the keys of its cassandra.yaml."""
        return check(settings, _known_settings(software, user)) if settings else {}

    def make_credentials(self, instance: Instance) -> None:
        """A server that asks for a password has one role, whose name and password are known to everybody."""
        if _asks_for_password(instance):
            instance.write_credentials("cassandra", "cassandra")

    def write_tools(self, instance: Instance, software: Path) -> None:
        """Launchers of the tools that belong to this version."""
        _write_launchers(instance, software)

    def set_up(self, place: Place) -> None:
        """Empty folders."""
        for folder in (place.data, place.folder / "tmp"):
            folder.mkdir(mode=0o700)
            place.user.owns(folder)

    def command(self, place: Place) -> list[str | Path]:
        """The server in the foreground; its log goes to its output."""
        java, settings = require_java(_JAVA), place.instance.settings
        known = _known_settings(place.software, place.user) if settings else {}
        configuration = place.write_secret("cassandra.yaml", cassandra_yaml(_of_the_lab(place), settings, known))
        logback = place.write_secret("logback.xml", _LOGBACK.format(target="System.out", level="INFO"))
        (jamm,) = (place.software / "lib").glob("jamm-*.jar")
        return [
            java.java,
            *_MODULES,
            f"-javaagent:{jamm}",
            *jvm_options(settings, place.instance.limits.cpus),
            "-Xss512k",
            "-XX:+UseG1GC",
            "-XX:MaxGCPauseMillis=300",
            "-XX:+PerfDisableSharedMem",
            "-XX:+ExitOnOutOfMemoryError",
            f"-Djava.io.tmpdir={place.folder / 'tmp'}",
            f"-Djna.tmpdir={place.folder / 'tmp'}",
            f"-Dlogback.configurationFile={logback.as_uri()}",
            "-Dcassandra-foreground=yes",
            # Without a home, nodetool does not write down what it is asked.
            "-Duser.home=/dev/null",
            f"-Dcassandra.config={configuration.as_uri()}",
            f"-Dcassandra.storagedir={place.data}",
            f"-Dcassandra.logdir={place.folder}",
            f"-Dcassandra.ring_delay_ms={_RING_DELAY_MS}",
            f"-Dcassandra.superuser_setup_delay_ms={_FIRST_ROLE_DELAY_MS}",
            "-Dcassandra.skip_wait_for_gossip_to_settle=0",
            *(["-Dcassandra.consistent.rangemovement=false"] if _joins_with_others(place) else []),
            "-cp",
            class_path(place.software, compiled(_HELPERS, place.software, java)),
            "CassandraNode",
            place.node.host,
            str(nodetool.JMX_PORT),
            str(cassandra_insight.PORT),
            str(nodetool.DOOR_PORT),
        ]

    def lets_others_start(self, instance: Instance, node: Node) -> bool:
        """The first node must be there to be asked who else is; all others start at the same time."""
        if node.number != instance.nodes[0].number:
            return True
        with socket.socket() as probe:
            return probe.connect_ex((node.host, _STORAGE_PORT)) == 0

    def join(self, instance: Instance, software: Path, user: ServerUser) -> None:
        """They have found each other; now all of them must know it."""
        _wait_until_agreed(instance, user)

    def rejoin(self, instance: Instance, software: Path, user: ServerUser) -> None:
        """The others have taken it for dead."""
        _wait_until_agreed(instance, user)

    def add_nodes(self, instance: Instance, nodes: Sequence[Node], software: Path, user: ServerUser) -> None:
        """Nodes that answer have their share of the data already; the others must know it."""
        _wait_until_agreed(instance.model_copy(update={"nodes": [*instance.nodes, *nodes]}), user)

    def drop_moved(self, instance: Instance, user: ServerUser) -> None:
        """Nodes keep rows of ranges that others took over until a cleanup is requested."""
        for node in living(instance):
            nodetool.ask(instance, node, user, "cleanup", timeout_s=_MOVES_WITHIN_S)

    def remove_node(self, instance: Instance, node: Node, software: Path, user: ServerUser) -> None:
        """Streams the node's data to the others; what a dead node had, they copy from one another."""
        others = [other for other in living(instance) if other.number != node.number]
        if not others:
            raise FailedError(f"{instance.name}: no other node is running, to which the data of node {node.number} could go")
        if not runs(instance, node):
            _forget(instance, node, others[0], user)
            return
        for keyspace, copies in nodetool.copies_of_users(nodetool.ask(instance, node, user, "describecluster")).items():
            if copies > len(others):
                raise FailedError(
                    f"{instance.name}: keyspace {keyspace} has {copies} copies of each row, and {len(others)} nodes would be left; "
                    "lower its replication factor or add a node first"
                )
        # By force: else it counts the copies of the server's own keyspaces, too.
        nodetool.ask(instance, node, user, "decommission", "--force", timeout_s=_MOVES_WITHIN_S)

    def knows_is_down(self, instance: Instance, node: Node, software: Path, user: ServerUser) -> bool:
        """Its state is D, down, in the ring of the others."""
        others = instance.model_copy(update={"nodes": [other for other in instance.nodes if other.number != node.number]})
        for contact in living(others):
            with contextlib.suppress(FailedError):
                return nodetool.ring(nodetool.ask(instance, contact, user, "status"))[node.host]["state"].startswith("D")
        return False

    def log_tail(self, log: Path) -> str:
        """The error that ended it with its causes, without the lines that say where in the sources it was."""
        text = log.read_text(encoding="utf-8", errors="replace")
        _, fatal, error = text.rpartition("ERROR [main]")
        lines = [line.strip() for line in error.splitlines() if not _NOISE.match(line)]
        return " | ".join(dict.fromkeys(lines)) if fatal else super().log_tail(log)

    def progress(self, instance: Instance, node: Node, user: ServerUser) -> str:
        """What it says that it has been sent."""
        with contextlib.suppress(FailedError):
            return nodetool.streaming(nodetool.ask(instance, node, user, "netstats"))
        return "starting"

    def insight(self, instance: Instance, node: Node) -> Mapping[str, float]:
        """What only its management knows: SSTables, memtables, pending compactions, collection of garbage."""
        return cassandra_insight.ask(node)

    def empty_caches(self, instance: Instance, node: Node, user: ServerUser) -> None:
        """Its key and row caches; it has no word for emptying the chunk cache."""
        for words in ("invalidatekeycache", "invalidaterowcache"):
            nodetool.ask(instance, node, user, words)

    def write_all(self, instance: Instance, node: Node, user: ServerUser) -> None:
        """Flushes all memtables; it takes no writes any more."""
        nodetool.ask(instance, node, user, "drain", timeout_s=_MOVES_WITHIN_S)

    def start_query_log(self, instance: Instance, node: Node, user: ServerUser) -> Path:
        """Its full query log."""
        return query_log.start(instance, node, user)

    def stop_query_log(self, instance: Instance, node: Node, user: ServerUser) -> None:
        """By nodetool."""
        query_log.stop(instance, node, user)

    def read_query_log(self, software: Path, folder: Path) -> Iterator[bytes]:
        """By its own library."""
        java = require_java(_JAVA)
        classes = class_path(software, compiled(_HELPERS, software, java))
        return query_log.read([java.java, *_MODULES, "-Xmx256m", "-cp", classes, "FullQueryLog"], folder)

    def node_status(self, instance: Instance, user: ServerUser) -> dict[int, dict[str, str]]:
        """What the first node that answers says of all."""
        for contact in living(instance):
            with contextlib.suppress(FailedError):
                statuses = nodetool.ring(nodetool.ask(instance, contact, user, "status"))
                return {node.number: statuses[node.host] for node in instance.nodes if node.host in statuses}
        return {}

    def url(self, instance: Instance) -> str:
        """All nodes, and the tools with which drivers ask and load them; the file of credentials if there is one."""
        hosts = ",".join(f"{node.host}:{node.port}" for node in instance.nodes)
        tools = f"nodetool={nodetool.launcher(instance)}&sstable_loader={_sstable_loader(instance)}"
        credentials = f"&credentials={instance.credentials}" if _asks_for_password(instance) else ""
        return f"{self.name}://{hosts}?{tools}{credentials}"


@cache
def _known_settings(software: Path, user: ServerUser) -> dict[str, str]:
    """Every key of cassandra.yaml that this version knows, with its name today."""
    java = require_java(_JAVA)
    classes = class_path(software, compiled(_HELPERS, software, java))
    command: list[str | Path] = [java.java, "-XX:TieredStopAtLevel=1", "-cp", classes, "KnownSettings"]
    ended = call(command, folder=Path("/"), user=user, environment={})
    if ended.returncode != 0:
        raise FailedError(f"the keys of cassandra.yaml cannot be listed: {ended.stderr.strip()[-300:]}")
    return dict(line.split("\t") for line in ended.stdout.splitlines())


def _of_the_lab(place: Place) -> dict[str, str]:
    """What the lab sets for one node. Addresses are its own; ports are the same for all."""
    instance, node = place.instance, place.node
    has_data = any(place.data.iterdir())
    joining = {other.number for other in place.joining}
    others = [other for other in instance.nodes if other.number != node.number and other.number not in joining]
    settings = {
        "cluster_name": f"'{instance.cluster_name}'",
        **({"storage_compatibility_mode": "NONE"} if instance.version.startswith("5.") else {}),
        "partitioner": "org.apache.cassandra.dht.Murmur3Partitioner",
        "listen_address": node.host,
        "rpc_address": node.host,
        "storage_port": str(_STORAGE_PORT),
        "native_transport_port": str(node.port),
        "start_native_transport": "true",
    }
    if instance.state == "starting":
        per_node = int(instance.settings.get("num_tokens", TOKENS_PER_NODE))
        tokens = first_tokens(instance.nodes.index(node), len(instance.nodes), per_node)
        settings |= {"initial_token": ",".join(map(str, tokens)), "auto_bootstrap": "false"}
        seeds = instance.nodes[:1]
    else:
        # Seeds do not bootstrap; and one that was there before can start with nobody else.
        seeds = instance.nodes if has_data else others
        # Nodes that look at the ring at the same time would all choose the same tokens: those take tokens by chance.
        if not place.joins_with_others:
            settings["allocate_tokens_for_local_replication_factor"] = _DEFAULT_COPIES
    addresses = ",".join(f"{seed.host}:{_STORAGE_PORT}" for seed in seeds)
    provider = "org.apache.cassandra.locator.SimpleSeedProvider"
    settings["seed_provider"] = f"[{{class_name: {provider}, parameters: [{{seeds: '{addresses}'}}]}}]"
    return settings


def _joins_with_others(place: Place) -> bool:
    """The nodes of a fresh cluster all join at the same time."""
    return place.instance.state == "starting" or place.joins_with_others


def _asks_for_password(instance: Instance) -> bool:
    return "PasswordAuthenticator" in instance.settings.get("authenticator", "")


def _sstable_loader(instance: Instance) -> Path:
    return instance.folder / "sstable-load"


def _write_launchers(instance: Instance, software: Path) -> None:
    """Programs of the instance, so that they are those of its version as long as it lives."""
    if nodetool.launcher(instance).exists():
        return
    java = require_java(_JAVA)
    logback = instance.folder / "tools-logback.xml"
    logback.write_text(_LOGBACK.format(target="System.err", level="WARN"), encoding="utf-8")
    tool: list[str | Path] = [java.java, *_MODULES, f"-Dlogback.configurationFile={logback.as_uri()}"]
    classes = class_path(software, compiled(_HELPERS, software, java))
    # What it writes before it sends it goes with the instance.
    loader = ["-Xmx1g", f"-Djava.io.tmpdir={instance.folder}", "-cp", classes, "SstableLoad"]
    write_launcher(_sstable_loader(instance), [*tool, *loader])
    nodetool.write_launcher(instance)


def _wait_until_agreed(instance: Instance, user: ServerUser) -> None:
    """Waits until all nodes that run see one another up and in their places. One alone has nobody to see."""
    up = living(instance)

    def is_agreed() -> bool:
        views = [nodetool.ring(nodetool.ask(instance, node, user, "status")) for node in up]
        return all(view.get(node.host, {}).get("state") == "UN" for view in views for node in up)

    if len(up) > 1 and not wait_until(is_agreed, timeout_s=_AGREES_WITHIN_S, every_s=_ASKS_EVERY_S):
        raise FailedError(
            f"{instance.name}: the nodes do not agree on who is up after {_AGREES_WITHIN_S:g} s; see {instance.shown_log}"
        )


def _forget(instance: Instance, node: Node, contact: Node, user: ServerUser) -> None:
    """Takes a node that is dead out of the ring, as soon as the others know that it is."""

    def is_down() -> bool:
        return ring_of().get(node.host, {}).get("state", "DN").startswith("D")

    def ring_of() -> dict[str, dict[str, str]]:
        return nodetool.ring(nodetool.ask(instance, contact, user, "status"))

    if not wait_until(is_down, timeout_s=_AGREES_WITHIN_S, every_s=_ASKS_EVERY_S):
        raise FailedError(
            f"{instance.name}: node {node.number} is not running, but the others see it after {_AGREES_WITHIN_S:g} s"
        )
    if node.host in (statuses := ring_of()):
        nodetool.ask(instance, contact, user, "removenode", statuses[node.host]["id"], timeout_s=_MOVES_WITHIN_S)
