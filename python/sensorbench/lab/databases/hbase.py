"""HBase, of one region server or many, each with a Thrift gateway of its own, on the local file system.

A node is a region server, which starts its gateway (a process of its own, so that what it costs can be told). ZooKeeper and the master
are the coordinator, which all nodes share, and so is the folder of data: it lies with the coordinator, as HDFS would be a server of its own.
"""

import contextlib
import re
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from sensorbench.errors import FailedError
from sensorbench.lab.database import LabCluster, Place
from sensorbench.lab.databases import hbase_admin
from sensorbench.lab.databases.hbase_settings import check, hbase_site, heap, heap_bytes, jvm_options, log4j_properties
from sensorbench.lab.helpers import class_path, compiled
from sensorbench.lab.instance import Instance, Node
from sensorbench.lab.jvm import require_java
from sensorbench.lab.placement import living
from sensorbench.lab.software import MavenClasspath
from sensorbench.lab.state_dirs import ServerUser

JAVA = (17, 11)
HELPERS = Path(__file__).parent.parent / "java" / "hbase"
ZOOKEEPER_PORT, _MASTER_PORT, SERVER_PORT, FIGURES_PORT = 2181, 16000, 16020, 16040
_READY_WITHIN_S = 10.0
# Under load, nodes of 2.6.4 take 0.74 GB of memory each with heaps of 384 and 128 MB, besides the system's cache of files.
_BESIDE_HEAPS_BYTES = 200_000_000

# Lines of a log that say why something failed.
_ERROR = re.compile(r"^(Caused by: |Exception in thread|Terminating due to |[\w.]+(Exception|Error)\b)| ERROR ")
_LAST_ERRORS = 3

# Doors into Java's own modules that HBase goes through (HBASE_OPTS of its bin/hbase for Java 11 and later).
MODULES = (
    "-Dorg.apache.hbase.thirdparty.io.netty.tryReflectionSetAccessible=true",
    "--add-modules=jdk.unsupported",
    "--add-opens=java.base/java.io=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.lang.reflect=ALL-UNNAMED",
    "--add-opens=java.base/java.net=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/java.util.concurrent=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-exports=java.base/jdk.internal.misc=ALL-UNNAMED",
    "--add-exports=java.base/sun.net.dns=ALL-UNNAMED",
    "--add-exports=java.base/sun.net.util=ALL-UNNAMED",
    "--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
)


