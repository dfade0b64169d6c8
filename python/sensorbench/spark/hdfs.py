"""Files on HDFS: put on its data nodes evenly, and counted there, by the driver's Java process, which has a client of HDFS."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sensorbench import lab
from sensorbench.lab.hdfs import transfer_port

_LOOPBACK = "127.0.0.1"
_BUFFER_BYTES = 1 << 16


@dataclass(frozen=True)
class HeldBlocks:
    """What a data node holds of some files."""

    blocks: int
    bytes: int


def put(instance: lab.Instance, folder: str, files: Sequence[Path]) -> None:
    """Writes files into a folder of HDFS in the place of those that are there, to one data node after the other, so that all hold as many.

    There must be a driver (`session.driver`).
    """
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    jvm, system = gateway.jvm, _file_system(instance)
    path = jvm.org.apache.hadoop.fs.Path
    system.delete(path(folder), True)
    for number, file in enumerate(files):
        node = instance.nodes[number % len(instance.nodes)]
        favored = gateway.new_array(jvm.java.net.InetSocketAddress, 1)
        favored[0] = jvm.java.net.InetSocketAddress(_LOOPBACK, transfer_port(node))
        output = system.createFile(path(f"{folder}/{file.name}")).recursive().favoredNodes(favored).build()
        jvm.org.apache.hadoop.io.IOUtils.copyBytes(jvm.java.io.FileInputStream(str(file)), output, _BUFFER_BYTES, True)


def held(instance: lab.Instance, folder: str) -> dict[str, HeldBlocks]:
    """What each data node holds of the files of a folder, as the name node says, by the node's address."""
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    system = _file_system(instance)
    found = {node.host: HeldBlocks(0, 0) for node in instance.nodes}
    for status in system.listStatus(gateway.jvm.org.apache.hadoop.fs.Path(folder)):
        for block in system.getFileBlockLocations(status, 0, status.getLen()):
            for host in block.getHosts():
                before = found[str(host)]
                found[str(host)] = HeldBlocks(before.blocks + 1, before.bytes + int(block.getLength()))
    return found


def _file_system(instance: lab.Instance) -> Any:
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    configuration = gateway.jvm.org.apache.hadoop.conf.Configuration()
    # As `connectors/hdfs.toml` says it to applications.
    configuration.set("dfs.client.use.datanode.hostname", "true")
    configuration.set("dfs.replication", "1")
    system = gateway.jvm.org.apache.hadoop.hdfs.DistributedFileSystem()
    system.initialize(gateway.jvm.java.net.URI(lab.url_of(instance)), configuration)
    return system
