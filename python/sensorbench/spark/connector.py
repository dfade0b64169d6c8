"""Connectors: how Spark reads and writes the tables of each database. What is particular to one is in its file in `connectors/`."""

import hashlib
import re
import tomllib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote, unquote

from sensorbench import toml_file
from sensorbench.errors import UsageError
from sensorbench.lab.jvm import require_java
from sensorbench.lab.locks import locked
from sensorbench.lab.software import MavenJars, make_readable, run_tool
from sensorbench.lab.spark import JAVA, SparkPackage
from sensorbench.lab.state_dirs import software_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FOLDER = Path(__file__).parent / "connectors"
JAVA_FOLDER = Path(__file__).parent / "java"
# What reads and writes files instead of a database: in a folder, or on HDFS.
FILES, HDFS = "files", "hdfs"
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
# The oldest Java that Spark runs on here.
_RELEASE = "11"

Options = dict[str, str]


class Connector(toml_file.FileModel):
    """A file in `connectors/`. Options and settings have placeholders: `{host}`, `{table}` and so on; one whose placeholder has no value is left out."""

    databases: list[str]
    title: str
    # How it splits a table, in words; and whether a split names the nodes that have it, so that Spark prefers an executor there.
    splits: str
    names_nodes: bool = False
    format: str
    jars: list[str]
    # Of all jars, as `lab.software` computes it.
    sha256: str
    # A source in `java/` that is compiled for it.
    java: str | None = None
    # Of the application; of reading and writing; of reading alone; of emptying a table; of one table.
    settings: Options = {}
    options: Options = {}
    read: Options = {}
    empty: Options = {}
    table: dict[str, Options] = {}
    # Whether it needs a table's columns, because it would find them out by what not every server can do, or by a job of its own.
    needs_columns: bool = False
    # Of a table: columns that are called otherwise in the database.
    renamed: dict[str, Options] = {}

    @property
    def name(self) -> str:
        """What it is kept under in the cache."""
        return f"connector-{re.sub(r'[^a-z0-9.]+', '-', self.title.lower())}"

    def get_jars(self) -> list[Path]:
        """Everything that an application needs; got and compiled first if it is not there. Raises FailedError."""
        found = MavenJars(self.name, self.sha256[:12], tuple(self.jars), self.sha256).jars if self.jars else []
        return [*found, compiled(JAVA_FOLDER / self.java, found)] if self.java else found


@cache
def connectors() -> dict[str, Connector]:
    """All connectors by the name of their file."""
    return {file.stem: toml_file.load(file, Connector) for file in sorted(FOLDER.glob("*.toml"))}


def connector_of(database: str) -> Connector | None:
    """The connector for a database; None if none is registered."""
    return next((connector for connector in connectors().values() if database in connector.databases), None)


def compiled(source: Path, jars: list[Path]) -> Path:
    """The jar of one of our sources, compiled against Spark and other jars when it has changed. Raises FailedError."""
    fingerprint = "\n".join([hashlib.sha256(source.read_bytes()).hexdigest(), *(jar.name for jar in jars)])
    folder = software_folder() / f"spark-{source.stem}-{hashlib.sha256(fingerprint.encode()).hexdigest()[:12]}"
    jar = folder / f"{source.stem}.jar"
    if not jar.exists():
        with locked(software_folder() / f"lock-{folder.name}"):
            classes = folder / "classes"
            places = ":".join([f"{SparkPackage.installed().folder / 'jars'}/*", *map(str, jars)])
            options = ["--release", _RELEASE, "-proc:none", "-nowarn", "-cp", places]
            run_tool([require_java(JAVA).javac, *options, "-d", classes, source])
            draft = jar.with_suffix(".draft")
            with zipfile.ZipFile(draft, "w") as archive:
                for file in sorted(classes.rglob("*.class")):
                    archive.write(file, str(file.relative_to(classes)))
            make_readable(folder)
            draft.rename(jar)
    return jar


