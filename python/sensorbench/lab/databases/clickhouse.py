"""ClickHouse, as Debian has it."""

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

from sensorbench.lab.database import LabDatabase, Place, with_credentials
from sensorbench.lab.instance import USER, Instance
from sensorbench.lab.processes import call
from sensorbench.lab.software import DebianPackages
from sensorbench.lab.state_dirs import ServerUser

_NATIVE_PORT, _INTERSERVER_PORT = 9000, 9009
# Of the server as a whole; all other settings are those of queries.
_OF_SERVER = ("mark_cache_size", "uncompressed_cache_size", "max_concurrent_queries")
_DEFAULTS = {"mark_cache_size": str(128 << 20)}
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_UNKNOWN = "Unknown setting"
# The server's own and the libraries that Debian's release has beside it.
_PACKAGES = (
    "clickhouse-server",
    "clickhouse-common",
    "libcapnp-0.9.2",
    "libcctz2",
    "libcpuinfo0",
    "libfarmhash0",
    "libjemalloc2",
    "libmariadb3",
    "libmetrohash1",
    "libpcre3",
    "libpocofoundation80",
    "libpocodata80",
    "libltdl7",
    "libodbc2",
    "libpocodataodbc80",
    "libpoconet80",
    "libpocomongodb80",
    "libpococrypto80",
    "libpocojson80",
    "libpocoxml80",
    "libpocoutil80",
    "libpoconetssl80",
    "librdkafka1",
    "libre2-9",
    "libdouble-conversion3",
    "libboost-filesystem1.74.0",
    "libboost-program-options1.74.0",
    "libicu72",
    "liblz4-1",
    "libsasl2-2",
)


class Clickhouse(LabDatabase):
    """ClickHouse, one server."""

    name = "clickhouse"
    summary = "ClickHouse, tables of columns, one server"
    port = 8123
    other_ports = (_NATIVE_PORT, _INTERSERVER_PORT)
    sources = (DebianPackages("clickhouse", "debian", _PACKAGES),)
    server_version = "18.16"

    memory_rule = (
        "half for all queries together (max_memory_usage_for_all_queries; more is refused) and a tenth for marks (mark_cache_size); "
        "the rest is the system's cache of its files"
    )

    def memory_settings(self, memory_bytes: int) -> dict[str, str]:
        """What queries may take, and the cache of marks."""
        return {"max_memory_usage_for_all_queries": str(memory_bytes // 2), "mark_cache_size": str(memory_bytes // 10)}

    def environment(self, software: Path) -> dict[str, str]:
        """The libraries beside it."""
        folders = (software / "usr" / "lib" / "x86_64-linux-gnu", software / "lib" / "x86_64-linux-gnu")
        return {"LD_LIBRARY_PATH": ":".join(str(folder) for folder in folders)}

    def unknown_settings(self, software: Path, user: ServerUser, settings: Mapping[str, str]) -> dict[str, str]:
        """The server knows its settings itself."""
        of_queries = {key: value for key, value in settings.items() if key not in _OF_SERVER}
        problems = {key: "expected letters, digits and underscores" for key in of_queries if not _NAME.fullmatch(key)}
        for key in of_queries.keys() - problems.keys():
            if not self._is_known(software, user, key):
                problems[key] = f"the server does not know it as a setting of queries, and it is none of {', '.join(_OF_SERVER)}"
        return problems

    def _is_known(self, software: Path, user: ServerUser, key: str) -> bool:
        """Whether the server takes the setting. Without a port to listen on, it ends by itself after it has read its settings."""
        with tempfile.TemporaryDirectory(prefix="sensorbench-clickhouse-") as name:
            folder = Path(name)
            folder.chmod(0o755)
            (folder / "users.xml").write_text(_users({key: "1"}, password=""), encoding="utf-8")
            data = folder / "data"
            data.mkdir(mode=0o700)
            user.owns(data)
            config = folder / "config.xml"
            config.write_text(_config({}, data, folder / "users.xml"), encoding="utf-8")
            ended = call(
                [_program(software), f"--config-file={config}"],
                folder=data,
                user=user,
                environment=self.environment(software),
            )
        return _UNKNOWN not in ended.stdout + ended.stderr

    def set_up(self, place: Place) -> None:
        """An empty folder."""
        place.data.mkdir(mode=0o700)
        place.user.owns(place.data)

    def command(self, place: Place) -> list[str | Path]:
        """The server with its files of settings; the password is in one that only the servers' user can read."""
        settings = {**_DEFAULTS, **place.instance.settings}
        of_queries = {key: value for key, value in settings.items() if key not in _OF_SERVER}
        users = place.write_secret("users.xml", _users(of_queries, place.instance.password()))
        of_server = {key: value for key, value in settings.items() if key in _OF_SERVER} | {
            "listen_host": place.node.host,
            "http_port": str(place.node.port),
            "tcp_port": str(_NATIVE_PORT),
            "interserver_http_port": str(_INTERSERVER_PORT),
            "interserver_http_host": place.node.host,
        }
        config = place.write_secret("config.xml", _config(of_server, place.data, users))
        return [_program(place.software), f"--config-file={config}"]

    def url(self, instance: Instance) -> str:
        """The server; drivers make a database of their own there."""
        node = instance.nodes[0]
        return with_credentials(self.name, instance, f"{node.host}:{node.port}")


def _program(software: Path) -> Path:
    return software / "usr" / "sbin" / "clickhouse-server"


def _config(settings: Mapping[str, str], data: Path, users: Path) -> str:
    """The file of the server's own settings. It logs to where its output goes."""
    all_settings = {
        "path": f"{data}/",
        "tmp_path": f"{data}/tmp/",
        "users_config": str(users),
        "default_profile": "default",
        "default_database": "default",
        "timezone": "UTC",
        **settings,
    }
    return f"<yandex><logger><level>information</level><console>1</console></logger>{_elements(all_settings)}</yandex>\n"


def _users(settings: Mapping[str, str], password: str) -> str:
    """The file of the one user, who may come from this machine alone, and of the settings of queries."""
    user = f"<password>{escape(password)}</password><networks><ip>127.0.0.0/8</ip></networks><profile>default</profile><quota>default</quota>"
    return (
        f"<yandex><profiles><default>{_elements(settings)}</default></profiles>"
        f"<users><{USER}>{user}</{USER}></users><quotas><default></default></quotas></yandex>\n"
    )


def _elements(settings: Mapping[str, str]) -> str:
    return "".join(f"<{key}>{escape(value)}</{key}>" for key, value in settings.items())
