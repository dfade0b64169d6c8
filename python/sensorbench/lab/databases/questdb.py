"""QuestDB."""

import base64
import contextlib
import re
import urllib.request
import zipfile
from collections.abc import Mapping
from pathlib import Path

from sensorbench.errors import UsageError
from sensorbench.lab.database import LabDatabase, Place, with_credentials
from sensorbench.lab.instance import USER, Instance, Node
from sensorbench.lab.jvm import require_java, size_of_setting
from sensorbench.lab.software import MavenClasspath
from sensorbench.lab.state_dirs import ServerUser

_JAVA = (17, 21)
_HTTP_PORT, _METRICS_PORT = 9000, 9003
_METRICS_WITHIN_S = 2.0
_SAMPLE = re.compile(r"^questdb_(\w+)(?:\{[^}]*\})? (-?[\d.eE+-]+)$")

_HEAP, _PROCESSORS = "jvm.heap", "jvm.processors"
# Most of its memory is not on the heap.
_DEFAULT_HEAP = "512M"
# Whoever changes these would leave the addresses, users and folders of the lab.
_OF_THE_LAB = re.compile(
    r"(.*\.bind\.to|(http|pg)\.(user|password)|line\.tcp\..*|http\.min\..*|pg\.enabled|http\.enabled|metrics\.enabled)"
)
_CLASS_OF_SETTINGS = "io/questdb/PropertyKey.class"

# Not QuestDB's own: room for values of a megabyte in both directions, as many connections as other servers have, and sessions that may ask
# for more than a minute. A table that is not written for half a second gives back the room that it keeps in its
# files (16 MB for each column of the last partition), which would be the size of small tables. Half a second later its write-ahead log is
# gone, too, which is a second copy of the rows for half a minute otherwise.
_DEFAULTS = {
    "pg.recv.buffer.size": "4m",
    "pg.send.buffer.size": "4m",
    "pg.max.blob.size.on.query": "4m",
    "pg.net.connection.limit": "256",
    "query.timeout": "10m",
    "telemetry.enabled": "false",
    "cairo.inactive.writer.ttl": "500",
    "cairo.wal.inactive.writer.ttl": "500",
    "cairo.idle.check.interval": "250",
    "cairo.wal.purge.interval": "500",
}

# By default it logs the beginning and the end of every query.
_LOGGING = """writers=stdout
w.stdout.class=io.questdb.log.LogConsoleWriter
w.stdout.level=ADVISORY,ERROR,CRITICAL
"""


