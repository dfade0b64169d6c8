"""The forms of logs that become traces, and how each is recognised by its first lines."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from sensorbench.errors import UsageError
from sensorbench.traffic.cassandra_log import is_query_log, read_query_log
from sensorbench.traffic.entries import Entry, LogFormat, Skipped
from sensorbench.traffic.http_requests import is_request
from sensorbench.traffic.importing import make_trace
from sensorbench.traffic.influxdb_lines import is_line_protocol, is_point, read_influxdb_lines, read_influxdb_points
from sensorbench.traffic.json_lines import read_json_lines
from sensorbench.traffic.mysql_log import is_slow_log, read_general_log, read_slow_log
from sensorbench.traffic.parquet_rows import is_parquet, read_parquet
from sensorbench.traffic.postgresql_log import read_csvlog, read_jsonlog, read_recorded
from sensorbench.traffic.redis_log import is_monitored, is_resp, read_monitor, read_resp
from sensorbench.traffic.remote_write import is_remote_write, read_remote_write
from sensorbench.traffic.trace import Trace

CSVLOG = LogFormat("postgresql-csvlog", "postgresql", "postgresql", read_csvlog)
JSONLOG = LogFormat("postgresql-jsonlog", "postgresql", "postgresql", read_jsonlog)
RECORDED = LogFormat("postgresql-recorded", "postgresql", "postgresql", read_recorded)
JSON_LINES = LogFormat("json-lines", "postgresql", "postgresql", read_json_lines)
SLOW_LOG = LogFormat("mysql-slow-log", "mysql", "mysql", read_slow_log)
GENERAL_LOG = LogFormat("mysql-general-log", "mysql", "mysql", read_general_log)
MONITOR = LogFormat("redis-monitor", "redis", None, read_monitor)
RESP = LogFormat("redis-resp", "redis", None, read_resp)
QUERY_LOG = LogFormat("cassandra-full-query-log", "cassandra", "cassandra", read_query_log)
INFLUXDB_LINES = LogFormat("influxdb-lines", "influxdb", None, read_influxdb_lines)
INFLUXDB_POINTS = LogFormat("influxdb-points", "influxdb", None, read_influxdb_points)
REMOTE_WRITE = LogFormat("prometheus-remote-write", "prometheus", None, read_remote_write)
PARQUET = LogFormat("parquet", "postgresql", "postgresql", read_parquet)
FORMATS = {
    log_format.name: log_format
    for log_format in (
        CSVLOG,
        JSONLOG,
        RECORDED,
        SLOW_LOG,
        GENERAL_LOG,
        MONITOR,
        RESP,
        QUERY_LOG,
        INFLUXDB_LINES,
        INFLUXDB_POINTS,
        REMOTE_WRITE,
        JSON_LINES,
        PARQUET,
    )
}
_FIRST_BYTES = 65_536
# A log of MySQL that a server opened again without writing to it has its header of three lines twice.
_FIRST_LINES = 8
_CSV_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} [^,]+,")


def recognise(path: Path) -> LogFormat:
    """The form of a log, by its first line, or by the files of a folder. Raises UsageError if it is none of those that are known, or the file cannot be read."""
    try:
        if is_query_log(path):
            return QUERY_LOG
        if is_parquet(path):
            return PARQUET
        with path.open(encoding="utf-8", errors="replace") as file:
            lines = [line.rstrip("\n") for line in (file.readline(_FIRST_BYTES) for _ in range(_FIRST_LINES)) if line]
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; expected a log of statements") from None
    first = lines[0] if lines else ""
    if first.startswith("sensorbench "):
        return RECORDED
    if _CSV_TIME.match(first):
        return CSVLOG
    is_slow = is_slow_log(lines)
    if is_slow is not None:
        return SLOW_LOG if is_slow else GENERAL_LOG
    if is_monitored(first):
        return MONITOR
    if is_resp(first):
        return RESP
    if is_point(first):
        return INFLUXDB_POINTS
    try:
        keys = json.loads(first)
    except ValueError:
        keys = None
    if isinstance(keys, dict):
        if "error_severity" in keys:
            return JSONLOG
        if "statement" in keys:
            return JSON_LINES
        if is_request(keys):
            return _of_requests(path, str(keys["path"]))
    raise UsageError(f"{path}: its first line is of no known log; name its form with --log-format: {', '.join(sorted(FORMATS))}")


def _of_requests(path: Path, requested: str) -> LogFormat:
    """The form of captured requests, by the path of the first."""
    if is_line_protocol(requested):
        return INFLUXDB_LINES
    if is_remote_write(requested):
        return REMOTE_WRITE
    raise UsageError(
        f"{path}:1: path: {requested!r} is none of InfluxDB's line protocol (/write, /api/v2/write) or of remote write (/api/v1/write); name the "
        f"form with --log-format: {INFLUXDB_LINES.name}, {REMOTE_WRITE.name}"
    )


def import_logs(paths: Sequence[Path], folder: Path, log_format: LogFormat | None = None) -> Trace:
    """Makes a trace of logs.

    Args:
        paths: the logs, in the order in which they were written; all of the same form.
        folder: where the trace is to be; it is made.
        log_format: their form; by their first lines if None.

    Returns:
        The trace.

    Raises:
        UsageError: for a log that cannot be read, that has no statement, or that has another form than the first.

    """
    forms = [log_format or recognise(path) for path in paths]
    other = next((path for path, form in zip(paths, forms, strict=True) if form is not forms[0]), None)
    if other is not None:
        raise UsageError(f"{other}: expected the form of {paths[0]} ({forms[0].name}); import logs of one form at a time")
    skipped = Skipped()
    return make_trace(_entries(paths, forms[0], skipped), folder, forms[0], paths, skipped)


def _entries(paths: Sequence[Path], log_format: LogFormat, skipped: Skipped) -> Iterator[Entry]:
    for path in paths:
        try:
            yield from log_format.read(path, skipped)
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}; expected a log of statements") from None
