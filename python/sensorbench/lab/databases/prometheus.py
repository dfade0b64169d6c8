"""Prometheus: as Debian has it, or a current version that Go builds."""

import re
from collections.abc import Mapping
from pathlib import Path

from sensorbench.lab.database import LabDatabase, Place
from sensorbench.lab.databases.prometheus_blocks import BLOCK, LATE_WINDOW, SOURCES, Blocks, program
from sensorbench.lab.flags import printed_flags, problem_of_flag, with_problems
from sensorbench.lab.instance import Instance
from sensorbench.lab.processes import call
from sensorbench.lab.state_dirs import ServerUser

# Data are loaded that are years old. With the usual blocks of 2 hours the server takes nothing that is an hour older than its newest sample,
# but late, and makes a block of each 2 hours of history, one after the other. In one long block all of it stays in the head and its log.
_DEFAULTS = {
    LATE_WINDOW: "100y",
    BLOCK: "200y",
    "storage.tsdb.retention.time": "100y",
}
# Compactions of late samples look into each block's length between the oldest and the newest of them; two samples three years apart, which are
# 13,000 blocks of 2 hours, took 99 s of a CPU.
_MAX_LATE_BLOCKS = 1000
# Flags for tests, which the server does not print.
_HIDDEN = ("storage.tsdb.max-block-duration", BLOCK)
_DAY_MS = 86_400_000
_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": _DAY_MS, "w": 7 * _DAY_MS, "y": 365 * _DAY_MS}
_PART = re.compile(r"(\d+)(ms|[smhdwy])")
# Files, addresses and what the driver needs are the lab's own.
_OF_THE_LAB = re.compile(r"config\.file|storage\.tsdb\.path|web\..+|storage\.agent\..+|help.*|version")
_FLAG = re.compile(r"^ +(?:-\w, )?--(?:\[no-\])?(?P<name>[\w.-]+)(?P<value>=?)", flags=re.MULTILINE)
_REFUSED = "Error parsing command"


class Prometheus(LabDatabase):
    """Prometheus, one server that is written by remote write. Its settings are its flags, and one of its file."""

    name = "prometheus"
    summary = "Prometheus, metrics with labels, one server"
    port = 9090
    sources = SOURCES
    load_tools = (Blocks(),)

    memory_rule = (
        "nothing to set: its head takes what its series need, and has no limit; the rest is the system's cache of its files"
    )

    def unknown_settings(self, software: Path, user: ServerUser, settings: Mapping[str, str]) -> dict[str, str]:
        """The server prints its flags itself, and says which values it does not take."""
        program = _program(software)
        known = _flags(program, user) if settings else {}

        def refusal(flag: str, value: str) -> str:
            return _refusal(program, user, flag, value, takes_value=known[flag])

        def problem(key: str, value: str) -> str:
            if key == LATE_WINDOW:
                return "" if _duration_ms(value) is not None else f"{value!r}: expected a duration such as 30m, 12h or 30d"
            return problem_of_flag(key, value, known, _OF_THE_LAB, "prometheus --help", refusal)

        return with_problems(settings, problem) or _too_long(settings)

    def make_credentials(self, instance: Instance) -> None:
        """There are none."""

    def set_up(self, place: Place) -> None:
        """An empty folder."""
        place.data.mkdir(mode=0o700)
        place.user.owns(place.data)

    def command(self, place: Place) -> list[str | Path]:
        """The server with its flags, and a file with the one setting that is not a flag; nothing is scraped."""
        settings = {**_DEFAULTS, **place.instance.settings}
        window = settings.pop(LATE_WINDOW)
        file = place.write_secret("prometheus.yml", f"storage:\n  tsdb:\n    {LATE_WINDOW}: {window}\n")
        known = _flags(_program(place.software), place.user)
        return [
            _program(place.software),
            f"--config.file={file}",
            f"--storage.tsdb.path={place.data}",
            f"--web.listen-address={place.node.host}:{place.node.port}",
            "--web.enable-remote-write-receiver",
            "--web.enable-admin-api",
            *(_argument(name, value, takes_value=known[name]) for name, value in settings.items()),
        ]

    def url(self, instance: Instance) -> str:
        """The server; drivers give their metrics a prefix of their own there."""
        node = instance.nodes[0]
        return f"{self.name}://{node.host}:{node.port}"


def _program(software: Path) -> Path:
    return program(software, "prometheus")


def _argument(name: str, value: str, *, takes_value: bool) -> str:
    """A flag with its value; one that is on or off has none."""
    if takes_value:
        return f"--{name}={value}"
    return f"--{name}" if value == "true" else f"--no-{name}"


def _refusal(program: Path, user: ServerUser, flag: str, value: str, *, takes_value: bool) -> str:
    """What the server says of a value that a flag does not take; empty if it takes it. Nothing is started: it reads its flags before its file,
    which is not there.
    """
    if not takes_value:
        return "" if value in ("true", "false") else "expected true or false"
    ended = call([program, f"--{flag}={value}", "--config.file=/nonexistent"], folder=Path("/"), user=user, environment={})
    return next((line for line in (ended.stderr + ended.stdout).splitlines() if line.startswith(_REFUSED)), "")


def _flags(program: Path, user: ServerUser) -> dict[str, bool]:
    """The names of the server's flags, and whether each takes a value."""
    found = {flag["name"]: bool(flag["value"]) for flag in printed_flags(program, "--help", user, _FLAG)}
    # It prints no flag that is on by itself.
    return {**found, **dict.fromkeys(_HIDDEN, True), "storage.tsdb.wal-compression": False}


def _duration_ms(text: str) -> int | None:
    """A duration as Prometheus writes it, in ms; None if it is none."""
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(int(number) * _UNITS_MS[unit] for number, unit in parts)


def _too_long(settings: Mapping[str, str]) -> dict[str, str]:
    """Why late samples may not be so old, where the server would have to look into too many blocks for them."""
    of_all = {**_DEFAULTS, **settings}
    window, block = _duration_ms(of_all[LATE_WINDOW]), _duration_ms(of_all[BLOCK])
    if not window or not block or window <= block * _MAX_LATE_BLOCKS:
        return {}
    key = LATE_WINDOW if LATE_WINDOW in settings else BLOCK
    return {
        key: f"late samples of {of_all[LATE_WINDOW]} lie in more than {_MAX_LATE_BLOCKS:,} blocks of {of_all[BLOCK]}, and the server takes minutes "
        f"of CPU for looking into each of them; make {LATE_WINDOW} shorter or {BLOCK} longer"
    }
