"""Records what clients send to a server: logging is switched on for a while, and restored."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sensorbench import lab
from sensorbench.errors import UsageError
from sensorbench.traffic.record_cassandra import record_cassandra
from sensorbench.traffic.record_mysql import record_mysql, record_mysql_at
from sensorbench.traffic.record_postgresql import record_postgresql
from sensorbench.traffic.record_postgresql_at import record_postgresql_at
from sensorbench.traffic.record_redis import record_redis
from sensorbench.traffic.recording import OnSecond
from sensorbench.traffic.trace import Trace

_Record = Callable[[float, Path, OnSecond], Trace]
_OF_THE_LAB: Mapping[str, Callable[[lab.Instance, float, Path, OnSecond], Trace]] = {
    "postgresql": record_postgresql,
    "mariadb": record_mysql,
    "redis": record_redis,
    "redis+cluster": record_redis,
    "cassandra": record_cassandra,
}
# What SQL can switch on, read and put back.
_BY_URL: Mapping[str, Callable[[str, float, Path, OnSecond], Trace]] = {
    "postgresql": record_postgresql_at,
    "mariadb": record_mysql_at,
    "mysql": record_mysql_at,
}


@dataclass(frozen=True)
class Recorder:
    """A server that can be recorded, and how."""

    name: str
    record: _Record


def recordable(target: str, *, allow_settings: bool = False) -> Recorder:
    """The server that a target names. Raises UsageError if it cannot be recorded.

    Args:
        target: `lab:NAME`, or a URL.
        allow_settings: whether settings of a server that is not of the lab may be changed.

    """
    is_name = target.startswith("lab:")
    instance = lab.find_instance(target.removeprefix("lab:")) if is_name else lab.instance_at(target)
    if instance is not None:
        return _of_the_lab(target, instance)
    scheme = target.partition("://")[0]
    if scheme not in _BY_URL:
        raise UsageError(
            f"{_shown(target)}: it cannot be recorded; expected lab:NAME, or the URL of a server ({', '.join(_BY_URL)}). Have your own server write "
            "what it is sent, and make a trace of it with `sensorbench traffic import`: docs/how-to/traffic.md says how"
        )
    if not allow_settings:
        raise UsageError(
            f"{_shown(target)}: it is not a server of the lab, and recording changes settings of its log; allow that with --allow-settings: they are put "
            "back afterwards. Or have it write a log, and make a trace of it with `sensorbench traffic import`"
        )
    return Recorder(_shown(target), partial(_BY_URL[scheme], target))


def _shown(target: str) -> str:
    """A URL without its user and its options, which may hold a password."""
    scheme, mark, rest = target.partition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2].partition('?')[0]}"


def _of_the_lab(target: str, instance: lab.Instance) -> Recorder:
    if instance.database not in _OF_THE_LAB:
        raise UsageError(f"{target}: {instance.database} cannot be recorded; expected one of {', '.join(_OF_THE_LAB)}")
    if instance.hosts is not None:
        raise UsageError(f"{target}: its nodes are on hosts, and what they log is recorded of servers on this machine alone")
    ended = next((node for node in instance.nodes if not lab.runs(instance, node)), None)
    if ended is not None:
        raise UsageError(
            f"{target}: node {ended.number} is not running; start it with: sensorbench lab start-node {instance.name} --node {ended.number}"
        )
    return Recorder(instance.name, partial(_OF_THE_LAB[instance.database], instance))


def record_traffic(recorder: Recorder, duration_s: float, folder: Path, on_second: OnSecond) -> Trace:
    """Records what a server is sent for a while.

    Args:
        recorder: the server.
        duration_s: for how long.
        folder: where the trace is to be; it is made.
        on_second: called meanwhile with the seconds that are over.

    Returns:
        The trace. When recording is interrupted, settings are put back, and there is no trace.

    Raises:
        FailedError: if the server refuses, or ends meanwhile.
        UsageError: if nothing was sent to it, or its log cannot be read.

    """
    return recorder.record(duration_s, folder, on_second)
