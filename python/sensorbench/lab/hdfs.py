"""HDFS: a name node, which is the coordinator, and data nodes that hold the blocks of files. It stores files and is not a target of databases.

Whoever is on this machine may read and write it, as Hadoop does where nothing else is set up.
"""

import json
import shutil
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path

from sensorbench.errors import FailedError
from sensorbench.lab.database import LabCluster, Place
from sensorbench.lab.databases.hbase import JAVA, MODULES, Hbase
from sensorbench.lab.helpers import class_path
from sensorbench.lab.instance import Instance, Node
from sensorbench.lab.jvm import require_java
from sensorbench.lab.processes import call
from sensorbench.lab.software import Source
from sensorbench.lab.state_dirs import ServerUser

_NAME_PORT, _NAME_PAGE, _DATA_PAGE, _DATA_ORDERS = 9820, 9870, 9864, 9867
_ANSWERS_WITHIN_S = 5.0
_FORMAT = "org.apache.hadoop.hdfs.server.namenode.NameNode"
# What its pages are served from, which the archives do not have; nobody reads pages here but what is asked for as JSON.
_PAGES = ("hdfs", "datanode", "static")
_LOGGING = """log4j.rootLogger=WARN,OUT
log4j.appender.OUT=org.apache.log4j.ConsoleAppender
log4j.appender.OUT.target=System.err
log4j.appender.OUT.layout=org.apache.log4j.PatternLayout
log4j.appender.OUT.layout.ConversionPattern=%d{ISO8601} %p %c{2}: %m%n
"""


class OfHbase(Source):
    """HDFS as it comes with the archives of HBase."""

    @property
    def _hbase(self) -> Source:
        (source,) = Hbase.sources
        return source

    def missing(self) -> str | None:
        """What HBase needs."""
        return self._hbase.missing()

    def unpack_into(self, folder: Path) -> None:
        """Nothing is unpacked but HBase."""
        raise AssertionError(f"HDFS has no folder of its own: {folder}")

    @property
    def folder(self) -> Path:
        """That of HBase."""
        return self._hbase.folder

    @property
    def is_there(self) -> bool:
        """Whether HBase is."""
        return self._hbase.is_there

    def get(self) -> Path:
        """The folder; got first if it is not there."""
        return self._hbase.get()


class Hdfs(LabCluster):
    """HDFS with a data node on each address."""

    name = "hdfs"
    summary = "HDFS, a name node with data nodes; it stores files, and is not a database"
    used_as = "a file system:"
    at_once_costs = "nothing"
    port = 9866
    other_ports = (_DATA_PAGE, _DATA_ORDERS, _NAME_PAGE)
    coordinator_port = _NAME_PORT
    sources = (OfHbase("hdfs", "3.4.2"),)

    def unknown_settings(self, software: Path, user: ServerUser, settings: Mapping[str, str]) -> dict[str, str]:
        """Hadoop takes whatever it is given; what is not of HDFS is refused."""
        return {key: "expected a setting of HDFS (dfs.…)" for key in settings if not key.startswith("dfs.")}

    def make_credentials(self, instance: Instance) -> None:
        """There are none."""

    def set_up(self, place: Place) -> None:
        """Empty folders; those of the name node are formatted."""
        for folder in (place.data, place.folder / "tmp", place.folder / "conf"):
            folder.mkdir(mode=0o700)
            place.user.owns(folder)
        if place.node.is_coordinator:
            _configure(place)
            ended = call(
                [*_java(place), _FORMAT, "-format", "-nonInteractive"],
                folder=place.folder,
                user=place.user,
                environment={},
            )
            if ended.returncode != 0:
                raise FailedError(f"the name node cannot be formatted: {ended.stderr.strip()[-300:]}")

    def command(self, place: Place) -> list[str | Path]:
        """The name node, or a data node; their logs go to their output."""
        _configure(place)
        kind = "namenode.NameNode" if place.node.is_coordinator else "datanode.DataNode"
        return [*_java(place), f"org.apache.hadoop.hdfs.server.{kind}"]

    def lets_others_start(self, instance: Instance, node: Node) -> bool:
        """Data nodes need the name node, but not one another."""
        if not node.is_coordinator:
            return True
        try:
            live_nodes(instance)
        except (OSError, ValueError, LookupError):
            return False
        return True

    def readiness(self, instance: Instance, node: Node) -> Callable[[], str]:
        """Whether the name node knows the data node."""

        def problem() -> str:
            try:
                known = live_nodes(instance)
            except (OSError, ValueError, LookupError) as error:
                return f"the name node's page: {error}"
            return "" if node.host in known else "the name node does not know it yet"

        return problem

    def join(self, instance: Instance, software: Path, user: ServerUser) -> None:
        """They belong to it when the name node knows them."""

    def add_nodes(self, instance: Instance, nodes: Sequence[Node], software: Path, user: ServerUser) -> None:
        """The name node knows them already; files that are written from now on may lie there."""

    def remove_node(self, instance: Instance, node: Node, software: Path, user: ServerUser) -> None:
        """There is one copy of each block."""
        raise FailedError(f"{instance.name}: the blocks of node {node.number} exist nowhere else; stop the whole instance")

    def node_status(self, instance: Instance, user: ServerUser) -> dict[int, dict[str, str]]:
        """How many blocks each has."""
        try:
            known = live_nodes(instance)
        except (OSError, ValueError, LookupError):
            return {}
        return {node.number: {"blocks": str(known[node.host])} for node in instance.nodes if node.host in known}

    def url(self, instance: Instance) -> str:
        """The name node's URL."""
        name_node = _name_node(instance)
        return f"hdfs://{name_node.host}:{name_node.port}"


