"""Java for servers that are written in it: which one is here, and launchers for their tools."""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sensorbench.errors import FailedError, UsageError

_INSTALLED = Path("/usr/lib/jvm")
_SIZE = re.compile(r"[1-9]\d*[mMgG]")


@dataclass(frozen=True)
class Java:
    """A Java Development Kit."""

    home: Path
    major: int

    @property
    def java(self) -> Path:
        """The virtual machine."""
        return self.home / "bin" / "java"

    @property
    def javac(self) -> Path:
        """The compiler."""
        return self.home / "bin" / "javac"


def find_java(majors: tuple[int, ...]) -> Java | None:
    """The first kit of one of these major versions: that of JAVA_HOME, that on the path, or one that the system has elsewhere."""
    return next((java for java in _installed() if java.major in majors and java.javac.exists()), None)


def missing_java(majors: tuple[int, ...]) -> str | None:
    """What is missing here when there is no fitting Java, and how to install it."""
    if find_java(majors) is not None:
        return None
    wanted = " or ".join(map(str, majors))
    kits = [f"{java.home} has {java.major}{'' if java.javac.exists() else ' without javac'}" for java in _installed()]
    found = ", ".join(kits) or "there is none"
    advice = f"apt-get install openjdk-{majors[0]}-jdk-headless, or set JAVA_HOME"
    return f"it needs Java {wanted} with its compiler; {found} ({advice})"


def require_java(majors: tuple[int, ...]) -> Java:
    """A fitting Java. Raises FailedError."""
    java = find_java(majors)
    if java is None:
        raise FailedError(f"{missing_java(majors)}")
    return java


def size_of_setting(key: str, value: str) -> int:
    """The bytes of a server setting that is a size as a virtual machine takes it, such as 512M. Raises UsageError that names the setting."""
    if not _SIZE.fullmatch(value):
        raise UsageError(f"--server-setting {key}={value}: expected a size such as 512M or 2G")
    return int(value[:-1]) << (30 if value[-1] in "gG" else 20)


def write_launcher(file: Path, command: Sequence[str | Path]) -> None:
    """A program that runs a command with the arguments that it is given."""
    file.write_text(f'#!/bin/sh\nexec {shlex.join(map(str, command))} "$@"\n', encoding="utf-8")
    file.chmod(0o755)


def _installed() -> Iterator[Java]:
    on_path = shutil.which("java")
    homes = [
        *([Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []),
        *([Path(on_path).resolve().parent.parent] if on_path else []),
        *(sorted(_INSTALLED.iterdir()) if _INSTALLED.is_dir() else []),
    ]
    for home in dict.fromkeys(home.resolve() for home in homes):
        if kit := _kit(home):
            yield kit


@cache
def _kit(home: Path) -> Java | None:
    """The kit that lies in a folder; it says itself which version it is: 17.0.15, or 1.8.0 for 8."""
    try:
        output = subprocess.run([home / "bin" / "java", "-version"], capture_output=True, text=True, check=True).stderr
    except (OSError, subprocess.CalledProcessError):
        return None
    version = re.search(r'version "(?:1\.)?(\d+)', output)
    return Java(home, int(version[1])) if version else None
