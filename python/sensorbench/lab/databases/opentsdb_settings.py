"""Settings of OpenTSDB: what the lab sets itself, what users may set, and the files that follow from both."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from sensorbench.errors import UsageError
from sensorbench.lab.databases.hbase_settings import not_in_classes, processors_option
from sensorbench.lab.jvm import size_of_setting

# What begins like this is of OpenTSDB's daemon, or of the client of HBase in it (asynchbase), which reads the same file; all other settings are
# those of the HBase below.
_OF_DAEMON = "tsd."
_OF_CLIENT = ("hbase.rpcs.", "hbase.region_client.", "hbase.nsre.")
TSD_HEAP = "jvm.tsd_heap"
_TSD_HEAP_DEFAULT = "512M"
# How the table of points is made: HBase's own names.
DURABILITY = "tables.durability"
_DURABILITIES = ("SKIP_WAL", "ASYNC_WAL", "SYNC_WAL", "FSYNC_WAL")
_SALT_WIDTH = "tsd.storage.salt.width"
_SALT_BUCKETS = "tsd.storage.salt.buckets"
# OpenTSDB's own, where a salt has a width and nothing is said of buckets.
_BUCKETS_DEFAULT = 20
_NUMBERS = {_SALT_WIDTH: re.compile(r"[01]"), _SALT_BUCKETS: re.compile(r"[1-9]\d?|1\d\d|2[0-4]\d|25[0-6]")}

# Whoever changes these would leave the addresses and folders of the lab, or tables that it makes.
_OF_THE_LAB = (
    "tsd.network.bind",
    "tsd.network.port",
    "tsd.http.staticroot",
    "tsd.http.cachedir",
    "tsd.storage.hbase.",
    "tsd.storage.uid.width.",
)

# Not OpenTSDB's own: what the driver needs, and waits of a second or hours where a benchmark can wait for neither.
_DEFAULTS = {
    "tsd.core.auto_create_metrics": "true",
    "tsd.http.query.allow_delete": "true",
    "tsd.http.request.enable_chunked": "true",
    "tsd.http.request.max_chunk": "16777216",
    "tsd.http.show_stack_trace": "false",
    # What was written last holds, where a row was compacted meanwhile; else a read that meets both fails.
    "tsd.storage.fix_duplicates": "true",
    # A synced write waits for this many ms; OpenTSDB's own is 1000. (tsd.storage.flush_interval is documented, but OpenTSDB 2.4 never reads it.)
    "hbase.rpcs.buffered_flush_interval": "20",
    # Rows of hours that are over become one cell each within seconds, not within hours: OpenTSDB's own are 10 (s), 2 and 100.
    "tsd.storage.compaction.flush_interval": "1",
    "tsd.storage.compaction.flush_speed": "3600",
    "tsd.storage.compaction.min_flush_threshold": "1",
}

_LOGBACK = """<configuration><appender name="OUT" class="ch.qos.logback.core.ConsoleAppender">
<encoder><pattern>%d %p opentsdb [%t] %c{0}: %m%n</pattern></encoder></appender>
<root level="WARN"><appender-ref ref="OUT"/></root></configuration>
"""


def check(settings: Mapping[str, str], software: Path) -> dict[str, str]:
    """Settings of OpenTSDB that it does not know, each with why. Raises UsageError for those that cannot be as they are."""
    for key, value in settings.items():
        if key.startswith(_OF_THE_LAB):
            raise UsageError(
                f"--server-setting {key}: the lab sets it itself: its servers have addresses, folders and tables of their own"
            )
        if key.startswith((_OF_DAEMON, *_OF_CLIENT)) and len(value.splitlines()) != 1:
            raise UsageError(f"--server-setting {key}: expected a value of one line")
        if key == TSD_HEAP:
            size_of_setting(key, value)
        if key == DURABILITY and value not in _DURABILITIES:
            raise UsageError(f"--server-setting {key}={value}: expected one of {', '.join(_DURABILITIES)}")
        if key in _NUMBERS and not _NUMBERS[key].fullmatch(value):
            expected = "0 or 1" if key == _SALT_WIDTH else "a number from 1 to 256"
            raise UsageError(f"--server-setting {key}={value}: expected {expected}")
    unknown: dict[str, str] = {}
    for beginning, jars in ((_OF_DAEMON, "opentsdb-[0-9]*.jar"), (_OF_CLIENT, "asynchbase-[0-9]*.jar")):
        own = [key for key in settings if key.startswith(beginning)]
        missing = not_in_classes(own, sorted((software / "lib").glob(jars)))
        unknown |= dict.fromkeys(missing, "no class of OpenTSDB or its client of HBase has this name of a setting")
    return unknown


def of_hbase(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings that are HBase's."""
    others = (_OF_DAEMON, *_OF_CLIENT, TSD_HEAP, DURABILITY)
    return {key: value for key, value in settings.items() if not key.startswith(others)}


def salt_buckets(settings: Mapping[str, str]) -> int:
    """How many buckets the keys of points are spread over; 0 where they are not salted."""
    return int(settings.get(_SALT_BUCKETS, _BUCKETS_DEFAULT)) if settings.get(_SALT_WIDTH, "0") != "0" else 0


def daemon_settings(settings: Mapping[str, str], cpus: Iterable[int] | None) -> list[str]:
    """The heap and the processors of the daemon's virtual machine."""
    return [f"-Xmx{settings.get(TSD_HEAP, _TSD_HEAP_DEFAULT)}", *processors_option(settings, cpus)]


def opentsdb_conf(of_the_lab: Mapping[str, str], settings: Mapping[str, str]) -> str:
    """The daemon's file of settings; what users set replaces a default."""
    users = {key: value for key, value in settings.items() if key.startswith((_OF_DAEMON, *_OF_CLIENT))}
    return "".join(f"{key}={value}\n" for key, value in {**_DEFAULTS, **users, **of_the_lab}.items())


def logback_xml() -> str:
    """The file that says how the daemon logs."""
    return _LOGBACK
