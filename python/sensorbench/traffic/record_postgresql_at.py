"""Records what clients send to a PostgreSQL that is not of the lab: its settings are changed and its log is read by SQL alone."""

import base64
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from sensorbench.errors import FailedError, UsageError
from sensorbench.traffic.entries import Entry, Skipped
from sensorbench.traffic.formats import RECORDED
from sensorbench.traffic.importing import make_trace
from sensorbench.traffic.record_postgresql import LOG_SETTINGS
from sensorbench.traffic.recording import WATCH_EVERY_S, OnSecond, wait
from sensorbench.traffic.sql import MARK, Server, put_back_afterwards
from sensorbench.traffic.trace import Trace

_PATIENCE_S = 15.0
_BYTES = 1 << 20
_NAMES = ", ".join(f"'{name}'" for name in LOG_SETTINGS)
# Where ALTER SYSTEM writes: what stands there is the owner's, and what does not has its value from elsewhere.
_OF_ALTER_SYSTEM = (
    "SELECT name, setting FROM pg_file_settings WHERE sourcefile = current_setting('data_directory') || '/postgresql.auto.conf' "
    f"AND name IN ({_NAMES}) ORDER BY seqno"
)


def record_postgresql_at(url: str, duration_s: float, folder: Path, on_second: OnSecond) -> Trace:
    """Records a server by its URL; see `record_traffic`. Raises UsageError if its log cannot be read by SQL."""
    server = Server(url)
    columns = {"collector": "text", "reads": "boolean", "alters": "text", "version": "text"}
    collector, reads, is_superuser, version = server.row(
        "SELECT current_setting('logging_collector'), "
        "has_function_privilege('pg_read_binary_file(text, bigint, bigint, boolean)', 'execute'), "
        "current_setting('is_superuser'), current_setting('server_version')",
        columns,
    )
    if collector != "on":
        raise UsageError(
            f"{server.name}: logging_collector is off, so that SQL cannot read its log; set it to on and restart the server, or have the "
            "server write a log and import it: docs/how-to/traffic.md"
        )
    if not reads or is_superuser != "on":
        raise UsageError(
            f"{server.name}: this user may not change its settings and read its log; expected a superuser. Or have the server write a log "
            "and import it: docs/how-to/traffic.md"
        )
    with tempfile.TemporaryDirectory(prefix="sensorbench-traffic-") as place:
        recorded = Path(place) / "log"
        with logged(server, folder), recorded.open("wb") as copy:
            log = _Log(server, copy)
            wait(duration_s, on_second, lambda _: log.follow())
            log.follow()
        skipped = Skipped()
        return make_trace(_entries(recorded, skipped), folder, RECORDED, [Path(log.name)], skipped, str(version))


@contextmanager
def logged(server: Server, folder: Path) -> Iterator[None]:
    """Has a server log all statements inside the context; afterwards its settings are as they were before."""
    before = {str(name): str(value) for name, value in server.ask(_OF_ALTER_SYSTEM, {"name": "text", "value": "text"})}
    (destination,) = server.row("SELECT current_setting('log_destination')", {"destination": "text"})
    # Logs of other forms, which somebody may read, continue.
    forms = [form.strip() for form in str(destination).split(",")]
    ours = {**LOG_SETTINGS, "log_destination": ",".join(dict.fromkeys([*forms, "stderr"]))}
    back = [
        f"ALTER SYSTEM SET {name} = {_quoted(before[name])}" if name in before else f"ALTER SYSTEM RESET {name}" for name in ours
    ]
    with put_back_afterwards(folder, [*back, _RELOAD], lambda: _send(server, back)):
        _send(server, [f"ALTER SYSTEM SET {name} = {_quoted(value)}" for name, value in ours.items()])
        yield


_RELOAD = "SELECT pg_reload_conf()"


def _quoted(value: str) -> str:
    """A value as a literal: ALTER SYSTEM takes no parameters. The values are our own, and those that the server said itself."""
    return "'" + value.replace("'", "''") + "'"


def _send(server: Server, statements: list[str]) -> None:
    for statement in statements:
        server.ask(statement)
    server.ask(_RELOAD, {"is_read": "boolean"})
    # Its sessions read them before their next statement, when the signal of the server has reached them.
    time.sleep(WATCH_EVERY_S)


class _Log:
    """The server's log, copied as it grows, also when the server continues with another file."""

    def __init__(self, server: Server, copy: BinaryIO) -> None:
        self._server, self._copy = server, copy
        until = time.monotonic() + _PATIENCE_S
        while not (name := self._current()):
            if time.monotonic() > until:
                raise FailedError(
                    f"{server.name}: it opened no log within {_PATIENCE_S:g} s after log_destination was set to stderr"
                )
            time.sleep(WATCH_EVERY_S)
        self.name = name
        (self._read,) = map(int, map(str, server.row("SELECT size FROM pg_stat_file(:name)", {"size": "integer"}, name=name)))

    def _current(self) -> str | None:
        (name,) = self._server.row("SELECT pg_current_logfile('stderr')", {"name": "text"})
        return None if name is None else str(name)

    def follow(self) -> None:
        """Copies what is new."""
        current = self._current()
        self._copy_rest()
        if current and current != self.name:
            self.name, self._read = current, 0
            self._copy_rest()

    def _copy_rest(self) -> None:
        while True:
            (text,) = self._server.row(
                "SELECT encode(pg_read_binary_file(:name, :first, :bytes, true), 'base64')",
                {"part": "text"},
                name=self.name,
                first=self._read,
                bytes=_BYTES,
            )
            part = base64.b64decode(str(text or ""))
            self._copy.write(part)
            self._read += len(part)
            if len(part) < _BYTES:
                return


def _entries(recorded: Path, skipped: Skipped) -> Iterator[Entry]:
    """The statements of others."""
    for entry in RECORDED.read(recorded, skipped):
        if MARK in entry.statement:
            skipped.entries += 1
        else:
            yield entry
