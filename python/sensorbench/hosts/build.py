"""Which build of this package a machine has: controller and hosts understand each other where it is the same."""

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sensorbench import __version__, _engine


@dataclass(frozen=True)
class Build:
    """The version of the package, and the SHA-256 of its engine."""

    version: str
    engine: str

    def difference_from(self, other: "Build") -> str | None:
        """In what this build is another one, in words; None if it is the same."""
        if self.version != other.version:
            return f"it has sensorbench {self.version}, and this machine has {other.version}"
        if self.engine != other.engine:
            return f"its engine is another build of sensorbench {self.version} ({self.engine[:12]}, and here {other.engine[:12]})"
        return None


@cache
def this_build() -> Build:
    """The build of this process."""
    with Path(_engine.__file__).open("rb") as content:
        return Build(__version__, hashlib.file_digest(content, "sha256").hexdigest())
