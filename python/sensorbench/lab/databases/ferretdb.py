"""FerretDB, which speaks MongoDB's protocol and keeps the data in SQLite or PostgreSQL.

FerretDB 1 does not know passwords itself: it hands them on to PostgreSQL, and over SQLite anybody on this machine may log in. (Its
experimental authentication, MongoDB's own, ends a handshake that MongoDB's Rust driver does not take for ended.)
"""

from collections.abc import Mapping
from pathlib import Path

from sensorbench.lab.database import LabDatabase, Place, with_credentials
from sensorbench.lab.databases.postgresql import DEFAULTS, Postgresql, make_cluster
from sensorbench.lab.instance import Instance
from sensorbench.lab.processes import call
from sensorbench.lab.software import GoModule
from sensorbench.lab.state_dirs import ServerUser

_SOURCES = (
    GoModule(
        "ferretdb",
        "1.24.2",
        module="github.com/FerretDB/FerretDB",
        checksum="h1:trrUU0LbmusMbyubhPS1IELncvrIwKrsRT2LW1UUWCw=",
        package="./cmd/ferretdb",
        # It does not start without knowing its version, which is no part of the module.
        written=(("build/version/version.txt", "v1.24.2\n"),),
    ),
)
_POSTGRESQL = Postgresql()
# What begins like this is a setting of the PostgreSQL behind FerretDB.
_OF_POSTGRESQL = "postgresql."
# The file that says whether PostgreSQL is ready, how many words its command has, that command, and FerretDB's. All words are arguments, none
# is text of the script. What an earlier PostgreSQL left would seem to be ready.
_BOTH = """
ready=$1; words=$2; shift 2
rm -f "$ready"
first() {
    count=$1; shift; rest=$(($# - count))
    while [ "$count" -gt 0 ]; do set -- "$@" "$1"; shift; count=$((count - 1)); done
    shift "$rest"
    exec "$@"
}
first "$words" "$@" &
until grep -qs ^ready "$ready"; do kill -0 $! || exit 1; sleep 0.05; done
shift "$words"
exec "$@"
"""


class Ferretdb(LabDatabase):
    """FerretDB over SQLite, one server."""

    name = "ferretdb"
    summary = "FerretDB over SQLite, which speaks MongoDB's protocol"
    port = 27017
    sources = _SOURCES

    def unknown_settings(self, software: Path, user: ServerUser, settings: Mapping[str, str]) -> dict[str, str]:
        """The server lists its options itself."""
        if not settings:
            return {}
        listed = call([_program(software), "--help"], folder=software, user=user, environment={}).stdout
        known = {word.partition("=")[0] for word in listed.split()}
        return {key: "it is not among the options that ferretdb --help lists" for key in settings if f"--{key}" not in known}

    def make_credentials(self, instance: Instance) -> None:
        """There are none."""

    def set_up(self, place: Place) -> None:
        """Empty folders for the data and for what the server notes of itself."""
        for folder in (place.data, _state(place)):
            folder.mkdir(mode=0o700)
            place.user.owns(folder)

    def command(self, place: Place) -> list[str | Path]:
        """The server, with SQLite's files in its data folder."""
        storage = ["--handler=sqlite", f"--sqlite-url=file:{place.data}/"]
        return _server(place, storage, place.instance.settings)

    def url(self, instance: Instance) -> str:
        """The server; drivers make a database of their own there."""
        node = instance.nodes[0]
        return f"{self.name}://{node.host}:{node.port}"


class FerretdbPostgresql(Ferretdb):
    """FerretDB over a PostgreSQL of its own, which is reached by a socket in the node's folder and by nothing else, and which compares
    the passwords.
    """

    name = "ferretdb+postgresql"
    summary = "FerretDB over PostgreSQL, which speaks MongoDB's protocol"

    memory_rule = f"as PostgreSQL: {Postgresql.memory_rule}"

    def memory_settings(self, memory_bytes: int) -> dict[str, str]:
        """Those of the PostgreSQL behind it."""
        return {f"{_OF_POSTGRESQL}{key}": value for key, value in _POSTGRESQL.memory_settings(memory_bytes).items()}

    def unknown_settings(self, software: Path, user: ServerUser, settings: Mapping[str, str]) -> dict[str, str]:
        """Each server lists its own."""
        behind = _POSTGRESQL.unknown_settings(_postgresql(), user, _settings_behind(settings))
        of_postgresql = {f"{_OF_POSTGRESQL}{key}": why for key, why in behind.items()}
        return super().unknown_settings(software, user, _own_settings(settings)) | of_postgresql

    def make_credentials(self, instance: Instance) -> None:
        """Those of PostgreSQL."""
        _POSTGRESQL.make_credentials(instance)

    def set_up(self, place: Place) -> None:
        """PostgreSQL's folder, and one for what FerretDB notes of itself."""
        super().set_up(place)
        make_cluster(place, _postgresql())

    def command(self, place: Place) -> list[str | Path]:
        """Both servers: FerretDB starts when PostgreSQL takes connections. It names no password of its own, so that clients must."""
        sockets = _state(place)
        behind = (
            DEFAULTS
            | {"listen_addresses": "", "unix_socket_directories": str(sockets)}
            | _settings_behind(place.instance.settings)
        )
        options = [word for key, value in behind.items() for word in ("-c", f"{key}={value}")]
        postgresql: list[str | Path] = [_postgresql() / "bin" / "postgres", "-D", place.data, *options]
        storage = ["--handler=postgresql", f"--postgresql-url=postgres:///postgres?host={sockets}&pool_max_conns=50"]
        ferretdb = _server(place, storage, _own_settings(place.instance.settings))
        return ["/bin/sh", "-c", _BOTH, "sh", place.data / "postmaster.pid", str(len(postgresql)), *postgresql, *ferretdb]

    def url(self, instance: Instance) -> str:
        """The server, with the credentials of PostgreSQL."""
        node = instance.nodes[0]
        return with_credentials(self.name, instance, f"{node.host}:{node.port}")


def _server(place: Place, storage: list[str], settings: Mapping[str, str]) -> list[str | Path]:
    """FerretDB as it is started."""
    options = {
        "listen-addr": f"{place.node.host}:{place.node.port}",
        "debug-addr": "-",
        "state-dir": str(_state(place)),
        "telemetry": "disable",
        "log-level": "warn",
        **settings,
    }
    return [_program(place.software), *storage, *(f"--{key}={value}" for key, value in options.items())]


def _program(software: Path) -> Path:
    return software / "bin" / "ferretdb"


def _postgresql() -> Path:
    """The folder of PostgreSQL's software, which is got first if it is not there."""
    source = _POSTGRESQL.source(None)
    if source is None:
        raise AssertionError("PostgreSQL comes in several versions")
    return source.get()


def _state(place: Place) -> Path:
    return place.folder / "state"


def _settings_behind(settings: Mapping[str, str]) -> dict[str, str]:
    return {key.removeprefix(_OF_POSTGRESQL): value for key, value in settings.items() if key.startswith(_OF_POSTGRESQL)}


def _own_settings(settings: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in settings.items() if not key.startswith(_OF_POSTGRESQL)}
