"""Settings of HBase: what the lab sets itself, what users may set, and the files that follow from both."""

import zipfile
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from pathlib import Path

from sensorbench.errors import UsageError
from sensorbench.lab.jvm import size_of_setting

_JVM = "jvm."
# Of the region server, of its gateway, and of the coordinator (ZooKeeper and the master).
_HEAPS = {"jvm.heap": "512M", "jvm.gateway_heap": "256M", "jvm.coordinator_heap": "256M"}
_PROCESSORS = "jvm.processors"
_REQUESTS = "RegionRequests"
_COPROCESSORS = "hbase.coprocessor.user.region.classes"

# Whoever changes these would leave the addresses and folders of the lab, or its way of making a cluster.
_OF_THE_LAB = (
    "hbase.cluster.distributed",
    "hbase.master.hostname",
    "hbase.master.info.",
    "hbase.master.ipc.address",
    "hbase.master.port",
    "hbase.regionserver.hostname",
    "hbase.regionserver.info.",
    "hbase.regionserver.ipc.address",
    "hbase.regionserver.port",
    "hbase.regionserver.thrift.compact",
    "hbase.regionserver.thrift.http",
    "hbase.regionserver.thrift.ipaddress",
    "hbase.regionserver.thrift.port",
    "hbase.rootdir",
    "hbase.security.",
    "hbase.thrift.info.",
    "hbase.thrift.ssl.",
    "hbase.tmp.dir",
    "hbase.unsafe.regionserver.hostname",
    "hbase.wal.dir",
    "hbase.zookeeper.",
    "hadoop.tmp.dir",
    "fs.",
    "sensorbench.",
    "zookeeper.znode.",
)

# Not HBase's own: for few and small servers on one machine, or where its own are for people who wait for minutes.
_DEFAULTS = {
    # Writes wait until the system has them, as with HDFS: kill -9 loses nothing, a machine that loses its power may.
    "hbase.wal.provider": "filesystem",
    # Who has been silent for this long is taken for dead.
    "zookeeper.session.timeout": "10000",
    # What a gateway does when a region does not answer: 10 tries with growing pauses are 28 s at most.
    "hbase.client.retries.number": "10",
    "hbase.client.pause": "100",
    "hbase.client.operation.timeout": "30000",
    "hbase.rpc.timeout": "10000",
    # A gateway has a thread for each connection, and makes no more than this number while connections wait.
    "hbase.thrift.minWorkerThreads": "1000",
    # Connections of clients that have nothing to ask for a while stay.
    "hbase.thrift.server.socket.read.timeout": "0",
    # Servers report each second, and the master starts as soon as one server is there.
    "hbase.regionserver.msginterval": "1000",
    "hbase.master.wait.on.regionservers.interval": "200",
    "hbase.master.wait.on.regionservers.timeout": "1000",
}

_LOG4J = """log4j.rootLogger=${{sensorbench.log}},OUT
log4j.appender.OUT=org.apache.log4j.ConsoleAppender
log4j.appender.OUT.target=System.out
log4j.appender.OUT.layout=org.apache.log4j.PatternLayout
log4j.appender.OUT.layout.ConversionPattern=%d %p {process} [%t] %c{{1}}: %m%n
"""


def check(settings: Mapping[str, str], software: Path) -> dict[str, str]:
    """Settings that nobody knows, each with why. Raises UsageError for those that cannot be as they are."""
    for key, value in settings.items():
        if key.startswith(_OF_THE_LAB):
            raise UsageError(f"--server-setting {key}: the lab sets it itself: each node has its own address and folders")
        if len(value.splitlines()) != 1:
            raise UsageError(f"--server-setting {key}: expected a value of one line")
        if key in _HEAPS:
            size_of_setting(key, value)
    processors = settings.get(_PROCESSORS, "1")
    if not (processors.isascii() and processors.isdigit() and 1 <= int(processors) <= 1024):
        raise UsageError(f"--server-setting {_PROCESSORS}={processors}: expected a number from 1 to 1024")
    own = {*_HEAPS, _PROCESSORS}
    unknown = not_in_classes([key for key in settings if key not in own], _jars(software))
    return {key: f"no class of it has this name of a setting, nor is it one of {', '.join(sorted(own))}" for key in unknown}


def not_in_classes(keys: Iterable[str], jars: Iterable[Path]) -> list[str]:
    """The keys that no class of some archives has as a text; many settings are in no list but the sources."""
    # A text in a class file: a one, its length, and its bytes.
    missing = {key: b"\x01" + len(key.encode()).to_bytes(2, "big") + key.encode() for key in keys}
    classes = _classes(jars)
    while missing and (content := next(classes, None)):
        missing = {key: text for key, text in missing.items() if text not in content}
    return list(missing)


def _jars(software: Path) -> Iterator[Path]:
    """The archives of HBase and Hadoop that may have settings: not those that were made of descriptions of protocols, which are most."""
    for part in ("hbase-common", "hbase-client", "hbase-server", "hbase-[aprtz]*", "hadoop-common"):
        for jar in sorted((software / "lib").glob(f"{part}-[0-9]*.jar")):
            if not jar.name.startswith("hbase-protocol"):
                yield jar


def _classes(jars: Iterable[Path]) -> Iterator[bytes]:
    for jar in jars:
        with zipfile.ZipFile(jar) as archive:
            yield from (archive.read(name) for name in archive.namelist() if name.endswith(".class"))


def heap(settings: Mapping[str, str], of: str = "jvm.heap") -> str:
    """The heap of one of the processes."""
    return settings.get(of, _HEAPS[of])


def heap_bytes(settings: Mapping[str, str], of: str = "jvm.heap") -> int:
    """The heap of one of the processes. Raises UsageError for what is not a size."""
    return size_of_setting(of, heap(settings, of))


def jvm_options(settings: Mapping[str, str], of: str, cpus: Iterable[int] | None) -> list[str]:
    """The heap and the processors of a virtual machine."""
    return [f"-Xmx{heap(settings, of)}", *processors_option(settings, cpus)]


def processors_option(settings: Mapping[str, str], cpus: Iterable[int] | None) -> list[str]:
    """The processors of a virtual machine: as many as the instance may use, unless they are set."""
    processors = settings.get(_PROCESSORS) or (str(len(list(cpus))) if cpus else None)
    return [f"-XX:ActiveProcessorCount={processors}"] if processors else []


def hbase_site(of_the_lab: Mapping[str, str], settings: Mapping[str, str]) -> str:
    """The file of settings; what users set replaces a default."""
    users = {key: value for key, value in settings.items() if not key.startswith(_JVM)}
    # Users' own coprocessors come after the one that counts requests.
    counted = {_COPROCESSORS: ",".join(filter(None, (_REQUESTS, users.get(_COPROCESSORS, ""))))}
    lines = [
        f"<property><name>{escape(key, quote=False)}</name><value>{escape(value, quote=False)}</value></property>\n"
        for key, value in {**_DEFAULTS, **users, **of_the_lab, **counted}.items()
    ]
    return f"<configuration>\n{''.join(lines)}</configuration>\n"


def log4j_properties(process: str) -> str:
    """The file that says how one process logs."""
    return _LOG4J.format(process=process)
