"""VictoriaMetrics on one server, as Debian has it."""

import re
from collections.abc import Mapping
from pathlib import Path

from sensorbench.lab.database import LabDatabase, Place, with_credentials
from sensorbench.lab.instance import USER, Instance
from sensorbench.lab.processes import call
from sensorbench.lab.software import DebianPackages
from sensorbench.lab.state_dirs import ServerUser

# Of itself the server keeps a month and drops what is older without a word, and hides the newest 30 s.
_DEFAULTS = {"retentionPeriod": "100y", "search.latencyOffset": "0s"}
# Where the server looks for the password: a command line would show it.
_PASSWORD_VARIABLE = "httpAuth_password"


class Victoriametrics(LabDatabase):
    """VictoriaMetrics, one server."""

    name = "victoriametrics"
    summary = "VictoriaMetrics, metrics with labels, one server, up to a hundred years old"
    port = 8428
    sources = (DebianPackages("victoriametrics", "debian", ("victoria-metrics",)),)

    def unknown_settings(self, software: Path, user: ServerUser, settings: Mapping[str, str]) -> dict[str, str]:
        """The server lists its flags itself."""
        if not settings:
            return {}
        listed = call([_program(software), "-help"], folder=Path("/"), user=user, environment={})
        known = set(re.findall(r"^\s*-(\S+)", listed.stdout + listed.stderr, re.MULTILINE))
        return {key: "it is not among the flags that victoria-metrics -help lists" for key in settings if key not in known}

    def set_up(self, place: Place) -> None:
        """An empty folder."""
        place.data.mkdir(mode=0o700)
        place.user.owns(place.data)

    def command(self, place: Place) -> list[str | Path]:
        """The server with its flags; the password comes by the environment."""
        flags = {
            **_DEFAULTS,
            "envflag.enable": "true",
            "httpListenAddr": f"{place.node.host}:{place.node.port}",
            "httpAuth.username": USER,
            "storageDataPath": str(place.data),
            **place.instance.settings,
        }
        return [_program(place.software), *(f"-{key}={value}" for key, value in flags.items())]

    def environment_of(self, place: Place) -> dict[str, str]:
        """The password."""
        return {**self.environment(place.software), _PASSWORD_VARIABLE: place.instance.password()}

    def url(self, instance: Instance) -> str:
        """The server; drivers keep to metrics of their own."""
        node = instance.nodes[0]
        return with_credentials(self.name, instance, f"{node.host}:{node.port}")


def _program(software: Path) -> Path:
    return software / "usr" / "bin" / "victoria-metrics"
