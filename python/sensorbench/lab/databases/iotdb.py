"""Apache IoTDB: a data node with its REST service, and the config node that it needs, as the coordinator.

Both listen on every address whatever they are set to, so they run in a network namespace of their own (`isolation`).
"""

import base64
import contextlib
import json
import re
import secrets
import socket
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

from sensorbench.errors import UsageError
from sensorbench.lab.database import LabDatabase, Place, with_credentials
from sensorbench.lab.helpers import class_path
from sensorbench.lab.instance import Instance, Node
from sensorbench.lab.jvm import require_java, size_of_setting
from sensorbench.lab.software import MavenClasspath
from sensorbench.lab.state_dirs import ServerUser

_JAVA = (17, 11)
_CONFIG_PORT, _CONFIG_CONSENSUS_PORT = 10710, 10720
_RPC_PORT, _DATA_PORTS = 6667, {"internal": 10730, "mpp_data_exchange": 10740}
_CONSENSUS_PORTS = {"schema_region": 10750, "data_region": 10760}
_METRICS_PORT, _METRICS_WITHIN_S = 9092, 1.0
_MEGABYTE = 1 << 20

_DIRECT = "jvm.direct_memory"
# Each region of data takes about 48 MB outside the heap for its log, and a namespace has one or two of them.
_MEMORIES = {"jvm.heap": "512M", _DIRECT: "1G", "jvm.coordinator_heap": "256M"}
_WAL_MODE = "wal_mode"
_WAL_MODES = ("SYNC", "ASYNC", "DISABLE")
_METRIC_LEVEL, _NO_METRICS = "dn_metric_level", "OFF"
_METRIC_LEVELS = (_NO_METRICS, "CORE", "IMPORTANT", "NORMAL", "ALL")
# The one who may do everything; a new server lets him in with his name as the password.
_ADMINISTRATOR = "root"
_CHANGED_WITHIN_S = 30.0
_NOT_LET_IN, _SUCCESS = 401, 200
# Whoever changes these would leave the addresses, users and folders of the lab.
_OF_THE_LAB = re.compile(
    r"(.*_(address|port|dir|dirs|seed_config_node)|enable_rest_service|cache_expire_in_seconds|cluster_name|dn_metric_reporter_list)"
)
# Not IoTDB's own: times as exact as those of the other databases, and no metrics. With them 2.0.1-beta keeps a histogram for each request that
# its REST service ever answered (session_idle_time), about 7 KB, and ends after some 42,000 requests, when its heap is full of them.
_DEFAULTS = {"timestamp_precision": "us", _METRIC_LEVEL: _NO_METRICS}
# Which of its metrics are figures here, each with the labels that stay apart; parts that differ in other labels are added up.
_FIGURES = {
    "file_count": ("name",),
    "file_size": ("name",),
    "jvm_gc_pause_seconds_sum": (),
    "queue": ("name", "status"),
}
_SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$", flags=re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_DESCRIPTORS = re.compile(r"org/apache/(iotdb|tsfile)/.*(Descriptor|PropertyUtils|PropertiesUtils?)\.class")

# Doors into Java's own modules that IoTDB goes through (its conf/datanode-env.sh).
_MODULES = tuple(
    f"--add-opens=java.base/{package}=ALL-UNNAMED"
    for package in ("java.lang", "java.nio", "java.util", "java.util.concurrent", "java.net", "java.io", "sun.nio.ch")
)
_LOGBACK = """<configuration><appender name="C" class="ch.qos.logback.core.ConsoleAppender"><encoder><pattern>%d %-5p [%t] %c - %m%n</pattern>
</encoder></appender><root level="WARN"><appender-ref ref="C"/></root></configuration>
"""


