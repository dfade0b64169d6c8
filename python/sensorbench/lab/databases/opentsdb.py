"""OpenTSDB over an HBase of its own: one region server with OpenTSDB's daemon beside it, and HBase's coordinator."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from sensorbench.lab.database import LabDatabase, Place
from sensorbench.lab.databases import hbase_admin
from sensorbench.lab.databases.hbase import FIGURES_PORT, SERVER_PORT, ZOOKEEPER_PORT, Hbase, configure, helpers, java_command
from sensorbench.lab.databases.opentsdb_settings import (
    DURABILITY,
    TSD_HEAP,
    check,
    daemon_settings,
    logback_xml,
    of_hbase,
    opentsdb_conf,
    salt_buckets,
)
from sensorbench.lab.helpers import class_path, compiled
from sensorbench.lab.instance import Instance, Node
from sensorbench.lab.jvm import require_java
from sensorbench.lab.software import MavenClasspath
from sensorbench.lab.state_dirs import ServerUser

_JAVA = (17, 11)
_HBASE = Hbase()
_HELPERS = Path(__file__).parent.parent / "java" / "opentsdb"
_DAEMON = "net.opentsdb.tools.TSDMain"
_MODULES = ("--add-opens=java.base/java.lang=ALL-UNNAMED", "--add-opens=java.base/java.nio=ALL-UNNAMED")


class Opentsdb(LabDatabase):
    """OpenTSDB, one daemon over a region server that it shares with nobody. The node is the region server, which starts the daemon; ZooKeeper and
    the master are the coordinator, as for HBase alone.
    """

    name = "opentsdb"
    summary = "OpenTSDB over an HBase of its own, one region server"
    port = 4242
    other_ports = (ZOOKEEPER_PORT, SERVER_PORT, FIGURES_PORT, hbase_admin.PORT)
    coordinator_port = ZOOKEEPER_PORT
    ready_within_s = 180.0
    sources = (
        MavenClasspath(
            "opentsdb",
            "2.4.1",
            "net.opentsdb:opentsdb:2.4.1",
            "70c8913a3198ba37eea0ded0e2fc4e9ecbcc2eec97761e6f6d7007de2f78b458",
            _JAVA,
        ),
    )

    memory_rule = (
        "half for the heap of the region server (jvm.heap), of which HBase gives 40% to its block cache and 40% to memstores; "
        "a quarter for OpenTSDB's daemon (jvm.tsd_heap); the rest is the system's cache of HBase's files"
    )

    def memory_settings(self, memory_bytes: int) -> dict[str, str]:
        """The heaps of a node."""
        return {"jvm.heap": f"{max(memory_bytes >> 21, 1)}M", TSD_HEAP: f"{max(memory_bytes >> 22, 1)}M"}

    def unknown_settings(self, software: Path, user: ServerUser, settings: Mapping[str, str]) -> dict[str, str]:
        """Settings of OpenTSDB (tsd.…) are texts in its classes; all others are HBase's."""
        unknown = check(settings, software)
        behind = of_hbase(settings)
        return unknown | (_HBASE.unknown_settings(_hbase(), user, behind) if behind else {})

    def make_credentials(self, instance: Instance) -> None:
        """There are none."""

    def set_up(self, place: Place) -> None:
        """The folders of HBase, and those that OpenTSDB wants."""
        _HBASE.set_up(place)
        for name in ("static", "cache"):
            folder = place.folder / name
            folder.mkdir(mode=0o700)
            place.user.owns(folder)

    def command(self, place: Place) -> list[str | Path]:
        """The coordinator, or a region server that makes the tables and starts the daemon; their logs go to their output."""
        instance = place.instance.model_copy(update={"settings": of_hbase(place.instance.settings)})
        below = replace(place, software=_hbase(), instance=instance)
        if place.node.is_coordinator:
            return _HBASE.command(below)
        settings = place.instance.settings
        configure(below)
        java = require_java(_JAVA)
        own = compiled(_HELPERS, below.software, java, helpers(below))
        place.write_secret("conf/opentsdb.conf", opentsdb_conf(_of_the_lab(place), settings))
        place.write_secret("conf/logback.xml", logback_xml())
        daemon: list[str | Path] = [
            java.java,
            *_MODULES,
            *daemon_settings(settings, place.instance.limits.cpus),
            # The calls of an answer of thousands of series are nested: a StackOverflowError ends it where the stack is as Java has it.
            "-Xss4M",
            "-XX:+ExitOnOutOfMemoryError",
            "-XX:+PerfDisableSharedMem",
            "-Djava.net.preferIPv4Stack=true",
            f"-Djava.io.tmpdir={place.folder / 'tmp'}",
            "-cp",
            class_path(place.software, place.folder / "conf", own),
            "EndsWithParent",
            _DAEMON,
            f"--config={place.folder / 'conf' / 'opentsdb.conf'}",
        ]
        arguments = (place.node.host, str(FIGURES_PORT), settings.get(DURABILITY, "USE_DEFAULT"), str(salt_buckets(settings)))
        return [*java_command(below, "jvm.heap", own), "OpentsdbNode", *arguments, *daemon]

    def lets_others_start(self, instance: Instance, node: Node) -> bool:
        """As HBase."""
        return _HBASE.lets_others_start(instance, node)

    def log_tail(self, log: Path) -> str:
        """As HBase: the last errors with their causes."""
        return _HBASE.log_tail(log)

    def empty_caches(self, instance: Instance, node: Node, user: ServerUser) -> None:
        """The block cache of the region server."""
        _HBASE.empty_caches(instance, node, user)

    def url(self, instance: Instance) -> str:
        """The daemon, and where orders to the HBase below it are taken."""
        node = instance.nodes[0]
        return f"{self.name}://{node.host}:{node.port}?admin={hbase_admin.place(instance)}"


def _hbase() -> Path:
    """The folder of HBase's software, which is got first if it is not there."""
    source = _HBASE.source(None)
    if source is None:
        raise AssertionError("HBase comes in a version")
    return source.get()


def _of_the_lab(place: Place) -> dict[str, str]:
    """What the lab sets for the daemon. Addresses and folders are its own."""
    coordinator = place.instance.coordinator
    if coordinator is None:
        raise AssertionError("OpenTSDB has a coordinator")
    return {
        "tsd.network.bind": place.node.host,
        "tsd.network.port": str(place.node.port),
        "tsd.http.staticroot": str(place.folder / "static"),
        "tsd.http.cachedir": str(place.folder / "cache"),
        "tsd.storage.hbase.zk_quorum": f"{coordinator.host}:{ZOOKEEPER_PORT}",
    }
