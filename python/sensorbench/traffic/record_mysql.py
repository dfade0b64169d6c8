"""Records what clients send to a MySQL or MariaDB: the general log is switched on for a while, as a table, and put back.

As a table the log has times to the microsecond, which MariaDB's file has not, and can be read where the server is elsewhere. At a server of the lab
the slow log is switched on beside it, which has durations of sessions that begin meanwhile.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sensorbench import lab
from sensorbench.traffic.entries import Entry, Skipped
from sensorbench.traffic.formats import GENERAL_LOG
from sensorbench.traffic.importing import make_trace
from sensorbench.traffic.mysql_durations import Ended, with_durations
from sensorbench.traffic.mysql_log import is_statement
from sensorbench.traffic.recording import OnSecond, wait, watch
from sensorbench.traffic.sql import Cell, Server, put_back_afterwards
from sensorbench.traffic.trace import Trace

# Rows of a log that are read at a time.
_PAGE = 20_000
_GENERAL, _SLOW = "mysql.general_log", "mysql.slow_log"
# Connections are inside a database, of which every server has this.
_INSIDE = "information_schema"
_READ = {
    _GENERAL: (
        "SELECT CAST(event_time AS CHAR), CAST(thread_id AS SIGNED), CONVERT(command_type USING utf8mb4), CONVERT(argument USING utf8mb4)",
        {"at": "text", "session": "integer", "command": "text", "argument": "text"},
    ),
    _SLOW: (
        "SELECT CAST(thread_id AS SIGNED), CONVERT(sql_text USING utf8mb4), CAST(TIME_TO_SEC(query_time) * 1000000 AS SIGNED), "
        "CAST(rows_sent AS SIGNED)",
        {"session": "integer", "statement": "text", "took_us": "integer", "rows": "integer"},
    ),
}
# Time zones lie so far from one another, or a multiple of it.
_QUARTER_US = 900_000_000
# Rows may be written somewhat later than they say, and our own come after the end.
_SLACK_US = 60_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def record_mysql(instance: lab.Instance, duration_s: float, folder: Path, on_second: OnSecond) -> Trace:
    """Records a server of the lab; see `record_traffic`. The tables of its logs are emptied again if they were empty."""
    server = Server(lab.url_of(instance), inside=_INSIDE)
    empty = [table for table in (_GENERAL, _SLOW) if not _length(server, table)]
    trace = _record(server, folder, instance.version, lambda: watch(instance, duration_s, on_second), may_log_slow=True)
    for table in empty:
        server.ask(f"TRUNCATE TABLE {table}")
    return trace


def record_mysql_at(url: str, duration_s: float, folder: Path, on_second: OnSecond) -> Trace:
    """Records a server by its URL; see `record_traffic`. What it logs meanwhile stays in the table of its log. It has no durations: sessions would
    keep the setting that they take after the recording.
    """
    server = Server(url, inside=_INSIDE)
    (version,) = server.row("SELECT version()", {"version": "text"})
    return _record(server, folder, str(version), lambda: wait(duration_s, on_second, lambda _: None), may_log_slow=False)


def _record(server: Server, folder: Path, version: str, wait_until_over: Callable[[], None], *, may_log_slow: bool) -> Trace:
    first, first_slow = _length(server, _GENERAL), _length(server, _SLOW) if may_log_slow else 0
    clock = _Clock(server)
    with logged(server, folder, may_log_slow=may_log_slow) as has_durations:
        wait_until_over()
        end_us = clock.now_us()
    skipped = Skipped()
    entries = _entries(server, first, Zones(clock.began_us, end_us, clock.ahead_us), end_us, skipped)
    if has_durations:
        entries = with_durations(entries, _ended(server, first_slow))
    return make_trace(entries, folder, GENERAL_LOG, [Path(_GENERAL)], skipped, version)


@contextmanager
def logged(server: Server, folder: Path, *, may_log_slow: bool = False) -> Iterator[bool]:
    """Has a server log all statements inside the context, which is given whether it logs durations, too; afterwards its settings are as they were
    before.
    """
    columns = {"general_log": "integer", "slow_query_log": "integer", "log_output": "text", "long_query_time": "text"}
    general, slow, output, long_s = server.row(
        "SELECT @@GLOBAL.general_log, @@GLOBAL.slow_query_log, @@GLOBAL.log_output, CAST(@@GLOBAL.long_query_time AS CHAR)",
        columns,
    )
    ours = "TABLE"
    if general or slow:
        # Somebody reads these logs: they stay where they are.
        ours = str(output) if "TABLE" in str(output).split(",") else f"{output},TABLE"
    has_durations = may_log_slow and not slow
    changes: list[tuple[str, Cell, Cell]] = [("log_output", output, ours)]
    if has_durations:
        changes += [("long_query_time", float(str(long_s)), 0.0), ("slow_query_log", slow, 1)]
    changes.append(("general_log", general, 1))
    back = [(name, before) for name, before, _ in reversed(changes)]
    with put_back_afterwards(folder, [f"SET GLOBAL {name} = {before!r}" for name, before in back], lambda: _set(server, back)):
        _set(server, [(name, value) for name, _, value in changes])
        yield has_durations


def _set(server: Server, settings: list[tuple[str, Cell]]) -> None:
    for name, value in settings:
        server.ask(f"SET GLOBAL {name} = :value", value=value)


class _Clock:
    """The server's clock, by which its log is written."""

    def __init__(self, server: Server) -> None:
        columns = {"now": "text", "ahead": "integer"}
        now, ahead_s = server.row(
            "SELECT CAST(UTC_TIMESTAMP(6) AS CHAR), "
            "TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(), CONVERT_TZ(UTC_TIMESTAMP(), :utc, @@GLOBAL.time_zone))",
            columns,
            utc="+00:00",
        )
        self.began_us, self._began_s = _microseconds(str(now)), time.monotonic()
        # How far the server's time zone is ahead of UTC.
        self.ahead_us = int(ahead_s or 0) * 1_000_000

    def now_us(self) -> int:
        """The time there now (µs since 1970)."""
        return self.began_us + round((time.monotonic() - self._began_s) * 1e6)


