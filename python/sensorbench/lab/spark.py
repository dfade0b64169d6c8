"""A Spark cluster of its own kind: a master, which is the coordinator, and workers that execute what applications give them.

Master and workers run as whoever calls, not as the servers' user: a driver and its executors write the same files. What they
execute is therefore only taken from who knows the instance's password, which lies in a file for the caller alone.
"""

import json
import re
import signal
import socket
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata, util
from pathlib import Path

from sensorbench.errors import FailedError
from sensorbench.lab.database import LabCluster, Place
from sensorbench.lab.instance import Instance, Node
from sensorbench.lab.jvm import missing_java, require_java
from sensorbench.lab.software import Source
from sensorbench.lab.state_dirs import ServerUser, calling_user

JAVA = (17, 11)
# The package of the extra that brings the driver, and with it the jars of all of Spark.
PACKAGE = "pyspark"
INSTALL = "run `make setup` in the checkout, or .uv/bin/uv pip install 'pyspark>=3.5,<3.6'"
_SCALA = "2.12"
_MASTER_PORT, _MASTER_PAGE, _WORKER_PAGE = 7077, 8080, 8081
_ANSWERS_WITHIN_S = 5.0
_CORES, _MEMORY = "worker.cores", "worker.memory"
_DEFAULTS = {_CORES: "1", _MEMORY: "2g"}
_FORMS = {_CORES: re.compile(r"[1-9]\d*"), _MEMORY: re.compile(r"[1-9]\d*[mg]")}
# Whoever changes these would leave the addresses of the lab, or let others in.
_OF_THE_LAB = (
    "spark.authenticate",
    "spark.master",
    "spark.driver.host",
    "spark.driver.bindAddress",
    "spark.ssl.",
    "spark.network.crypto.",
)

# Doors into Java's own modules that Spark goes through (org.apache.spark.launcher.JavaModuleOptions).
_MODULES = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.lang.invoke=ALL-UNNAMED",
    "--add-opens=java.base/java.lang.reflect=ALL-UNNAMED",
    "--add-opens=java.base/java.io=ALL-UNNAMED",
    "--add-opens=java.base/java.net=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/java.util.concurrent=ALL-UNNAMED",
    "--add-opens=java.base/java.util.concurrent.atomic=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.cs=ALL-UNNAMED",
    "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
    "--add-opens=java.base/sun.util.calendar=ALL-UNNAMED",
    "-Djdk.reflect.useDirectMethodHandle=false",
)


class SparkPackage(Source):
    """Spark as it comes with its package for Python."""

    @classmethod
    def installed(cls) -> "SparkPackage":
        """The version that is installed; without one, none."""
        try:
            return cls("spark", metadata.version(PACKAGE))
        except metadata.PackageNotFoundError:
            return cls("spark", "none")

    def missing(self) -> str | None:
        """The package, and a Java that fits."""
        if util.find_spec(PACKAGE) is None:
            return f"{PACKAGE} is not installed: {INSTALL}"
        return missing_java(JAVA)

    def unpack_into(self, folder: Path) -> None:
        """Nothing is unpacked."""
        raise FailedError(f"{self.missing()}")

    @property
    def folder(self) -> Path:
        """The package's folder."""
        found = util.find_spec(PACKAGE)
        if found is None or found.origin is None:
            raise FailedError(f"{self.missing()}")
        return Path(found.origin).parent

    @property
    def is_there(self) -> bool:
        """Whether it can be used as it is."""
        return self.missing() is None


