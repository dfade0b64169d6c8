"""InfluxDB 2, which Go and cargo build."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sensorbench.lab.database import LabDatabase, Place, with_credentials
from sensorbench.lab.flags import printed_flags, problem_of_flag, with_problems
from sensorbench.lab.instance import Instance, Node
from sensorbench.lab.processes import call
from sensorbench.lab.software import GoModule, run_tool
from sensorbench.lab.state_dirs import ServerUser, is_on_path

_VERSION = "2.7.12"
# The build asks for Flux, a library in Rust, by a pkg-config of its makers, which has cargo build it. Its sources end the build at each
# warning, of which later compilers than theirs have more.
_PKG_CONFIG = "github.com/influxdata/pkg-config"
_CARGO = """#!/bin/sh
chmod -R u+w .
grep -rlE 'deny\\(warnings' --include=lib.rs . | while read -r file; do
    sed -i -e 's/deny(warnings, missing_docs)/warn(missing_docs)/' -e 's/deny(warnings)/warn(unused)/' "$file"
done
exec cargo "$@"
"""
# As of InfluxDB 1, a shard that is not written for a second has its points in files.
_DEFAULTS = {"reporting-disabled": "true", "log-level": "warn", "storage-cache-snapshot-write-cold-duration": "1s"}
# Paths and addresses are the lab's own; with another log-in or a certificate it could not be reached any more.
_OF_THE_LAB = re.compile(r".*-path|http-bind-address|tls-.*|store|vault-.*|secret-store|instance-id|testing-.*")
_FLAG = re.compile(r"^ +--(?P<name>[\w-]+)", flags=re.MULTILINE)
_ORGANISATION = "sensorbench"
# Whoever sets the server up must name a bucket; nothing is written to it.
_FIRST_BUCKET = "set-up"
_ANSWERS_WITHIN_S = 10.0


@dataclass(frozen=True)
class _WithFlux(GoModule):
    """A module of Go that needs Flux."""

    def missing(self) -> str | None:
        """Go, and cargo."""
        if problem := super().missing():
            return problem
        return None if is_on_path("cargo") else "cargo is not installed (apt-get install cargo, or https://rustup.rs)"

    def environment(self, project: Path, module: Path) -> dict[str, str]:
        """The pkg-config that builds Flux, and the cargo that it calls."""
        pkg_config, cargo = project / "pkg-config", project / "cargo"
        run_tool(["go", "build", "-buildvcs=false", "-o", pkg_config, _PKG_CONFIG], cwd=module)
        cargo.write_text(_CARGO, encoding="utf-8")
        cargo.chmod(0o755)
        variables = {"PKG_CONFIG": str(pkg_config), "CARGO": str(cargo)}
        # Flux names an old toolchain, which rustup would get; the one that is there does.
        return variables | ({"RUSTUP_TOOLCHAIN": run_tool(["rustup", "default"]).split()[0]} if is_on_path("rustup") else {})


class Influxdb2(LabDatabase):
    """InfluxDB 2, one server. Its settings are its flags."""

    name = "influxdb2"
    summary = "InfluxDB 2, time series with tags and fields, one server; built by Go and cargo"
    port = 8086
    sources = (
        _WithFlux(
            "influxd",
            _VERSION,
            module="github.com/influxdata/influxdb/v2",
            checksum="h1:m25dUSO7h6nm3zFC4v/aCNeFFmnN/mlN/uPo1T63bmk=",
            package="./cmd/influxd",
            variables=(("main.version", f"v{_VERSION}"),),
            tags=("sqlite_foreign_keys", "sqlite_json"),
        ),
    )

    memory_rule = (
        "a quarter for points that are not on disk yet (storage-cache-max-memory-size; more are refused); "
        "the rest is the system's cache, in which its files are mapped"
    )

    def memory_settings(self, memory_bytes: int) -> dict[str, str]:
        """The cache of writes."""
        return {"storage-cache-max-memory-size": str(memory_bytes // 4)}

    def unknown_settings(self, software: Path, user: ServerUser, settings: Mapping[str, str]) -> dict[str, str]:
        """The server prints its flags itself, and says which values it does not take."""
        if not settings:
            return {}
        program = _program(software)
        known = {flag["name"] for flag in printed_flags(program, "--help", user, _FLAG)}

        def problem(flag: str, value: str) -> str:
            return problem_of_flag(flag, value, known, _OF_THE_LAB, "influxd --help", partial(_refusal, program, user))

        return with_problems(settings, problem)

    def set_up(self, place: Place) -> None:
        """An empty folder."""
        place.data.mkdir(mode=0o700)
        place.user.owns(place.data)

    def command(self, place: Place) -> list[str | Path]:
        """The server with its flags."""
        flags = {
            **_DEFAULTS,
            **place.instance.settings,
            "http-bind-address": f"{place.node.host}:{place.node.port}",
            "bolt-path": str(place.data / "influxd.bolt"),
            "sqlite-path": str(place.data / "influxd.sqlite"),
            "engine-path": str(place.data / "engine"),
        }
        return [_program(place.software), *(f"--{name}={value}" for name, value in flags.items())]

    def url(self, instance: Instance) -> str:
        """The server; drivers make a bucket of their own there. The password is an operator's token."""
        node = instance.nodes[0]
        return f"{with_credentials(self.name, instance, f'{node.host}:{node.port}')}&auth=token&org={_ORGANISATION}"

    def readiness(self, instance: Instance, node: Node) -> Callable[[], str]:
        """A new server is set up first: it has neither organisation nor token, and makes them while it runs only."""
        answers = super().readiness(instance, node)

        def problem() -> str:
            return _set_up_first(f"http://{node.host}:{node.port}/api/v2/setup", instance.password()) or answers()

        return problem


def _set_up_first(address: str, token: str) -> str:
    """Sets up a server that nobody has set up; why that cannot be done yet, empty when it is done."""
    # Commands that start no server of this kind do without it.
    from urllib.request import Request, urlopen

    first = {"username": "sensorbench", "password": token, "token": token, "org": _ORGANISATION, "bucket": _FIRST_BUCKET}
    try:
        with urlopen(address, timeout=_ANSWERS_WITHIN_S) as reply:
            is_new = json.load(reply)["allowed"]
        if is_new:
            content = json.dumps({**first, "retentionPeriodSeconds": 0}).encode()
            with urlopen(Request(address, content, {"Content-Type": "application/json"}), timeout=_ANSWERS_WITHIN_S) as reply:
                reply.read()
    except OSError as error:
        return f"it cannot be set up yet: {error}"
    return ""


def _program(software: Path) -> Path:
    return software / "bin" / "influxd"


def _refusal(program: Path, user: ServerUser, flag: str, value: str) -> str:
    """What the server says of a value that a flag does not take; empty if it takes it. It prints its settings, and starts nothing."""
    ended = call([program, "print-config", f"--{flag}={value}"], folder=Path("/"), user=user, environment={})
    if ended.returncode == 0:
        return ""
    # Before it, the server says that this command is an old one.
    said = (line.removeprefix("Error: ") for line in (ended.stderr + ended.stdout).splitlines() if line.startswith("Error: "))
    return next(said, f"it ended with exit code {ended.returncode}")