class Hbase(LabCluster):
    """HBase: region servers that share tables, each on an address of its own at the same ports."""

    name = "hbase"
    summary = "HBase on local files, one region server or many, with a Thrift gateway each"
    at_once_costs = (
        "Nothing: region servers join without regions, and regions are then moved once instead of once for each of them"
    )
    port = 9090
    other_ports = (ZOOKEEPER_PORT, _MASTER_PORT, SERVER_PORT, FIGURES_PORT, hbase_admin.PORT)
    coordinator_port = ZOOKEEPER_PORT
    # What a server held is lost with it, or recovered from its log of writes; there is nothing that it should write before.
    stop_signal = signal.SIGKILL
    ready_within_s = 120.0
    sources = (
        MavenClasspath(
            "hbase",
            "2.6.4",
            "org.apache.hbase:hbase-server:2.6.4-hadoop3",
            "0a0009ff5ef3bc0e222688e39a3b12a7795494988956a11a04327884cb0d5555",
            JAVA,
            # There is no gateway for Hadoop 3 in the Maven repository; it is a client of HBase, and needs nothing of Hadoop 2.
            ("org.apache.hbase:hbase-thrift:2.6.1", "org.apache.thrift:libthrift:0.14.1"),
        ),
    )

    memory_rule = (
        "half for the heap of the region server (jvm.heap), of which HBase gives 40% to its block cache and 40% to memstores; "
        "256 MB for the gateway, an eighth where that is less; the rest is the system's cache of its files"
    )

    def memory_settings(self, memory_bytes: int) -> dict[str, str]:
        """The heaps of a node."""
        gateway = min(memory_bytes // 8, 256 << 20)
        return {"jvm.heap": f"{max(memory_bytes >> 21, 1)}M", "jvm.gateway_heap": f"{max(gateway >> 20, 1)}M"}

    def min_memory(self, settings: Mapping[str, str]) -> int | None:
        """The heaps of the region server and of its gateway, and what both take beside them."""
        return heap_bytes(settings) + heap_bytes(settings, "jvm.gateway_heap") + _BESIDE_HEAPS_BYTES

    def unknown_settings(self, software: Path, user: ServerUser, settings: Mapping[str, str]) -> dict[str, str]:
        """Settings are texts in the server's classes."""
        return check(settings, software)

    def make_credentials(self, instance: Instance) -> None:
        """There are none."""

    def set_up(self, place: Place) -> None:
        """Empty folders. All tables lie in the coordinator's folder of data."""
        for folder in (place.data, place.folder / "tmp", place.folder / "conf"):
            folder.mkdir(mode=0o700)
            place.user.owns(folder)

    def command(self, place: Place) -> list[str | Path]:
        """The coordinator, or a region server that starts its gateway; their logs go to their output."""
        configure(place)
        if place.node.is_coordinator:
            ports = (str(ZOOKEEPER_PORT), str(hbase_admin.PORT))
            return [
                *java_command(place, "jvm.coordinator_heap"),
                "HbaseCoordinator",
                place.node.host,
                *ports,
                place.data / "zookeeper",
            ]
        gateway = [*java_command(place, "jvm.gateway_heap"), "HbaseGateway", "--infoport", "-1", "-threadpool", "start"]
        return [*java_command(place, "jvm.heap"), "HbaseNode", place.node.host, str(FIGURES_PORT), *gateway]

    def lets_others_start(self, instance: Instance, node: Node) -> bool:
        """Nodes need ZooKeeper, but not one another."""
        if not node.is_coordinator:
            return True
        with socket.socket() as probe:
            return probe.connect_ex((node.host, ZOOKEEPER_PORT)) == 0

    def log_tail(self, log: Path) -> str:
        """The last errors with their causes, without the lines that say where in the sources they were."""
        lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if _ERROR.search(line)]
        return " | ".join(list(dict.fromkeys(lines))[-_LAST_ERRORS:]) or super().log_tail(log)

    def readiness(self, instance: Instance, node: Node) -> Callable[[], str]:
        """Whether the cluster takes orders, and the node's gateway answers for a region server."""

        def problem() -> str:
            try:
                hbase_admin.ask(instance, "ready", f"{node.host}:{node.port}", within_s=_READY_WITHIN_S)
            except FailedError as error:
                return str(error)
            return ""

        return problem

    def join(self, instance: Instance, software: Path, user: ServerUser) -> None:
        """They belong to the cluster when they answer."""

    def add_nodes(self, instance: Instance, nodes: Sequence[Node], software: Path, user: ServerUser) -> None:
        """A share of the regions for each."""
        self.balance(instance)

    def balance(self, instance: Instance) -> None:
        """As many regions for each, of those with data and of the others."""
        hbase_admin.ask(instance, "balance")

    def remove_node(self, instance: Instance, node: Node, software: Path, user: ServerUser) -> None:
        """Moves the node's regions to the others, then has it stop; those of a dead one, the others recover."""
        if not any(other.number != node.number for other in living(instance)):
            raise FailedError(f"{instance.name}: no other node is running, to which the regions of node {node.number} could go")
        hbase_admin.ask(instance, "remove", node.host)

    def rejoin(self, instance: Instance, software: Path, user: ServerUser) -> None:
        """Those that were away get their share of the regions again, when all regions are there again."""
        self.balance(instance)

    def empty_caches(self, instance: Instance, node: Node, user: ServerUser) -> None:
        """The block caches of all nodes, whichever of them is named."""
        hbase_admin.ask(instance, "empty-caches")

    def node_status(self, instance: Instance, user: ServerUser) -> dict[int, dict[str, str]]:
        """How many regions each has."""
        with contextlib.suppress(FailedError):
            status = hbase_admin.ask(instance, "status")
            return {node.number: {"regions": str(status[node.host]["regions"])} for node in instance.nodes if node.host in status}
        return {}

    def knows_is_down(self, instance: Instance, node: Node, software: Path, user: ServerUser) -> bool:
        """The coordinator has no figures of it."""
        with contextlib.suppress(FailedError):
            return node.host not in hbase_admin.ask(instance, "status")
        return False

    def url(self, instance: Instance) -> str:
        """All gateways, and where orders are taken for which they have no word."""
        hosts = ",".join(f"{node.host}:{node.port}" for node in instance.nodes)
        return f"{self.name}://{hosts}?admin={hbase_admin.place(instance)}"


