"""InfluxDB 1, as Debian has it."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path

from sensorbench.errors import FailedError
from sensorbench.lab.database import LabDatabase, Place
from sensorbench.lab.instance import Instance
from sensorbench.lab.processes import call
from sensorbench.lab.software import DebianPackages
from sensorbench.lab.state_dirs import ServerUser

# Nothing is sent to its makers, and no statistics are written beside the measured data.
# A shard that is not written for a second has its points in files, as those of a store that is no longer new have them. By default they lie in the log
# for ten minutes, not compressed, where what is loaded fits into memory.
_DEFAULTS: dict[str, str | bool] = {
    "data.cache-snapshot-write-cold-duration": "1s",
    "reporting-disabled": True,
    "data.index-version": "tsi1",
    "monitor.store-enabled": False,
    "http.log-enabled": False,
    "data.query-log-enabled": False,
}
_BACKUP_PORT = 8088


class Influxdb(LabDatabase):
    """InfluxDB 1, one server. It lets in whoever is on this machine: a first user can only be made when it runs."""

    name = "influxdb"
    summary = "InfluxDB 1, time series with tags and fields, one server"
    port = 8086
    other_ports = (_BACKUP_PORT,)
    sources = (DebianPackages("influxdb", "debian", ("influxdb",)),)

    memory_rule = (
        "a quarter for points that are not on disk yet (data.cache-max-memory-size; more are refused); "
        "the rest is the system's cache, in which its files are mapped"
    )

    def memory_settings(self, memory_bytes: int) -> dict[str, str]:
        """The cache of writes."""
        return {"data.cache-max-memory-size": str(memory_bytes // 4)}

    def unknown_settings(self, software: Path, user: ServerUser, settings: Mapping[str, str]) -> dict[str, str]:
        """The server prints its settings itself: SECTION.KEY of its file."""
        known = _known(software, user) if settings else {}
        problems = {}
        for key, value in settings.items():
            if key not in known:
                problems[key] = "it is not among the settings (SECTION.KEY) that influxd config prints"
            elif not _has_type_of(known[key], value):
                problems[key] = f"expected a value like {json.dumps(known[key])}"
        return problems

    def make_credentials(self, instance: Instance) -> None:
        """There are none."""

    def set_up(self, place: Place) -> None:
        """An empty folder."""
        place.data.mkdir(mode=0o700)
        place.user.owns(place.data)

    def command(self, place: Place) -> list[str | Path]:
        """The server with a file of settings."""
        known = _known(place.software, place.user)
        settings: dict[str, str | bool | int | float] = {
            **_DEFAULTS,
            "bind-address": f"{place.node.host}:{_BACKUP_PORT}",
            "http.bind-address": f"{place.node.host}:{place.node.port}",
            "meta.dir": str(place.data / "meta"),
            "data.dir": str(place.data / "data"),
            "data.wal-dir": str(place.data / "wal"),
        }
        for key, text in place.instance.settings.items():
            settings[key] = text if isinstance(known[key], str) else json.loads(text)
        file = place.write_secret("influxdb.conf", _written(settings))
        return [_program(place.software), "run", "-config", file]

    def url(self, instance: Instance) -> str:
        """The server; drivers make a database of their own there."""
        node = instance.nodes[0]
        return f"{self.name}://{node.host}:{node.port}"


def _program(software: Path) -> Path:
    return software / "usr" / "bin" / "influxd"


def _known(software: Path, user: ServerUser) -> dict[str, str | bool | int | float]:
    """The server's settings with their defaults."""
    printed = call([_program(software), "config"], folder=Path("/"), user=user, environment={})
    if printed.returncode != 0:
        raise FailedError(f"influxd config failed: {printed.stderr.strip()[-300:]}")
    known: dict[str, str | bool | int | float] = {}
    for section, value in tomllib.loads(printed.stdout).items():
        members = {f"{section}.{key}": inner for key, inner in value.items()} if isinstance(value, dict) else {section: value}
        known |= {key: inner for key, inner in members.items() if isinstance(inner, str | bool | int | float)}
    return known


def _has_type_of(default: str | bool | int | float, text: str) -> bool:
    if isinstance(default, str):
        return True
    try:
        value = json.loads(text)
    except ValueError:
        return False
    return (
        isinstance(value, bool) if isinstance(default, bool) else isinstance(value, int | float) and not isinstance(value, bool)
    )


def _written(settings: Mapping[str, str | bool | int | float]) -> str:
    """The file: keys without a section come first, as TOML wants it."""
    sections: dict[str, list[str]] = {"": []}
    for key, value in settings.items():
        section, _, name = key.rpartition(".")
        sections.setdefault(section, []).append(f"{name} = {json.dumps(value)}")
    return "\n".join(line for section, lines in sections.items() for line in ([f"[{section}]"] if section else []) + lines) + "\n"