def transfer_port(node: Node) -> int:
    """Where a data node takes blocks. The name node knows data nodes by the address that they call it from, which is the same for all on one machine: so
    their ports must differ.
    """
    return node.port + 1_000 + node.number


def live_nodes(instance: Instance) -> dict[str, int]:
    """How many blocks each data node has, by its address. Raises OSError, ValueError and LookupError while the name node only starts."""
    query = "qry=Hadoop:service=NameNode,name=NameNodeInfo"
    with urllib.request.urlopen(
        f"http://{_name_node(instance).host}:{_NAME_PAGE}/jmx?{query}", timeout=_ANSWERS_WITHIN_S
    ) as page:
        nodes: dict[str, dict[str, int]] = json.loads(json.load(page)["beans"][0]["LiveNodes"])
    return {name.partition(":")[0]: node["numBlocks"] for name, node in nodes.items()}


def _name_node(instance: Instance) -> Node:
    if instance.coordinator is None:
        raise AssertionError("HDFS has a name node")
    return instance.coordinator


def _java(place: Place) -> list[str | Path]:
    return [
        require_java(JAVA).java,
        *MODULES,
        "-Xmx256m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-XX:+PerfDisableSharedMem",
        "-Djava.net.preferIPv4Stack=true",
        f"-Djava.io.tmpdir={place.folder / 'tmp'}",
        "-cp",
        class_path(place.software, place.folder / "conf"),
    ]


def _configure(place: Place) -> None:
    """The files of settings, and folders of pages."""
    conf = place.folder / "conf"
    values = {**_of_the_lab(place), **place.instance.settings}
    entries = "".join(
        f"<property><name>{escape(key)}</name><value>{escape(value)}</value></property>\n" for key, value in values.items()
    )
    for name in ("core-site.xml", "hdfs-site.xml"):
        place.write_secret(f"conf/{name}", f"<configuration>\n{entries}</configuration>\n")
    place.write_secret("conf/log4j.properties", _LOGGING)
    shutil.rmtree(conf / "webapps", ignore_errors=True)
    for page in _PAGES:
        folder = conf / "webapps" / page / "WEB-INF"
        folder.mkdir(parents=True)
        (folder / "web.xml").write_text("<web-app/>\n", encoding="utf-8")


def _of_the_lab(place: Place) -> dict[str, str]:
    """What the lab sets for one process."""
    node, name_node = place.node, _name_node(place.instance)
    data = place.data.as_uri()
    of_process = (
        {"dfs.namenode.name.dir": data, "dfs.namenode.http-address": f"{node.host}:{_NAME_PAGE}"}
        if node.is_coordinator
        else {
            "dfs.datanode.data.dir": data,
            "dfs.datanode.hostname": node.host,
            "dfs.datanode.address": f"{node.host}:{transfer_port(node)}",
            "dfs.datanode.http.address": f"{node.host}:{_DATA_PAGE}",
            "dfs.datanode.ipc.address": f"{node.host}:{_DATA_ORDERS}",
        }
    )
    return {
        "fs.defaultFS": f"hdfs://{name_node.host}:{name_node.port}",
        "hadoop.tmp.dir": str(place.folder / "tmp"),
        "dfs.replication": "1",
        "dfs.permissions.enabled": "false",
        # Data nodes come and go within seconds here.
        "dfs.heartbeat.interval": "1",
        "dfs.namenode.safemode.extension": "0",
        "dfs.namenode.datanode.registration.ip-hostname-check": "false",
        "dfs.datanode.use.datanode.hostname": "true",
        "dfs.client.use.datanode.hostname": "true",
        **of_process,
    }
