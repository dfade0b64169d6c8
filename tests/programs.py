"""Programs that tests need and that are not part of the package: taken from this machine, or from its package registry. No test goes without."""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from sensorbench.lab.software import DebianPackages

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_BROWSER_FILE, _KEYGEN_FILE, _SSH_FILE = "usr/lib/chromium/chromium", "usr/bin/ssh-keygen", "usr/bin/ssh"


@cache
def browser() -> tuple[str, dict[str, str]]:
    """A Chromium, and the environment that it is started with."""
    for name in _BROWSERS:
        if found := shutil.which(name):
            return found, dict(os.environ)
    return unpacked("chromium", _BROWSER_FILE)


def have_ssh_keygen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has `ssh-keygen` found, by this process and by those that it starts, until the test ends."""
    if shutil.which("ssh-keygen") is None:
        program, environment = unpacked("openssh-client", _KEYGEN_FILE)
        monkeypatch.setenv("PATH", f"{Path(program).parent}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setenv("LD_LIBRARY_PATH", environment["LD_LIBRARY_PATH"])


def have_ssh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has `ssh` and `ssh-keygen` found in the same way."""
    have_ssh_keygen(monkeypatch)
    if shutil.which("ssh") is None:
        program, environment = unpacked("openssh-client", _SSH_FILE)
        monkeypatch.setenv("PATH", f"{Path(program).parent}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setenv("LD_LIBRARY_PATH", environment["LD_LIBRARY_PATH"])


def unpacked(package: str, file: str) -> tuple[str, dict[str, str]]:
    """A program of a package of this system, unpacked with what it depends on and this system lacks; nothing is installed.

    Args:
        package: its name.
        file: where the program lies in it.

    Returns:
        The program, and the environment in which it finds its libraries.

    """
    folder = DebianPackages(f"tests-{package}", "system", _packages(package)).get()
    program = folder / file
    libraries = sorted({str(library.parent) for library in folder.rglob("*.so*")})
    assert program.is_file(), f"{package} has no {file}"
    return str(program), {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(libraries)}


def _packages(package: str) -> tuple[str, ...]:
    """The package, and those that would be installed with it."""
    command = ["apt-get", "install", "--simulate", "--reinstall", "--no-install-recommends", package]
    for _ in range(2):
        ended = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        if found := {line.split()[1] for line in ended.stdout.splitlines() if line.startswith("Inst ")}:
            return tuple(sorted(found | {package}))
        # Where nobody has ever asked for them, the lists are not known.
        subprocess.run(["apt-get", "update", "-qq"], check=True)
    raise AssertionError(f"{' '.join(command)}: {ended.stderr}")
