"""Running the tools of others, on the processors of the thread that calls them."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from sensorbench import lab
from sensorbench.errors import FailedError
from sensorbench.lab.software import DebianPackages

Words = Sequence[str | Path | int]
Environment = Mapping[str, str]


def call(command: Words, environment: Environment | None = None, stdin: IO[bytes] | None = None) -> str:
    """What a program printed. Raises FailedError with what it said last."""
    words = [str(word) for word in command]
    ended = subprocess.run(
        words, env={**os.environ, **(environment or {})}, stdin=stdin, capture_output=True, text=True, check=False
    )
    if ended.returncode != 0:
        output = (ended.stderr.strip() or ended.stdout.strip())[-500:]
        raise FailedError(f"{Path(words[0]).name} failed with exit code {ended.returncode}: {output}")
    return ended.stdout


def unpacked(packages: DebianPackages) -> tuple[Path, dict[str, str]]:
    """The folder of unpacked packages, got first if they are not there, and what their programs must find in the environment."""
    folder = packages.get()
    return folder, {"LD_LIBRARY_PATH": str(folder / "usr/lib/x86_64-linux-gnu")}


def of_server(instance: lab.Instance) -> tuple[Path, dict[str, str]]:
    """The folder of a server's software, and what its programs must find in the environment."""
    database = lab.LAB_DATABASES[instance.database]
    source = database.source(instance.version)
    if source is None:
        raise FailedError(f"{instance.name}: the lab has no {instance.database} {instance.version} any more")
    return source.get(), database.environment(source.get())
