"""What tests have hosts call and keep. A host imports this module, so that it imports nothing of the tests itself."""

from pathlib import Path

from sensorbench.errors import EngineUsageError


def text_of(file: Path) -> str:
    """A function that hosts call."""
    return file.read_text(encoding="utf-8")


class Tally:
    """An object that hosts keep."""

    def __init__(self, start: int) -> None:
        self.count = start

    @property
    def double(self) -> int:
        return 2 * self.count

    def add(self, number: int) -> int:
        self.count += number
        return self.count

    def fail(self) -> None:
        raise EngineUsageError("no such thing")