class Questdb(LabDatabase):
    """QuestDB, one server."""

    name = "questdb"
    summary = (
        "QuestDB, one server; commits are left to the system's cache unless requested (--server-setting cairo.commit.mode=sync)"
    )
    port = 8812
    other_ports = (_HTTP_PORT, _METRICS_PORT)
    sources = (
        MavenClasspath(
            "questdb",
            "9.3.4",
            "org.questdb:questdb:9.3.4",
            "f79ff58804e69d87371d61f3e435f47eea23a190607d9033dc48b69245328bab",
            _JAVA,
        ),
    )

    memory_rule = (
        "a quarter for the Java heap, 512 MB at most, and 90% in all (ram.usage.limit.bytes, QuestDB's own share of a machine); "
        "the rest is the system's cache, in which its files are mapped"
    )

    def memory_settings(self, memory_bytes: int) -> dict[str, str]:
        """The heap, and the most that it may take in all."""
        heap = min(memory_bytes // 4, 512 << 20)
        return {_HEAP: f"{max(heap >> 20, 1)}M", "ram.usage.limit.bytes": str(memory_bytes * 9 // 10)}

    def unknown_settings(self, software: Path, user: ServerUser, settings: Mapping[str, str]) -> dict[str, str]:
        """Names of settings are texts in one of the server's classes."""
        for key, value in settings.items():
            if _OF_THE_LAB.fullmatch(key):
                raise UsageError(f"--server-setting {key}: the lab sets it itself: each server has its own address and users")
            if len(value.splitlines()) != 1:
                raise UsageError(f"--server-setting {key}: expected a value of one line")
        size_of_setting(_HEAP, settings.get(_HEAP, _DEFAULT_HEAP))
        if not re.fullmatch(r"[1-9]\d{0,3}", processors := settings.get(_PROCESSORS, "1")):
            raise UsageError(f"--server-setting {_PROCESSORS}={processors}: expected a number of CPUs")
        of_the_server = [key for key in settings if key not in (_HEAP, _PROCESSORS)]
        with zipfile.ZipFile(_jar(software)) as archive:
            known = archive.read(_CLASS_OF_SETTINGS) if of_the_server else b""
        # A text in a class file: a one, its length, and its bytes.
        unknown = [key for key in of_the_server if b"\x01" + len(key.encode()).to_bytes(2, "big") + key.encode() not in known]
        return dict.fromkeys(unknown, f"it is neither a property of its server.conf nor {_HEAP} or {_PROCESSORS}")

    def set_up(self, place: Place) -> None:
        """Empty folders."""
        for folder in (place.data, place.data / "conf", place.folder / "tmp"):
            folder.mkdir(mode=0o700)
            place.user.owns(folder)

    def command(self, place: Place) -> list[str | Path]:
        """The server with a file of settings, because a command line would show the password."""
        settings = place.instance.settings
        lines = [
            f"{key}={value}"
            for key, value in {**_DEFAULTS, **settings, **_of_the_lab(place)}.items()
            if not key.startswith("jvm.")
        ]
        conf = place.data.relative_to(place.folder) / "conf"
        place.write_secret(f"{conf}/server.conf", "\n".join(lines) + "\n")
        place.write_secret(f"{conf}/log.conf", _LOGGING)
        cpus = place.instance.limits.cpus
        processors = settings.get(_PROCESSORS) or (str(len(list(cpus))) if cpus else None)
        return [
            require_java(_JAVA).java,
            f"-Xmx{settings.get(_HEAP, _DEFAULT_HEAP)}",
            *([f"-XX:ActiveProcessorCount={processors}"] if processors else []),
            "-XX:+UseParallelGC",
            "-XX:+PerfDisableSharedMem",
            "-XX:+ExitOnOutOfMemoryError",
            "-Djava.net.preferIPv4Stack=true",
            # It unpacks a library there, which kill -9 leaves behind.
            f"-Djava.io.tmpdir={place.folder / 'tmp'}",
            "--add-exports",
            "java.base/jdk.internal.math=io.questdb",
            "-p",
            _jar(place.software),
            "-m",
            "io.questdb/io.questdb.ServerMain",
            "-d",
            place.data,
        ]

    def url(self, instance: Instance) -> str:
        """The server; drivers keep to tables whose names begin with theirs."""
        node = instance.nodes[0]
        return with_credentials("questdb", instance, f"{node.host}:{node.port}")

    def insight(self, instance: Instance, node: Node) -> Mapping[str, float]:
        """What it reports to Prometheus, by its names without "questdb_"; nothing of one that does not answer."""
        request = urllib.request.Request(f"http://{node.host}:{_METRICS_PORT}/metrics")
        login = base64.b64encode(f"{USER}:{instance.password()}".encode()).decode()
        request.add_header("Authorization", f"Basic {login}")
        with contextlib.suppress(OSError), urllib.request.urlopen(request, timeout=_METRICS_WITHIN_S) as answer:
            lines = answer.read().decode().splitlines()
            samples = [sample for line in lines if (sample := _SAMPLE.match(line))]
            return {f"metrics.{sample[1]}": float(sample[2]) for sample in samples if "_memory_tag_" not in sample[0]}
        return {}


def _of_the_lab(place: Place) -> dict[str, str]:
    host, password = place.node.host, place.instance.password()
    return {
        "http.bind.to": f"{host}:{_HTTP_PORT}",
        "http.min.net.bind.to": f"{host}:{_METRICS_PORT}",
        "pg.net.bind.to": f"{host}:{place.node.port}",
        "line.tcp.enabled": "false",
        "metrics.enabled": "true",
        "pg.user": USER,
        "pg.password": password,
        "http.user": USER,
        "http.password": password,
    }


def _jar(software: Path) -> Path:
    (jar,) = (software / "lib").glob("questdb-*.jar")
    return jar