class Spark(LabCluster):
    """Spark's standalone master with workers, each on an address of its own."""

    name = "spark"
    summary = "Spark, a standalone master with workers; it computes and stores nothing"
    used_as = "--spark"
    at_once_costs = "nothing"
    port = 7078
    other_ports = (_WORKER_PAGE,)
    coordinator_port = _MASTER_PORT
    stop_signal = signal.SIGKILL
    sources = (SparkPackage.installed(),)

    def user(self) -> ServerUser:
        """Whoever calls."""
        return calling_user()

    def unknown_settings(self, software: Path, user: ServerUser, settings: Mapping[str, str]) -> dict[str, str]:
        """Cores and memory of each worker, and whatever begins as Spark's own settings do."""
        return {key: why for key, value in settings.items() if (why := _problem(key, value))}

    def set_up(self, place: Place) -> None:
        """Empty folders."""
        for folder in (place.data, place.folder / "tmp", place.folder / "conf"):
            folder.mkdir(mode=0o700)

    def command(self, place: Place) -> list[str | Path]:
        """The master, or a worker; their logs go to their output."""
        _configure(place)
        jvm: list[str | Path] = [
            require_java(JAVA).java,
            *_MODULES,
            "-Xmx512m",
            "-XX:+UseSerialGC",
            "-XX:+PerfDisableSharedMem",
            f"-Djava.io.tmpdir={place.folder / 'tmp'}",
            "-cp",
            f"{place.folder / 'conf'}:{place.software / 'jars'}/*",
        ]
        host: list[str | Path] = ["--host", place.node.host, "--port", str(place.node.port), "--webui-port"]
        if place.node.is_coordinator:
            return [*jvm, "org.apache.spark.deploy.master.Master", *host, str(_MASTER_PAGE)]
        settings = {**_DEFAULTS, **place.instance.settings}
        resources: list[str | Path] = ["--cores", settings[_CORES], "--memory", settings[_MEMORY], "--work-dir", place.data]
        return [*jvm, "org.apache.spark.deploy.worker.Worker", *host, str(_WORKER_PAGE), *resources, self.url(place.instance)]

    def environment_of(self, place: Place) -> dict[str, str]:
        """All that it opens is opened at the node's own address, and so it is by executors, which get the same."""
        return {
            "SPARK_LOCAL_IP": place.node.host,
            "SPARK_CONF_DIR": str(place.folder / "conf"),
            "SPARK_LOCAL_DIRS": str(place.folder / "tmp"),
            "SPARK_HOME": str(place.software),
            # Workers ask for it before they look which jars there are (bin/load-spark-env.sh).
            "SPARK_SCALA_VERSION": _SCALA,
            "JAVA_HOME": str(require_java(JAVA).home),
        }

    def lets_others_start(self, instance: Instance, node: Node) -> bool:
        """Workers need the master, but not one another."""
        if not node.is_coordinator:
            return True
        with socket.socket() as probe:
            return probe.connect_ex((node.host, _MASTER_PORT)) == 0

    def readiness(self, instance: Instance, node: Node) -> Callable[[], str]:
        """Whether the master knows the worker."""

        def problem() -> str:
            try:
                known = [worker["host"] for worker in _described(instance)["workers"] if worker["state"] == "ALIVE"]
            except (OSError, ValueError) as error:
                return f"the master's page: {error}"
            return "" if node.host in known else "the master does not know it yet"

        return problem

    def join(self, instance: Instance, software: Path, user: ServerUser) -> None:
        """They belong to the cluster when the master knows them."""

    def add_nodes(self, instance: Instance, nodes: Sequence[Node], software: Path, user: ServerUser) -> None:
        """The master knows them already; applications that start from now on may use them."""

    def remove_node(self, instance: Instance, node: Node, software: Path, user: ServerUser) -> None:
        """The master gives what it executed to others."""

    def node_status(self, instance: Instance, user: ServerUser) -> dict[int, dict[str, str]]:
        """What the master says of each worker."""
        try:
            statuses = {worker["host"]: worker for worker in _described(instance)["workers"]}
        except (OSError, ValueError):
            return {}
        return {node.number: _shown(statuses[node.host]) for node in instance.nodes if node.host in statuses}

    def url(self, instance: Instance) -> str:
        """The master's URL."""
        master = _master(instance)
        return f"spark://{master.host}:{master.port}"


def _problem(key: str, value: str) -> str:
    if key in _FORMS:
        return "" if _FORMS[key].fullmatch(value) else f"{value} is not one; expected for example {_DEFAULTS[key]}"
    if not key.startswith("spark."):
        return f"expected {', '.join(_FORMS)}, or a setting of Spark's (spark.…)"
    if key.startswith(_OF_THE_LAB):
        return "the lab sets it itself"
    return "a value has one line" if "\n" in value else ""


def _configure(place: Place) -> None:
    """The settings of Spark's own, which no other user can read: the password is among them."""
    settings = {key: value for key, value in place.instance.settings.items() if key not in _FORMS}
    secret = {"spark.authenticate": "true", "spark.authenticate.secret": place.instance.password()}
    lines = [f"{key} {value}\n" for key, value in {**settings, **secret}.items()]
    place.write_secret("conf/spark-defaults.conf", "".join(lines))
    place.write_secret("conf/log4j2.properties", LOGGING)


# Spark's own is of the same form; its jars have none that goes to one place alone.
LOGGING = """rootLogger.level = warn
rootLogger.appenderRef.stdout.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""


def _described(instance: Instance) -> dict[str, list[dict[str, str]]]:
    """What the master's page says of its workers. Raises OSError, and ValueError for a page of a master that only starts."""
    with urllib.request.urlopen(f"http://{_master(instance).host}:{_MASTER_PAGE}/json/", timeout=_ANSWERS_WITHIN_S) as page:
        statuses: dict[str, list[dict[str, str]]] = json.load(page)
    return statuses


def _shown(worker: Mapping[str, str]) -> dict[str, str]:
    return {"state": str(worker["state"]), "cores": str(worker["cores"]), "cores used": str(worker["coresused"])}


def _master(instance: Instance) -> Node:
    if instance.coordinator is None:
        raise AssertionError("Spark has a master")
    return instance.coordinator
