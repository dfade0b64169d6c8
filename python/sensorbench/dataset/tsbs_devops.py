"""The data of TSBS (Time Series Benchmark Suite), generated: nine measurements of servers, as its use case `devops` has them.

Measurements, fields and distributions are those of TSBS at commit 37fced7, with its spelling (`postgresl`). CPU metrics and hosts are those
of cpu-only. Some fields follow from others: what is used of a disk from what is free.
"""

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa

from sensorbench._engine import generate_hosts, generate_walks
from sensorbench.dataset.dataset import CPU, SERVER_READINGS, Dataset, DatasetWriter, Description, Readings
from sensorbench.dataset.generated import WriteFiles
from sensorbench.dataset.tsbs import (
    CPU_FIELDS,
    DEVOPS,
    HOST_SCHEMA,
    HOSTS,
    MEASUREMENTS_VIEW,
    NOT_TSBS_NUMBERS,
    SITE_IS,
    Bounds,
    TsbsParameters,
    Walk,
    cpu_walks,
    measurement_schema,
    narrow_view,
    source_of,
)

_GIB = 2.0**30
_TERABYTE = 2.0**40
# What an inode takes.
_INODE = 4096.0
_SIXTEEN_GIB = 16 * _GIB

# What a column shows, for the engine: a field, or what follows from other columns.
_Shown = dict[str, float | dict[str, str | float | bool]]


@dataclass(frozen=True)
class _Measurement:
    """What of a measurement walks, and its columns where they are others."""

    walks: list[Walk]
    columns: dict[str, _Shown] | None = None

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(self.columns) if self.columns is not None else tuple(walk["name"] for walk in self.walks)

    def columns_for_the_engine(self) -> list[dict[str, str | _Shown]]:
        """Its columns, where they are not what walks."""
        return [{"name": name, "shown": shown} for name, shown in (self.columns or {}).items()]


def _counters(mean: float, *names: str) -> list[Walk]:
    """Fields that are raised by normally distributed steps, from 0 on."""
    return [{"name": name, "start": (0.0, 0.0), "change": {"counted": {"mean": mean, "deviation": 1.0}}} for name in names]


def _walks(mean: float, highest: float, *names: str, start: float = 0.0, deviation: float = 1.0) -> list[Walk]:
    """Fields that walk in normally distributed steps between 0 and a bound."""
    steps = {"normal": {"mean": mean, "deviation": deviation}}
    return [{"name": name, "start": (start, start), "bounds": (0.0, highest), "change": steps} for name in names]


def _unbounded(*names: str) -> list[Walk]:
    """Fields that walk in normally distributed steps, without bounds."""
    return [{"name": name, "start": (0.0, 0.0), "change": {"normal": {"mean": 1.0, "deviation": 1.0}}} for name in names]


def _constant(name: str, start: Bounds) -> Walk:
    """A field that stays what it is."""
    return {"name": name, "start": start, "change": {"fixed": {"step": 0.0}}}


def _share(name: str) -> Walk:
    """A field that is a share of something, and walks by a 64th of it."""
    return {"name": name, "start": (0.0, 1.0), "bounds": (0.0, 1.0), "change": {"normal": {"mean": 0.0, "deviation": 1.0 / 64.0}}}


def _field(name: str, factor: float = 1.0) -> _Shown:
    return {"field": {"field": name, "factor": factor}}


def _rest(of: str, without: str) -> _Shown:
    return {"rest": {"of": of, "without": without}}


def _part(share: str, of: str) -> _Shown:
    return {"part": {"share": share, "of": of}}


def _inodes(of: str) -> _Shown:
    return {"units": {"of": of, "unit": _INODE}}


def _percent(of: str, whole: str, *, is_whole_number: bool = False) -> _Shown:
    return {"percent": {"of": of, "whole": whole, "is_whole_number": is_whole_number}}


def _uptime(interval_s: float) -> Walk:
    """Seconds since the first interval."""
    return {"name": "uptime_in_seconds", "start": (0.0, 0.0), "change": {"fixed": {"step": interval_s}}}


