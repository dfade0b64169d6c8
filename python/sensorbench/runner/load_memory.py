"""What a load does to the memory of whoever holds the data: the server that the lab started, or this process, where the database is a library in it."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from sensorbench import lab
from sensorbench.errors import LostHostError
from sensorbench.results.described import LoadMemory
from sensorbench.runner.monitor import this_process
from sensorbench.runner.variants import Variant

EVERY_S = 0.5


@dataclass
class MemoryWatch:
    """Reads the memory of some processes again and again; `of` says whose they are."""

    of: str
    processes: Mapping[str, lab.WatchedProcess]
    read_bytes: list[int] = field(default_factory=list)
    _ended: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Reads it while the context lasts, and at both ends."""
        self.read()
        thread = threading.Thread(target=self._watch, name="memory of a load", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()
            self.read()

    def report(self) -> LoadMemory | None:
        """What was read; None if nothing was."""
        if not self.read_bytes:
            return None
        before, *_, end = [self.read_bytes[0], *self.read_bytes]
        return {"of": self.of, "before_bytes": before, "peak_bytes": max(self.read_bytes), "end_bytes": end}

    def read(self) -> None:
        """Reads it once. A process that has ended, or whose host is gone, has none."""
        try:
            found = [used.memory_bytes for process in self.processes.values() if (used := process.usage()) is not None]
        except LostHostError:
            return
        if found:
            self.read_bytes.append(sum(found))

    def _watch(self) -> None:
        while not self._ended.wait(EVERY_S):
            self.read()


def memory_watch(variant: Variant, url: str) -> MemoryWatch:
    """Who reads the memory of a load.

    Args:
        variant: what is loaded.
        url: of its target.

    """
    if variant.target.database.embedded:
        return MemoryWatch("client", {"client": this_process()})
    instance = lab.instance_at(url)
    try:
        return MemoryWatch("server", lab.server_processes(instance) if instance is not None else {})
    except LostHostError:
        return MemoryWatch("server", {})