def configure(place: Place) -> None:
    """Writes the files of settings of a process of HBase."""
    process = "coordinator" if place.node.is_coordinator else f"node-{place.node.number}"
    place.write_secret("conf/hbase-site.xml", hbase_site(_of_the_lab(place), place.instance.settings))
    place.write_secret("conf/log4j.properties", log4j_properties(process))


def helpers(place: Place) -> Path:
    """The folder with the classes of our own that HBase's processes need."""
    return compiled(HELPERS, place.software, require_java(JAVA))


def _of_the_lab(place: Place) -> dict[str, str]:
    """What the lab sets for one process. Addresses are its own; ports are the same for all, and so is the folder of data."""
    coordinator = place.instance.coordinator
    if coordinator is None:
        raise AssertionError("HBase has a coordinator")
    shared = place.instance.data_folder(coordinator)
    return {
        "hbase.cluster.distributed": "true",
        "hbase.rootdir": f"file://{shared / 'hbase'}",
        "hbase.wal.dir": f"file://{shared / 'wal'}",
        "hbase.tmp.dir": str(place.folder / "tmp"),
        "hadoop.tmp.dir": str(place.folder / "tmp"),
        "hbase.zookeeper.quorum": coordinator.host,
        "hbase.zookeeper.property.clientPort": str(ZOOKEEPER_PORT),
        "hbase.master.hostname": coordinator.host,
        "hbase.master.ipc.address": coordinator.host,
        "hbase.master.port": str(_MASTER_PORT),
        "hbase.master.info.port": "-1",
        "hbase.regionserver.hostname": place.node.host,
        "hbase.regionserver.ipc.address": place.node.host,
        "hbase.regionserver.port": str(SERVER_PORT),
        "hbase.regionserver.info.port": "-1",
        "hbase.regionserver.thrift.ipaddress": place.node.host,
        "hbase.regionserver.thrift.port": str(place.node.port),
        "hbase.thrift.info.port": "-1",
        "sensorbench.figures.port": str(FIGURES_PORT),
        "sensorbench.region_server.heap": heap(place.instance.settings),
    }


def java_command(place: Place, of: str, *others: Path) -> list[str | Path]:
    """The virtual machine of one of the processes, up to the class that it starts.

    Args:
        place: the process, with HBase's software.
        of: the setting of its heap.
        others: places of classes besides HBase's and the helpers'.

    """
    java = require_java(JAVA)
    # Only a region server has so much in memory that its collection of garbage must not stop it.
    collector = ["-XX:+UseG1GC", "-XX:MaxGCPauseMillis=100"] if of == "jvm.heap" else ["-XX:+UseSerialGC"]
    # The coordinator has little to do but to start.
    compiler = ["-XX:TieredStopAtLevel=1"] if of == "jvm.coordinator_heap" else []
    return [
        java.java,
        *MODULES,
        *jvm_options(place.instance.settings, of, place.instance.limits.cpus),
        *collector,
        *compiler,
        "-XX:+PerfDisableSharedMem",
        "-XX:+ExitOnOutOfMemoryError",
        "-Djava.net.preferIPv4Stack=true",
        f"-Djava.io.tmpdir={place.folder / 'tmp'}",
        f"-Dsensorbench.log={'WARN' if of == 'jvm.gateway_heap' else 'INFO'}",
        "-cp",
        class_path(place.software, place.folder / "conf", helpers(place), *others),
    ]
