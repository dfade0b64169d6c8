"""VictoriaMetrics: as Debian has it, or a current version that Go builds."""

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from sensorbench.lab.database import LabDatabase, Place
from sensorbench.lab.flags import printed_flags, problem_of_flag, with_problems
from sensorbench.lab.instance import Instance
from sensorbench.lab.processes import call
from sensorbench.lab.software import DebianPackages, GoModule
from sensorbench.lab.state_dirs import ServerUser

# What is measured is older than the month that is kept without this, and is to be seen when it was flushed. All series of a namespace are listed
# when it is checked and removed, and there may be more than 30,000.
_DEFAULTS = {"retentionPeriod": "100y", "search.latencyOffset": "0s", "search.maxSeries": "10000000"}
# The folder and all addresses are the lab's own; with a password, a certificate or another path it could not be reached any more.
_OF_THE_LAB = re.compile(r"storageDataPath|http\.pathPrefix|httpAuth\..+|tls.*|.*AuthKey|.*ListenAddr.*", flags=re.IGNORECASE)
_FLAG = re.compile(r"^  -(?P<name>[\w.]+)", flags=re.MULTILINE)


_MODULE = "github.com/VictoriaMetrics/VictoriaMetrics"
_CURRENT = "1.130.0"


class Victoriametrics(LabDatabase):
    """VictoriaMetrics, one server. Its settings are its flags."""

    name = "victoriametrics"
    summary = "VictoriaMetrics, metrics with labels, one server"
    port = 8428
    sources = (
        DebianPackages("victoria-metrics", "debian", ("victoria-metrics",)),
        GoModule(
            "victoria-metrics",
            _CURRENT,
            module=_MODULE,
            checksum="h1:It3L+g6JF6V8vaFIXTKZxLDmY8l1AtYNdeXWwgjsuhY=",
            package="./app/victoria-metrics",
            variables=((f"{_MODULE}/lib/buildinfo.Version", f"victoria-metrics-v{_CURRENT}"),),
        ),
    )

    memory_rule = "60% for its caches (memory.allowedBytes), as it takes by itself of a machine's memory; the rest is the system's cache of its files"

    def memory_settings(self, memory_bytes: int) -> dict[str, str]:
        """Its caches."""
        return {"memory.allowedBytes": str(memory_bytes * 6 // 10)}

    def unknown_settings(self, software: Path, user: ServerUser, settings: Mapping[str, str]) -> dict[str, str]:
        """The server prints its flags itself, and says which values it does not take."""
        if not settings:
            return {}
        program = _program(software)
        known = {flag["name"] for flag in printed_flags(program, "-help", user, _FLAG)}

        def problem(flag: str, value: str) -> str:
            return problem_of_flag(flag, value, known, _OF_THE_LAB, "victoria-metrics -help", partial(_refusal, program, user))

        return with_problems(settings, problem)

    def make_credentials(self, instance: Instance) -> None:
        """There are none."""

    def set_up(self, place: Place) -> None:
        """An empty folder."""
        place.data.mkdir(mode=0o700)
        place.user.owns(place.data)

    def command(self, place: Place) -> list[str | Path]:
        """The server with its flags."""
        flags = {
            **_DEFAULTS,
            **place.instance.settings,
            "httpListenAddr": f"{place.node.host}:{place.node.port}",
            "storageDataPath": str(place.data),
        }
        return [_program(place.software), *(f"-{name}={value}" for name, value in flags.items())]

    def url(self, instance: Instance) -> str:
        """The server; drivers give their metrics a prefix of their own there."""
        node = instance.nodes[0]
        return f"{self.name}://{node.host}:{node.port}"


def _program(software: Path) -> Path:
    """Debian's packages have it below usr, what Go built is not."""
    return next(path for path in (software / folder / "bin" / "victoria-metrics" for folder in ("", "usr")) if path.exists())


def _refusal(program: Path, user: ServerUser, flag: str, value: str) -> str:
    """What the server says of a value that a flag does not take; empty if it takes it. Nothing is started: it is asked for its version."""
    ended = call([program, f"-{flag}={value}", "-version"], folder=Path("/"), user=user, environment={})
    if ended.returncode == 0:
        return ""
    return next(iter((ended.stderr + ended.stdout).strip().splitlines()), f"it ended with exit code {ended.returncode}")