@dataclass(frozen=True)
class Place:
    """Where a connector finds tables: what fills its placeholders."""

    connector: Connector
    values: Mapping[str, str]

    def settings(self, **more: str) -> Options:
        """Settings of the application. `more` fills placeholders besides."""
        return filled(self.connector.settings, {**self.values, **more})

    def read(self, spark: "SparkSession", table: str, columns: str, **more: str) -> "DataFrame":
        """The rows of a table, which has these columns (in the words of Spark's SQL). `more` fills placeholders besides."""
        reader = spark.read.format(self.connector.format).options(**self._options(self.connector.read, table, more))
        renamed = self.connector.renamed.get(table, {})
        if self.connector.needs_columns:
            reader = reader.schema(", ".join(_named(column, renamed) for column in columns.split(", ")))
        return reader.load().withColumnsRenamed({theirs: ours for ours, theirs in renamed.items()})

    def append(self, rows: "DataFrame", table: str) -> None:
        """Adds rows to a table."""
        self._write(rows, table, "append", {})

    def empty(self, spark: "SparkSession", table: str, columns: str) -> None:
        """Removes all rows of a table, which has these columns (in the words of Spark's SQL)."""
        nothing = spark.range(0, 0, 1, 1).selectExpr(
            *(f"CAST(NULL AS {kind}) AS {name}" for name, kind in map(str.split, columns.split(", ")))
        )
        self._write(nothing, table, "overwrite", self.connector.empty)

    def _write(self, rows: "DataFrame", table: str, mode: Literal["append", "overwrite"], besides: Options) -> None:
        options = self._options(besides, table, {})
        rows.write.format(self.connector.format).options(**options).mode(mode).save()

    def _options(self, besides: Options, table: str, more: Mapping[str, str]) -> Options:
        options = {**self.connector.options, **besides, **self.connector.table.get(table, {})}
        return filled(options, {**self.values, **more, "table": table})


def _named(column: str, renamed: Options) -> str:
    name, _, kind = column.partition(" ")
    return f"{renamed.get(name, name)} {kind}"


def filled(options: Options, values: Mapping[str, str]) -> Options:
    """Options with their placeholders filled; those that need a value which is not there are left out."""
    known = {
        key: text for key, text in options.items() if all(values.get(name) is not None for name in _PLACEHOLDER.findall(text))
    }
    return {key: _PLACEHOLDER.sub(lambda found: values[found[1]], text) for key, text in known.items()}


def place_of(database: str, url: str) -> Place:
    """Where the connector of a database finds what lies at a target's URL. Raises UsageError if it has none, or cannot get there."""
    connector = connector_of(database)
    if connector is None:
        raise UsageError(
            f"--target {database}: no connector between Spark and it is registered; expected one of {', '.join(connected())}"
        )
    return Place(connector, _values(url))


def connected() -> list[str]:
    """The databases that have a connector, and files."""
    return [FILES, *(database for connector in connectors().values() for database in connector.databases)]


def files_in(folder: Path) -> Place:
    """Files in a folder."""
    return Place(connectors()[FILES], {"folder": str(folder)})


def files_on_hdfs(url: str, folder: str) -> Place:
    """Files in a folder of HDFS."""
    return Place(connectors()[HDFS], {"folder": f"{url}{folder}"})


def _values(url: str) -> dict[str, str]:
    """What a target's URL says: hosts, credentials, namespace."""
    address, _, query = url.partition("?")
    options = dict(option.split("=", 1) for option in query.split("&") if option)
    refused = sorted(options.keys() & {"tls", "ca", "certificate", "key", "auth_mechanism"})
    if refused:
        raise UsageError(f"--target …?{refused[0]}=: Spark's connectors cannot be given it here; use a server without it")
    user_info, _, places = address.partition("://")[2].rpartition("@")
    hosts, _, path = places.partition("/")
    login = _login(user_info, options.get("credentials"))
    first_host, _, port = hosts.partition(",")[0].rpartition(":")
    values = {
        "host": first_host,
        "port": port,
        "hosts": ",".join(part.rpartition(":")[0] for part in hosts.split(",")),
        "hosts_with_ports": hosts,
        "path": path,
        "namespace": unquote(options.get("namespace", "sensorbench")),
        "login": "".join(f"{quote(user, safe='')}:{quote(password, safe='')}@" for user, password in [login] if user)
        if login
        else "",
        **({"user": login[0], "password": login[1]} if login else {}),
    }
    admin = options.get("admin")
    return {**values, "admin": admin.rpartition(":")[0]} if admin else values


def _login(user_info: str, file: str | None) -> tuple[str, str] | None:
    if user_info:
        user, _, password = user_info.partition(":")
        return unquote(user), unquote(password)
    if file is None:
        return None
    login = tomllib.loads(Path(unquote(file)).read_text(encoding="utf-8"))
    return login["user"], login["password"]
