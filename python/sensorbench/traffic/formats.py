"""The forms of logs that become traces, and how each is recognised by its first lines."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from sensorbench.errors import UsageError
from sensorbench.traffic.entries import Entry, LogFormat, Skipped
from sensorbench.traffic.importing import make_trace
from sensorbench.traffic.json_lines import read_json_lines
from sensorbench.traffic.mysql_log import is_slow_log, read_general_log, read_slow_log
from sensorbench.traffic.postgresql_log import read_csvlog, read_jsonlog, read_recorded
from sensorbench.traffic.trace import Trace

CSVLOG = LogFormat("postgresql-csvlog", "postgresql", "postgresql", read_csvlog)
JSONLOG = LogFormat("postgresql-jsonlog", "postgresql", "postgresql", read_jsonlog)
RECORDED = LogFormat("postgresql-recorded", "postgresql", "postgresql", read_recorded)
JSON_LINES = LogFormat("json-lines", "postgresql", "postgresql", read_json_lines)
SLOW_LOG = LogFormat("mysql-slow-log", "mysql", "mysql", read_slow_log)
GENERAL_LOG = LogFormat("mysql-general-log", "mysql", "mysql", read_general_log)
FORMATS = {log_format.name: log_format for log_format in (CSVLOG, JSONLOG, RECORDED, JSON_LINES, SLOW_LOG, GENERAL_LOG)}
_FIRST_BYTES = 65_536
# A log of MySQL that a server opened again without writing to it has its header of three lines twice.
_FIRST_LINES = 8
_CSV_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} [^,]+,")


def recognise(path: Path) -> LogFormat:
    """The form of a log, by its first line. Raises UsageError where it is none of those that are known, or the file cannot be read."""
    try:
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
    try:
        keys = json.loads(first)
    except ValueError:
        keys = None
    if isinstance(keys, dict):
        if "error_severity" in keys:
            return JSONLOG
        if "statement" in keys:
            return JSON_LINES
    raise UsageError(f"{path}: its first line is of no known log; name its form with --log-format: {', '.join(sorted(FORMATS))}")


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