def _redis(interval_s: float) -> _Measurement:
    low = ("sync_full", "sync_partial_ok", "sync_partial_err", "pubsub_channels", "pubsub_patterns", "latest_fork_usec")
    replication = ("connected_slaves", "master_repl_offset", "repl_backlog_active", "repl_backlog_size", "repl_backlog_histlen")
    cpu = ("used_cpu_sys", "used_cpu_user", "used_cpu_sys_children", "used_cpu_user_children")
    memory = ("used_memory", "used_memory_rss", "used_memory_peak", "used_memory_lua")
    return _Measurement(
        [
            _uptime(interval_s),
            *_counters(5.0, "total_connections_received"),
            *_counters(50.0, "expired_keys", "evicted_keys", "keyspace_hits", "keyspace_misses"),
            *_unbounded("instantaneous_ops_per_sec", "instantaneous_input_kbps", "instantaneous_output_kbps"),
            *_walks(50.0, 10_000.0, "connected_clients"),
            *_walks(50.0, _SIXTEEN_GIB, *memory, start=_SIXTEEN_GIB / 2),
            *_walks(50.0, 10_000.0, "rdb_changes_since_last_save"),
            *_walks(5.0, 1000.0, *low, *replication),
            *_walks(5.0, 100.0, "mem_fragmentation_ratio"),
            *_walks(5.0, 1000.0, *cpu),
        ]
    )


_POSTGRESL = (
    ("numbackends", "xact_commit", "xact_rollback", "blks_read", "blks_hit", "tup_returned", "tup_fetched"),
    ("tup_inserted", "tup_updated", "tup_deleted", "conflicts", "temp_files"),
    ("deadlocks", "blk_read_time", "blk_write_time"),
)


def _measurements(interval_s: float) -> dict[str, _Measurement]:
    """The measurements of each host, in TSBS's order."""
    return {
        CPU: _Measurement(cpu_walks(CPU_FIELDS)),
        "diskio": _Measurement(
            [
                *_counters(50.0, "reads", "writes"),
                *_counters(100.0, "read_bytes", "write_bytes"),
                *_counters(5.0, "read_time", "write_time", "io_time"),
            ]
        ),
        "disk": _Measurement(
            _walks(50.0, _TERABYTE, "free", start=_TERABYTE / 2),
            {
                "total": {"constant": _TERABYTE},
                "free": _field("free"),
                "used": _rest("total", "free"),
                "used_percent": _percent("used", "total", is_whole_number=True),
                "inodes_total": _inodes("total"),
                "inodes_free": _inodes("free"),
                "inodes_used": _rest("inodes_total", "inodes_free"),
            },
        ),
        "kernel": _Measurement(
            [
                _constant("boot_time", (0.0, 240.0)),
                *_counters(5.0, "interrupts", "context_switches", "processes_forked", "disk_pages_in", "disk_pages_out"),
            ]
        ),
        "mem": _Measurement(
            # A host has 8, 12 or 16 GiB.
            [_constant("units", (2.0, 5.0)), _share("used_share"), _share("cached_share"), _share("buffered_share")],
            {
                "total": _field("units", 4 * _GIB),
                "available": _rest("total", "used"),
                "used": _part("used_share", "total"),
                "free": _rest("total", "used"),
                "cached": _part("cached_share", "total"),
                "buffered": _part("buffered_share", "total"),
                "used_percent": _percent("used", "total"),
                "available_percent": _percent("available", "total"),
                "buffered_percent": _percent("buffered", "total"),
            },
        ),
        "net": _Measurement(
            [
                *_counters(50.0, "bytes_sent", "bytes_recv", "packets_sent", "packets_recv"),
                *_counters(5.0, "err_in", "err_out", "drop_in", "drop_out"),
            ]
        ),
        "nginx": _Measurement(
            [
                *_counters(5.0, "accepts"),
                *_walks(5.0, 100.0, "active"),
                *_counters(5.0, "handled"),
                *_walks(5.0, 100.0, "reading"),
                *_counters(5.0, "requests"),
                *_walks(5.0, 100.0, "waiting", "writing"),
            ]
        ),
        "postgresl": _Measurement(
            [
                *_walks(5.0, 1000.0, *_POSTGRESL[0], *_POSTGRESL[1]),
                *_walks(1024.0, _GIB, "temp_bytes"),
                *_walks(5.0, 1000.0, *_POSTGRESL[2]),
            ]
        ),
        "redis": _redis(interval_s),
    }


