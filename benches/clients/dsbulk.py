"""dsbulk, DataStax's bulk loader for Cassandra, from the Maven repository."""

import tempfile
from pathlib import Path

from benches.clients import tools
from benches.clients.loading import rate_of_a_tool

from sensorbench.lab import Instance
from sensorbench.lab.helpers import class_path
from sensorbench.lab.jvm import require_java
from sensorbench.lab.software import MavenClasspath

_VERSION = "1.10.0"
_PARTS = ("batcher-reactor", "codecs-jdk", "connectors-commons", "connectors-csv", "executor-reactor", "runner", "url")
SOURCE = MavenClasspath(
    "dsbulk",
    _VERSION,
    f"com.datastax.oss:dsbulk-workflow-load:{_VERSION}",
    "25025b7bd9e352406d0933edb76cb85e4a888d16706f5cc0bd8a315b2c17d99f",
    (17, 11),
    (*(f"com.datastax.oss:dsbulk-{part}:{_VERSION}" for part in _PARTS), "com.univocity:univocity-parsers:2.9.1"),
)


def rate(instance: Instance, keyspace: str, table: str, columns: list[str], file: Path, rows: int) -> float:
    """Rows per second of a file of CSV without a header, whose times are milliseconds; its virtual machine has to start, too."""
    node, mapping = instance.nodes[0], ",".join(f"{place}={column}" for place, column in enumerate(columns))
    with tempfile.TemporaryDirectory() as folder:
        command: tools.Words = [
            require_java(SOURCE.java).java, "-Xmx512m", "-cp", class_path(SOURCE.get()),
            "com.datastax.oss.dsbulk.runner.DataStaxBulkLoader", "load", "-h", node.host, "-port", node.port,
            "-k", keyspace, "-t", table, "-url", file, "-header", "false", "-m", mapping, "-maxErrors", 0, "-logDir", folder,
            "--codec.timestamp", "UNITS_SINCE_EPOCH", "--codec.unit", "MILLISECONDS",
        ]  # fmt: skip
        return rate_of_a_tool(command, rows)
