"""Records what clients send to a Cassandra of the lab, by its full query log."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from sensorbench import lab
from sensorbench.traffic.cassandra_log import entries_of
from sensorbench.traffic.cassandra_types import Columns
from sensorbench.traffic.entries import Entry, Skipped
from sensorbench.traffic.formats import QUERY_LOG
from sensorbench.traffic.importing import make_trace
from sensorbench.traffic.recording import OnSecond, watch
from sensorbench.traffic.sql import Server
from sensorbench.traffic.trace import Trace


def record_cassandra(instance: lab.Instance, duration_s: float, folder: Path, on_second: OnSecond) -> Trace:
    """Records all nodes of a Cassandra of the lab; see `record_traffic`."""
    with lab.query_logs(instance) as logs:
        watch(instance, duration_s, on_second)
        folders = logs.stop()
        entries = _entries(instance, folders, _columns(instance))
        return make_trace(entries, folder, QUERY_LOG, folders, Skipped(), instance.version)


def _columns(instance: lab.Instance) -> Columns:
    """The types of the columns of all tables, which the log does not have."""
    server = Server(lab.url_of(instance), inside="system_schema")
    names = ("keyspace_name", "table_name", "column_name", "type")
    columns: dict[tuple[str, str], dict[str, str]] = {}
    for keyspace, table, column, its_type in server.ask(f"SELECT {', '.join(names)} FROM columns", dict.fromkeys(names, "text")):
        columns.setdefault((str(keyspace), str(table)), {})[str(column)] = str(its_type)
    return columns


def _entries(instance: lab.Instance, folders: Sequence[Path], columns: Columns) -> Iterator[Entry]:
    """Sessions of different nodes are different ones."""
    for number, folder in enumerate(folders):
        for entry in entries_of(folder, lab.read_query_log(instance.database, folder, instance.version), columns):
            entry.session = (number, entry.session)
            yield entry