FIELDS = {name: measurement.fields for name, measurement in _measurements(1.0).items()}
# Fields that TSBS writes with decimals; all others are whole numbers.
WITH_DECIMALS = frozenset({"mem.used_percent", "mem.available_percent", "mem.buffered_percent"})
# Tags of a measurement's own, which its rows have besides those of the host.
OWN_TAGS = {
    "diskio": ("serial",),
    "disk": ("path", "fstype"),
    "net": ("interface",),
    "nginx": ("port", "server"),
    "redis": ("port", "server"),
}


def own_tag(measurement: str, tag: str) -> str:
    """The column of hosts with a tag that a measurement has of its own."""
    return f"{measurement}_{tag}"


_OWN_COLUMNS = tuple(own_tag(measurement, tag) for measurement, tags in OWN_TAGS.items() for tag in tags)


def host_schema(*, nullable: bool = False) -> pa.Schema:
    """The columns of hosts: those of cpu-only, and the tags that single measurements have."""
    return pa.schema([*HOST_SCHEMA, *(pa.field(name, pa.string(), nullable=nullable) for name in _OWN_COLUMNS)])


def generate(parameters: TsbsParameters, out: Path, seed: int, scale: float, write: WriteFiles) -> Dataset:
    """Generates the use case devops. Equal seeds give equal bytes; its CPU metrics and hosts are those of cpu-only.

    Args:
        parameters: hosts, start, duration and interval.
        out: the folder.
        seed: from which all rows follow.
        scale: the share of the duration, above 0 and at most 1.
        write: writes the files, here or elsewhere.

    Raises:
        UsageError: for a scale that leaves no row.

    """
    times = parameters.plan(parameters.epochs_at(scale))
    writer = DatasetWriter(out)
    for number, (name, measurement) in enumerate(_measurements(parameters.interval.total_seconds()).items()):
        plan = {
            **times,
            "hosts": parameters.devices,
            "measurement": number,
            "fields": measurement.walks,
            "columns": measurement.columns_for_the_engine(),
        }
        relation = Readings(name, SERVER_READINGS.series, SERVER_READINGS.time)
        schema = measurement_schema(measurement.fields)
        writer.add_generated(relation, schema, partial(generate_walks, json.dumps(plan), seed), write)
    hosts = Readings(HOSTS, SERVER_READINGS.series, None)
    writer.add_generated(hosts, host_schema(), partial(generate_hosts, parameters.devices, seed, of_measurements=True), write)
    writer.add_view(MEASUREMENTS_VIEW, narrow_form())
    return writer.finish(_description(parameters, seed, scale))


def narrow_form() -> str:
    """SQL of the readings of all measurements, one a field."""
    return " UNION ALL ".join(narrow_view(measurement, fields) for measurement, fields in FIELDS.items())


def _description(parameters: TsbsParameters, seed: int, scale: float) -> Description:
    return Description(
        name=parameters.name_of(DEVOPS),
        title=f"TSBS devops: nine measurements with {sum(map(len, FIELDS.values()))} fields of {parameters.span_of('hosts')}",
        generated=True,
        source=source_of(seed, "tags, fields and distributions"),
        license="Apache-2.0, like sensorbench",
        how_made=(
            "Counters grow by normally distributed steps; other fields walk in such steps, held within bounds, and many reach the upper one within 200 "
            "intervals and stay there. Some follow from others: what is used of a disk, and of the memory. Tags are evenly distributed. Values are not "
            "measurements of anything."
        ),
        site_is=SITE_IS,
        zone_is="the number of the host, from 0 on",
        seed=seed,
        scale=scale,
        notes=[
            "Rows are in the order in which TSBS writes them: in each relation interval by interval, and in each host by host. `hosts` has the tags of "
            "single measurements, too, with the measurement before their names.",
            NOT_TSBS_NUMBERS,
        ],
    )