class Zones:
    """Makes UTC of the times in the general log, each of which is in the time zone of its session; which that is the log does not say. Rows come in
    the order of their times, and lie within the recording.

    Args:
        began_us, end_us: when the recording began and ended (µs since 1970, UTC).
        ahead_us: how far the server's own time zone is ahead, which most sessions have.

    """

    def __init__(self, began_us: int, end_us: int, ahead_us: int) -> None:
        self._last_us, self._end_us, self._ahead_us = began_us, end_us, ahead_us
        self._of_sessions: dict[int, int] = {}

    def utc(self, session: int, at_us: int) -> int:
        """The time of the next row."""
        known = (self._of_sessions.get(session, self._ahead_us), self._ahead_us)
        nearest = round((at_us - self._last_us) / _QUARTER_US) * _QUARTER_US
        ahead_us = next((ahead for ahead in known if self._fits(at_us - ahead)), nearest)
        self._of_sessions[session] = ahead_us
        self._last_us = max(self._last_us, at_us - ahead_us)
        return at_us - ahead_us

    def _fits(self, at_us: int) -> bool:
        return self._last_us - _SLACK_US <= at_us <= self._end_us + _SLACK_US


def _length(server: Server, table: str) -> int:
    (rows,) = server.row(f"SELECT count(*) FROM {table}", {"rows": "integer"})
    return int(rows or 0)


def _rows(server: Server, table: str, first: int) -> Iterator[list[Cell]]:
    """The rows of a log from one on, some at a time. It keeps the order in which they were written."""
    select, columns = _READ[table]
    while True:
        rows = server.ask(f"{select} FROM {table} LIMIT :rows OFFSET :first", columns, rows=_PAGE, first=first)
        yield from rows
        if len(rows) < _PAGE:
            return
        first += len(rows)


def _entries(server: Server, first: int, zones: Zones, end_us: int, skipped: Skipped) -> Iterator[Entry]:
    """The statements of the general log until our own that end the recording."""
    for at, session, command, argument in _rows(server, _GENERAL, first):
        at_us = zones.utc(int(session or 0), _microseconds(str(at)))
        if at_us < end_us and is_statement(str(command), str(argument)):
            yield Entry(at_us, str(session), str(argument))
        else:
            skipped.entries += 1


def _ended(server: Server, first: int) -> Iterator[Ended]:
    for session, statement, took_us, rows in _rows(server, _SLOW, first):
        yield Ended(str(session), str(statement), int(took_us or 0), int(rows or 0))


def _microseconds(text: str) -> int:
    return (datetime.fromisoformat(text).replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