class Iotdb(LabDatabase):
    """Apache IoTDB, one data node."""

    name = "iotdb"
    summary = "Apache IoTDB, one server; kill -9 loses what it has acknowledged last unless its log is synced (--server-setting wal_mode=SYNC)"
    port = 18080
    coordinator_port = _CONFIG_PORT
    is_isolated = True
    ready_within_s = 180.0
    sources = (
        MavenClasspath(
            "iotdb",
            "2.0.1-beta",
            "org.apache.iotdb:iotdb-server:2.0.1-beta",
            "78f45089439be401ce69c2ea9ff12cca10f05ec1f912871063b07c72ef0c52db",
            _JAVA,
            # All that it needs, the server needs, too.
            ("org.apache.iotdb:iotdb-confignode:2.0.1-beta",),
        ),
    )

    memory_rule = (
        "half for the heap of the data node (jvm.heap), of which IoTDB gives 30% each to writes and queries, and at most a quarter for its "
        "buffers outside the heap (jvm.direct_memory). The config node has 256 MB (jvm.coordinator_heap), or an eighth where that is less. "
        "The rest is for the system's cache of its files"
    )

    def memory_settings(self, memory_bytes: int) -> dict[str, str]:
        """The heaps, and what is outside the data node's."""
        coordinator = min(memory_bytes // 8, 256 * _MEGABYTE)
        return {
            "jvm.heap": f"{max(memory_bytes // 2 // _MEGABYTE, 1)}M",
            _DIRECT: f"{max(memory_bytes // 4 // _MEGABYTE, 1)}M",
            "jvm.coordinator_heap": f"{max(coordinator // _MEGABYTE, 1)}M",
        }

    def unknown_settings(self, software: Path, user: ServerUser, settings: Mapping[str, str]) -> dict[str, str]:
        """Names of settings are texts in the classes that read them."""
        for key, value in settings.items():
            if _OF_THE_LAB.fullmatch(key):
                raise UsageError(f"--server-setting {key}: the lab sets it itself: each server has its own address and users")
            if len(value.splitlines()) != 1:
                raise UsageError(f"--server-setting {key}: expected a value of one line")
            if key in _MEMORIES:
                size_of_setting(key, value)
        for key, known in ((_WAL_MODE, _WAL_MODES), (_METRIC_LEVEL, _METRIC_LEVELS)):
            if (value := settings.get(key, known[0])) not in known:
                raise UsageError(f"--server-setting {key}={value}: expected {', '.join(known[:-1])} or {known[-1]}")
        # The level of metrics is composed of two texts there.
        unknown = _not_in_descriptors([key for key in settings if key not in (*_MEMORIES, _METRIC_LEVEL)], software)
        return dict.fromkeys(
            unknown, f"it is neither a property of its iotdb-system.properties nor one of {', '.join(_MEMORIES)}"
        )

    def make_credentials(self, instance: Instance) -> None:
        """The administrator, whose password is changed when the server is up: there is no setting for it."""
        if not instance.credentials.exists():
            instance.write_credentials(_ADMINISTRATOR, secrets.token_urlsafe(18))

    def set_up(self, place: Place) -> None:
        """Empty folders."""
        for folder in (place.data, place.folder / "conf", place.folder / "tmp"):
            folder.mkdir(mode=0o700)
            place.user.owns(folder)

    def command(self, place: Place) -> list[str | Path]:
        """One of the two nodes, with a file of settings, because a command line would show the password."""
        settings = {**_DEFAULTS, **place.instance.settings, **_of_the_lab(place.instance)}
        lines = [f"{key}={value}" for key, value in settings.items() if not key.startswith("jvm.")]
        place.write_secret("conf/iotdb-system.properties", "\n".join(lines) + "\n")
        logback = place.write_secret("conf/logback.xml", _LOGBACK)
        is_coordinator = place.node.is_coordinator
        kind, main = ("CONFIGNODE", "confignode.service.ConfigNode") if is_coordinator else ("IOTDB", "db.service.DataNode")
        heap = "jvm.coordinator_heap" if is_coordinator else "jvm.heap"
        conf = place.folder / "conf"
        return [
            require_java(_JAVA).java,
            f"-Xmx{place.instance.settings.get(heap, _MEMORIES[heap])}",
            "-XX:+UseSerialGC",
            f"-XX:MaxDirectMemorySize={'256M' if is_coordinator else place.instance.settings.get(_DIRECT, _MEMORIES[_DIRECT])}",
            "-XX:+PerfDisableSharedMem",
            "-XX:+ExitOnOutOfMemoryError",
            f"-Djava.io.tmpdir={place.folder / 'tmp'}",
            *_MODULES,
            f"-DTSFILE_HOME={place.data}",
            f"-DTSFILE_CONF={conf}",
            f"-D{kind}_HOME={place.data}",
            f"-D{kind}_DATA_HOME={place.data}",
            f"-D{kind}_CONF={conf}",
            f"-D{kind}_LOGS={place.data / 'logs'}",
            f"-DIOTDB_LOG_DIR={place.data / 'logs'}",
            f"-Dlogback.configurationFile={logback}",
            "-cp",
            class_path(place.software),
            f"org.apache.iotdb.{main}",
            "-s",
        ]

    def lets_others_start(self, instance: Instance, node: Node) -> bool:
        """The data node registers with the config node."""
        if not node.is_coordinator:
            return True
        with socket.socket() as probe:
            probe.settimeout(1.0)
            return probe.connect_ex((node.host, _CONFIG_PORT)) == 0

    def readiness(self, instance: Instance, node: Node) -> Callable[[], str]:
        """Whether it answers, and lets in nobody with the password that all new servers have."""
        answers = super().readiness(instance, node)

        def problem() -> str:
            return _change_password(instance, node) or answers()

        return problem

    def insight(self, instance: Instance, node: Node) -> Mapping[str, float]:
        """What the data node reports to Prometheus of files, flushes and garbage collection; nothing of one that keeps no metrics or does not answer."""
        if node.is_coordinator or instance.settings.get(_METRIC_LEVEL, _NO_METRICS) == _NO_METRICS:
            return {}
        with contextlib.suppress(OSError):
            address = f"http://{node.host}:{_METRICS_PORT}/metrics"
            with urllib.request.urlopen(address, timeout=_METRICS_WITHIN_S) as answer:
                return figures_of(answer.read().decode())
        return {}

    def url(self, instance: Instance) -> str:
        """The REST service, and how the log is kept, which it does not report to clients."""
        node = instance.nodes[0]
        mode = instance.settings.get(_WAL_MODE, "ASYNC").lower()
        return f"{with_credentials(self.name, instance, f'{node.host}:{node.port}')}&{_WAL_MODE}={mode}"


def figures_of(metrics: str) -> dict[str, float]:
    """The figures in a text as Prometheus reads it, by their names here."""
    # A kind of file that it has none of, it does not list.
    figures = {f"metrics.{figure}.{kind}": 0.0 for figure in ("file_size", "file_count") for kind in ("seq", "unseq")}
    for name, labels, value in _SAMPLE.findall(metrics):
        if name in _FIGURES:
            found = dict(_LABEL.findall(labels))
            figure = ".".join(["metrics", name, *(found.get(label, "") for label in _FIGURES[name])])
            figures[figure] = figures.get(figure, 0.0) + float(value)
    return figures


def _change_password(instance: Instance, node: Node) -> str:
    """Changes the administrator's password where it is still the one of new servers; why that failed, empty if it did not."""
    sql = f"ALTER USER {_ADMINISTRATOR} SET PASSWORD '{instance.password()}'"
    request = urllib.request.Request(
        f"http://{node.host}:{node.port}/rest/v2/nonQuery",
        json.dumps({"sql": sql}).encode(),
        {"Content-Type": "application/json"},
    )
    login = base64.b64encode(f"{_ADMINISTRATOR}:{_ADMINISTRATOR}".encode()).decode()
    request.add_header("Authorization", f"Basic {login}")
    try:
        with urllib.request.urlopen(request, timeout=_CHANGED_WITHIN_S) as answer:
            outcome = json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return "" if error.code == _NOT_LET_IN else str(error)
    except OSError as error:
        return str(error)
    return "the password was just changed" if outcome["code"] == _SUCCESS else str(outcome.get("message"))


def _of_the_lab(instance: Instance) -> dict[str, str]:
    host, port = instance.nodes[0].host, instance.nodes[0].port
    return {
        "cluster_name": "sensorbench",
        "cn_internal_address": host,
        "cn_internal_port": str(_CONFIG_PORT),
        "cn_consensus_port": str(_CONFIG_CONSENSUS_PORT),
        "cn_seed_config_node": f"{host}:{_CONFIG_PORT}",
        "dn_rpc_address": host,
        "dn_rpc_port": str(_RPC_PORT),
        "dn_internal_address": host,
        **{f"dn_{name}_port": str(number) for name, number in _DATA_PORTS.items()},
        **{f"dn_{name}_consensus_port": str(number) for name, number in _CONSENSUS_PORTS.items()},
        "dn_seed_config_node": f"{host}:{_CONFIG_PORT}",
        "enable_rest_service": "true",
        "rest_service_port": str(port),
        "dn_metric_reporter_list": "PROMETHEUS",
        "dn_metric_prometheus_reporter_port": str(_METRICS_PORT),
        # Who was let in once would be let in for eight hours, whatever became of the password.
        "cache_expire_in_seconds": "1",
    }


def _not_in_descriptors(keys: list[str], software: Path) -> list[str]:
    # A text in a class file: a one, its length, and its bytes.
    missing = {key: b"\x01" + len(key.encode()).to_bytes(2, "big") + key.encode() for key in keys}
    for jar in sorted((software / "lib").glob("*.jar")) if missing else []:
        if not jar.name.startswith(("iotdb-", "node-commons", "tsfile", "common")):
            continue
        with zipfile.ZipFile(jar) as archive:
            for name in filter(_DESCRIPTORS.fullmatch, archive.namelist()):
                content = archive.read(name)
                missing = {key: text for key, text in missing.items() if text not in content}
    return list(missing)
