"""Records what a PostgreSQL server of the lab does: its log is switched on for a while, and put back."""

import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sensorbench import lab
from sensorbench.errors import FailedError, UsageError
from sensorbench.traffic.entries import Skipped
from sensorbench.traffic.formats import RECORDED
from sensorbench.traffic.importing import make_trace
from sensorbench.traffic.postgresql_log import RECORD_PREFIX
from sensorbench.traffic.recording import WATCH_EVERY_S, OnSecond, watch
from sensorbench.traffic.trace import Trace

# Settings that have the server log each statement whole, with its duration and what was bound. None of them needs a restart.
LOG_SETTINGS = {
    "log_line_prefix": RECORD_PREFIX,
    "log_timezone": "UTC",
    "log_destination": "stderr",
    "log_statement": "none",
    "log_duration": "off",
    "log_min_duration_statement": "0",
    "log_min_messages": "warning",
    "log_min_error_statement": "error",
    "log_parameter_max_length": "-1",
    "log_parameter_max_length_on_error": "-1",
    "log_error_verbosity": "default",
}
_BEGIN, _END = "# sensorbench traffic record: begin", "# sensorbench traffic record: end"
_SETTINGS_FILE = "postgresql.auto.conf"
_PATIENCE_S = 15.0


def record_postgresql(instance: lab.Instance, duration_s: float, folder: Path, on_second: OnSecond) -> Trace:
    """Records what a server of the lab does by its log; see `record_traffic`. Raises UsageError for a server whose log has settings of its own."""
    fixed = sorted({*LOG_SETTINGS, "logging_collector"} & instance.settings.keys())
    if fixed:
        raise UsageError(
            f"{instance.name}: it was started with {fixed[0]}, which cannot be changed while it runs; start it without this setting"
        )
    log = instance.log
    with logged(instance):
        start = log.stat().st_size
        watch(instance, duration_s, on_second)
        end = log.stat().st_size
    with tempfile.TemporaryDirectory(prefix="sensorbench-traffic-") as place:
        recorded = Path(place) / log.name
        _copy(log, recorded, start, end)
        skipped = Skipped()
        entries = RECORDED.read(recorded, skipped)
        return make_trace(entries, folder, RECORDED, [log], skipped, instance.version)


@contextmanager
def logged(instance: lab.Instance) -> Iterator[None]:
    """Has a server log all statements inside the context; afterwards its settings are as they were before."""
    settings = instance.data_folder(instance.nodes[0]) / _SETTINGS_FILE
    # What one that was killed left is not what the server had.
    before = _without_ours(settings.read_text(encoding="utf-8"))
    ours = "".join(f"{name} = '{value}'\n" for name, value in LOG_SETTINGS.items())
    try:
        _set(instance, settings, f"{before}{_BEGIN}\n{ours}{_END}\n")
        yield
    finally:
        _set(instance, settings, before)


def _without_ours(text: str) -> str:
    begin, end = text.find(f"{_BEGIN}\n"), text.find(f"{_END}\n")
    return text if begin < 0 or end < begin else text[:begin] + text[end + len(_END) + 1 :]


def _set(instance: lab.Instance, settings: Path, text: str) -> None:
    """Writes into the file that is there, which stays its owner's, and waits until the server says that it reads it again."""
    process = instance.nodes[0].find()
    with settings.open("r+", encoding="utf-8") as file:
        file.write(text)
        file.truncate()
    if process is None:
        raise FailedError(f"{instance.name} ended while it was recorded; its settings are put back in {settings}")
    seen = instance.log.stat().st_size
    process.send_signal(signal.SIGHUP)
    until = time.monotonic() + _PATIENCE_S
    while b"reloading configuration files" not in _tail(instance.log, seen):
        if time.monotonic() > until:
            raise FailedError(f"{instance.name} did not read its settings again within {_PATIENCE_S:g} s; see {instance.log}")
        time.sleep(0.05)
    # Its sessions read them before their next statement, when the signal of the server has reached them.
    time.sleep(WATCH_EVERY_S)


def _tail(log: Path, start: int) -> bytes:
    with log.open("rb") as file:
        file.seek(start)
        return file.read()


def _copy(log: Path, to: Path, start: int, end: int) -> None:
    """Copies what the log got meanwhile; the server keeps writing into it."""
    with log.open("rb") as source, to.open("wb") as copy:
        source.seek(start)
        left = end - start
        while left > 0 and (block := source.read(min(left, 1 << 20))):
            copy.write(block)
            left -= len(block)
